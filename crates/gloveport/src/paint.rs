//! Colours, where a person looks.

use std::io::IsTerminal as _;

use crate::visible;

/// What a piece of text is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    Heading,
    Faint,
    Good,
    Warning,
    Error,
    Hint,
}

/// Writes texts with colours, or without.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// With colours if standard output is a terminal and nobody asked for none.
    pub(crate) fn for_stdout() -> Self {
        Self { on: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    /// Never with colours.
    #[cfg(test)]
    pub(crate) const fn none() -> Self {
        Self { on: false }
    }

    /// The text may be anyone's.
    pub(crate) fn text(self, style: Style, text: &str) -> String {
        let text = visible::lines(text);
        let code = match style {
            Style::Heading => "1",
            Style::Faint => "2",
            Style::Good => "32",
            Style::Warning => "33",
            Style::Error => "31",
            Style::Hint => "36",
        };
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into_owned() }
    }
}

//! What of the rendered output a report shows (`bash-session` 3.3).

/// Remembers what was reported of the current command.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Text that was on the screen at the last report.
    reported: String,
    /// Reports made for this command.
    reports: u32,
}

impl Content {
    /// An earlier report told of the same command.
    pub(crate) fn continued(&self) -> bool {
        self.reports > 0
    }

    /// The part of `shown` that no report had yet, without the echo of typed input and without blank ends.
    pub(crate) fn take(&mut self, shown: String, echo: Option<&str>) -> String {
        let fresh = shown.strip_prefix(self.reported.as_str()).unwrap_or(&shown).trim();
        let fresh = match echo.map(str::trim) {
            Some(echo) if !echo.is_empty() => fresh.strip_prefix(echo).unwrap_or(fresh).trim_start(),
            _ => fresh,
        };
        let fresh = fresh.to_owned();
        self.reported = shown;
        self.reports += 1;
        fresh
    }

    /// Starts over with an empty screen.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// What an interactive bash prints when it is told to exit.
pub const EXIT_WORD: &[u8] = b"exit\n";

/// Output of a shell that ended without the word that an interactive bash prints when it is told to exit.
pub(crate) fn without_exit_word(output: &str) -> &str {
    let stripped = output.strip_suffix("exit").map(str::trim_end);
    match stripped {
        Some(rest) if rest.is_empty() || output[rest.len()..].starts_with('\n') => rest,
        _ => output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_text_is_taken_and_a_redrawn_screen_is_taken_whole() {
        let mut content = Content::default();
        assert_eq!(content.take("1".into(), None), "1");
        assert!(content.continued());
        assert_eq!(content.take("1\n2".into(), None), "2");
        assert_eq!(content.take("1\n2".into(), None), "");
        assert_eq!(content.take("50 %".into(), None), "50 %");
    }

    #[test]
    fn an_echo_is_removed_once_and_only_at_the_beginning() {
        let mut content = Content::default();
        assert_eq!(content.take("\nJohn\nHello John".into(), Some(" John")), "Hello John");
        assert_eq!(Content::default().take("x John".into(), Some("John")), "x John");
        assert_eq!(Content::default().take("John John".into(), Some("John")), "John");
    }

    #[test]
    fn the_exit_word_is_removed_when_it_is_a_line_of_its_own() {
        for (output, expected) in
            [("exit", ""), ("a\nexit", "a"), ("no exit", "no exit"), ("", ""), ("exit\nexit", "exit")]
        {
            assert_eq!(without_exit_word(output), expected, "{output}");
        }
    }
}

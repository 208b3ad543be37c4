//! What is typed: special keys, and which texts can be typed at all.

/// A control key such as `C-c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlKey {
    letter: char,
}

impl ControlKey {
    /// A text is a special key when it has three characters and begins with `C-` (`bash-session` 5.2).
    pub fn parse(text: &str) -> Option<Self> {
        let mut characters = text.strip_prefix("C-")?.chars();
        let letter = characters.next()?;
        (characters.next().is_none()).then_some(Self { letter })
    }

    /// The key's last character in upper case, as observations name it.
    pub fn name(self) -> char {
        self.letter.to_uppercase().next().unwrap_or(self.letter)
    }

    /// The byte that the key sends; `None` for a character that no control key exists for.
    pub fn byte(self) -> Option<u8> {
        let code = u8::try_from(self.letter.to_ascii_uppercase()).ok()?;
        match code {
            b'@'..=b'_' => Some(code & 0x1f),
            b'?' => Some(0x7f),
            b' ' => Some(0),
            _ => None,
        }
    }

    /// What a terminal shows for the key when it sends a signal.
    pub(crate) fn shown_as(self) -> Option<(&'static str, Effect)> {
        match self.byte()? {
            0x03 => Some(("^C", Effect::Interrupt)),
            0x1c => Some(("^\\", Effect::Quit)),
            0x1a => Some(("^Z", Effect::Stop)),
            _ => None,
        }
    }
}

/// What a key does to the foreground program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Interrupt,
    Quit,
    Stop,
}

/// Longest line that the kernel delivers whole in line-by-line mode, with room for its end.
pub(crate) const MAX_LINE: usize = 4000;
/// A text that is larger is handed over in a file: the shell reads what is typed byte by byte.
const MAX_TYPED: usize = 4096;

/// Whether a text arrives at the shell unchanged when it is typed: no control characters (the terminal would act on
/// them) and no line that is too long.
pub(crate) fn can_be_typed(text: &str) -> bool {
    text.len() <= MAX_TYPED
        && text.bytes().all(|byte| byte >= 0x20 && byte != 0x7f || byte == b'\n' || byte == b'\t')
        && text.split('\n').all(|line| line.len() <= MAX_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_characters_that_begin_with_control_are_a_key() {
        let byte = |text: &str| ControlKey::parse(text).and_then(ControlKey::byte);
        for (text, expected) in [
            ("C-c", Some(3)),
            ("C-C", Some(3)),
            ("C-d", Some(4)),
            ("C-\\", Some(0x1c)),
            ("C-z", Some(0x1a)),
            ("C-[", Some(0x1b)),
        ] {
            assert_eq!(byte(text), expected, "{text}");
        }
        for text in ["C-ab", "C-", "c-c", "C", "", "C-é"] {
            assert_eq!(byte(text), None, "{text}");
        }
        assert_eq!(ControlKey::parse("C-d").unwrap().name(), 'D');
    }

    #[test]
    fn control_characters_and_long_lines_are_not_typed() {
        assert!(can_be_typed("echo a\n\techo é"));
        assert!(!can_be_typed("echo \x03"));
        assert!(!can_be_typed("echo \x7f"));
        assert!(!can_be_typed(&"x".repeat(MAX_LINE + 1)));
        assert!(!can_be_typed(&"x\n".repeat(MAX_TYPED)));
    }
}

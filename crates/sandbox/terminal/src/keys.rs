//! What is typed: special keys, and which texts can be typed at all.

mod named;

pub(crate) use named::{NamedKey, echo};

/// A control key such as `C-c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlKey {
    letter: char,
}

impl ControlKey {
    /// C-c.
    pub(crate) const INTERRUPT: Self = Self { letter: 'c' };

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

/// Longest part of a line that the kernel takes in line-by-line mode, with room for its end.
pub(crate) const MAX_LINE: usize = 4000;
/// What C-d sends.
pub(crate) const END_OF_INPUT: u8 = 4;
/// A text that is larger is handed over in a file: the shell reads what is typed byte by byte.
const MAX_TYPED: usize = 4096;

/// Whether a text arrives at the shell unchanged when it is typed: no control characters (the terminal would act on
/// them) and no line that is too long.
pub(crate) fn can_be_typed(text: &str) -> bool {
    text.len() <= MAX_TYPED
        && text.bytes().all(|byte| byte >= 0x20 && byte != 0x7f || byte == b'\n' || byte == b'\t')
        && text.split('\n').all(|line| line.len() <= MAX_LINE)
}

/// A text as it is typed in line-by-line mode, without the last Enter. A line that is longer than the kernel takes is
/// handed to the program in parts, each with the key for the end of input behind it: behind text that key only delivers
/// what is there.
pub fn in_parts(text: &str) -> Vec<u8> {
    let mut typed = Vec::with_capacity(text.len() + text.len() / MAX_LINE);
    let mut length = 0;
    for byte in text.bytes() {
        if byte == b'\n' {
            length = 0;
        } else if length == MAX_LINE {
            typed.push(END_OF_INPUT);
            length = 1;
        } else {
            length += 1;
        }
        typed.push(byte);
    }
    typed
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

    #[test]
    fn long_lines_are_typed_in_parts_and_nothing_else_is_changed() {
        assert_eq!(in_parts("a\nb"), b"a\nb");
        let line = "x".repeat(MAX_LINE);
        assert_eq!(in_parts(&line), line.as_bytes());
        let typed = String::from_utf8(in_parts(&format!("{line}{line}y\nz{line}"))).unwrap();
        assert_eq!(typed, format!("{line}\u{4}{line}\u{4}y\nz{}\u{4}x", &line[1..]));
    }
}

//! Keys with a name (`Up`, `F1`, `M-x`, `C-Left`), as the terminal multiplexer of the reference names them, and the bytes
//! that a terminal of its type sends for them (`bash-session` 5.2).

use super::ControlKey;

const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

/// A key that is known by its name, or a character with a modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedKey {
    base: Base,
    modifiers: Modifiers,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Modifiers {
    shift: bool,
    meta: bool,
    control: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// An arrow: its sequence ends with this letter.
    Arrow(char),
    /// Sent as `ESC [ number ~`; with a modifier its sequence ends with the letter, where there is one.
    Editing(u8, Option<char>),
    /// F1 to F4.
    Function(char),
    BackTab,
    /// A key that sends one byte.
    Byte(u8),
    Character(char),
}

impl NamedKey {
    /// A text is such a key when it is nothing but its name, letter for letter: `up` is a word.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mut rest, mut modifiers) = (text, Modifiers::default());
        loop {
            let modifier = match rest.as_bytes() {
                [b'S', b'-', _, ..] => &mut modifiers.shift,
                [b'M', b'-', _, ..] => &mut modifiers.meta,
                [b'C', b'-', _, ..] => &mut modifiers.control,
                _ => break,
            };
            *modifier = true;
            rest = rest.get(2..)?;
        }
        if let Some(base) = Base::named(rest) {
            return Some(Self { base, modifiers });
        }
        let character = |text: &str| {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none())
        };
        let letter = match rest.strip_prefix('^').and_then(character) {
            Some(letter) => {
                modifiers.control = true;
                letter
            }
            None => character(rest)?,
        };
        let is_key = if modifiers.control { control(letter).is_some() } else { modifiers.meta };
        is_key.then_some(Self { base: Base::Character(letter), modifiers })
    }

    /// The control key that this is another name of, if it is one that ends or stops a program, or its input.
    pub(crate) fn as_signal(self) -> Option<ControlKey> {
        let plain = self.modifiers == Modifiers { control: true, ..Modifiers::default() };
        match self.base {
            Base::Character(letter) if plain => {
                Some(ControlKey { letter }).filter(|key| key.shown_as().is_some() || key.byte() == Some(4))
            }
            _ => None,
        }
    }

    /// What a terminal sends for the key. In application mode the arrows send other sequences.
    pub(crate) fn bytes(self, application_cursor: bool) -> Vec<u8> {
        let Modifiers { shift, meta, control: with_control } = self.modifiers;
        let number = 1 + u8::from(shift) + 2 * u8::from(meta) + 4 * u8::from(with_control);
        let sequence = match self.base {
            Base::Arrow(letter) | Base::Function(letter) | Base::Editing(_, Some(letter)) if number > 1 => {
                format!("\x1b[1;{number}{letter}")
            }
            Base::Arrow(letter) if application_cursor => format!("\x1bO{letter}"),
            Base::Arrow(letter) => format!("\x1b[{letter}"),
            Base::Function(letter) => format!("\x1bO{letter}"),
            Base::Editing(key, None) if number > 1 => format!("\x1b[{key};{number}~"),
            Base::Editing(key, _) => format!("\x1b[{key}~"),
            Base::Byte(b'\t') if shift => "\x1b[Z".to_owned(),
            Base::BackTab => "\x1b[Z".to_owned(),
            Base::Byte(byte) => return with_meta(meta, &[if with_control { controlled(byte) } else { byte }]),
            Base::Character(letter) => {
                return match control(letter).filter(|_| with_control) {
                    Some(byte) => with_meta(meta, &[byte]),
                    None => with_meta(meta, letter.encode_utf8(&mut [0; 4]).as_bytes()),
                };
            }
        };
        sequence.into_bytes()
    }
}

impl Base {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "Up" => Self::Arrow('A'),
            "Down" => Self::Arrow('B'),
            "Right" => Self::Arrow('C'),
            "Left" => Self::Arrow('D'),
            "Home" => Self::Editing(1, Some('H')),
            "IC" | "Insert" => Self::Editing(2, None),
            "DC" | "Delete" => Self::Editing(3, None),
            "End" => Self::Editing(4, Some('F')),
            "PPage" | "PageUp" | "PgUp" => Self::Editing(5, None),
            "NPage" | "PageDown" | "PgDn" => Self::Editing(6, None),
            "F1" => Self::Function('P'),
            "F2" => Self::Function('Q'),
            "F3" => Self::Function('R'),
            "F4" => Self::Function('S'),
            "F5" => Self::Editing(15, None),
            "F6" => Self::Editing(17, None),
            "F7" => Self::Editing(18, None),
            "F8" => Self::Editing(19, None),
            "F9" => Self::Editing(20, None),
            "F10" => Self::Editing(21, None),
            "F11" => Self::Editing(23, None),
            "F12" => Self::Editing(24, None),
            "BTab" => Self::BackTab,
            "Enter" => Self::Byte(b'\r'),
            "Escape" => Self::Byte(ESCAPE),
            "Tab" => Self::Byte(b'\t'),
            "Space" => Self::Byte(b' '),
            "BSpace" => Self::Byte(DELETE),
            _ => return None,
        })
    }
}

fn control(letter: char) -> Option<u8> {
    ControlKey { letter }.byte()
}

/// The byte of a key with a name, with the control key held.
fn controlled(byte: u8) -> u8 {
    match byte {
        b' ' => 0,
        DELETE => 8,
        other => other,
    }
}

fn with_meta(meta: bool, bytes: &[u8]) -> Vec<u8> {
    let escape = if meta { &[ESCAPE][..] } else { &[] };
    [escape, bytes].concat()
}

/// How a terminal in line-by-line mode shows control characters that are typed.
pub(crate) fn echo(bytes: &[u8]) -> String {
    let mut shown = Vec::new();
    for &byte in bytes {
        match byte {
            b'\t' | b'\n' | b'\r' => {}
            0..0x20 => shown.extend([b'^', byte + 0x40]),
            // It takes a character away, and there is none.
            DELETE => {}
            other => shown.push(other),
        }
    }
    String::from_utf8_lossy(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> Option<String> {
        let bytes = NamedKey::parse(text)?.bytes(false);
        Some(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn names_of_keys_are_what_a_terminal_sends_for_them() {
        for (name, bytes) in [
            ("Up", "\x1b[A"),
            ("Down", "\x1b[B"),
            ("Right", "\x1b[C"),
            ("Left", "\x1b[D"),
            ("Enter", "\r"),
            ("Escape", "\x1b"),
            ("Tab", "\t"),
            ("BTab", "\x1b[Z"),
            ("S-Tab", "\x1b[Z"),
            ("Space", " "),
            ("BSpace", "\x7f"),
            ("Home", "\x1b[1~"),
            ("End", "\x1b[4~"),
            ("IC", "\x1b[2~"),
            ("Delete", "\x1b[3~"),
            ("PageUp", "\x1b[5~"),
            ("PPage", "\x1b[5~"),
            ("PgDn", "\x1b[6~"),
            ("F1", "\x1bOP"),
            ("F4", "\x1bOS"),
            ("F5", "\x1b[15~"),
            ("F12", "\x1b[24~"),
            ("^x", "\x18"),
            ("^[", "\x1b"),
            ("M-x", "\x1bx"),
            ("M-é", "\x1bé"),
            ("M-Enter", "\x1b\r"),
            ("C-Space", "\0"),
            ("C-M-x", "\x1b\x18"),
            ("M-^x", "\x1b\x18"),
            ("S-Up", "\x1b[1;2A"),
            ("M-Down", "\x1b[1;3B"),
            ("C-Left", "\x1b[1;5D"),
            ("C-S-Right", "\x1b[1;6C"),
            ("S-M-C-Home", "\x1b[1;8H"),
            ("C-End", "\x1b[1;5F"),
            ("S-F1", "\x1b[1;2P"),
            ("C-F5", "\x1b[15;5~"),
            ("C-DC", "\x1b[3;5~"),
        ] {
            assert_eq!(sent(name).as_deref(), Some(bytes), "{name}");
        }
    }

    #[test]
    fn every_other_text_is_text() {
        for text in [
            "", "up", "UP", "Up Down", "Uplink", "F0", "F13", "F", "x", "^", "^5", "^xy", "S-x", "C-ab", "C-5", "M-",
            "M-xy", "C-", "S-", "-", "enter", "é",
        ] {
            assert_eq!(sent(text), None, "{text}");
        }
    }

    #[test]
    fn only_arrows_know_the_application_mode_and_only_without_a_modifier() {
        for (name, bytes) in [("Up", "\x1bOA"), ("C-Up", "\x1b[1;5A"), ("Home", "\x1b[1~"), ("F1", "\x1bOP")] {
            assert_eq!(NamedKey::parse(name).unwrap().bytes(true), bytes.as_bytes(), "{name}");
        }
    }

    #[test]
    fn other_names_of_keys_that_end_something_are_those_keys() {
        for (name, key) in [("^c", Some('C')), ("^D", Some('D')), ("^\\", Some('\\')), ("^x", None), ("C-M-c", None)] {
            assert_eq!(NamedKey::parse(name).unwrap().as_signal().map(ControlKey::name), key, "{name}");
        }
    }

    #[test]
    fn control_characters_are_shown_as_the_kernel_shows_them() {
        assert_eq!(echo(b"\x1b[A"), "^[[A");
        assert_eq!(echo(b"\x1b\x18"), "^[^X");
        assert_eq!(echo(b"\t \r\x7f"), " ");
    }
}

//! What the programs of a terminal switch on in ours, so that it can be switched off when they are left, and what they
//! ask it, so that an old question is not answered again.

/// Longest sequence that is looked into; longer ones are titles, images and clipboards.
const LONGEST: usize = 128;

/// Private modes that programs switch on, and that a shell does not expect.
const SWITCHED_ON: [u16; 15] = [1049, 1047, 47, 1, 5, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004];
/// The cursor, which they switch off.
const CURSOR: u16 = 25;

/// Reads the bytes for a terminal.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    place: Place,
    /// The sequence so far, with its escape character.
    held: Vec<u8>,
    /// Modes that are not as they were, in the order in which they were changed.
    changed: Vec<u16>,
    keypad: bool,
    keyboard_levels: usize,
    styled: bool,
}

/// Where in a sequence we are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Text,
    /// Behind an escape character.
    Escape,
    /// In a control sequence, which ends with a letter.
    Control,
    /// In a string, which ends with `BEL` or `ESC \`.
    String,
    /// Behind an escape character in a string.
    StringEscape,
}

impl Sequences {
    /// Takes what is shown as it is.
    pub(super) fn live(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        shown.extend_from_slice(bytes);
        self.read(bytes, |_, _| {});
    }

    /// Takes what was shown before, and leaves out the questions in it.
    pub(super) fn replayed(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        self.read(bytes, |part, is_question| {
            if !is_question {
                shown.extend_from_slice(part);
            }
        });
    }

    /// The end of what was shown before: shows what of a sequence was left out until its end would be known.
    pub(super) fn end_of_replay(&self, shown: &mut Vec<u8>) {
        shown.extend_from_slice(&self.held);
    }

    /// Gives text and whole sequences to a function, the latter with whether they are questions.
    fn read(&mut self, bytes: &[u8], mut part: impl FnMut(&[u8], bool)) {
        let mut rest = bytes;
        while let Some(byte) = rest.first().copied() {
            if self.place == Place::Text {
                let until = rest.iter().position(|byte| *byte == 0x1b).unwrap_or(rest.len());
                let (text, more) = rest.split_at(until);
                for piece in text.split_inclusive(|byte| *byte == 0x05) {
                    // The one question that is a character.
                    part(piece.strip_suffix(&[0x05]).unwrap_or(piece), false);
                }
                rest = more;
                if !rest.is_empty() {
                    self.place = Place::Escape;
                    self.held.clear();
                    self.held.push(0x1b);
                    rest = rest.get(1..).unwrap_or_default();
                }
                continue;
            }
            rest = rest.get(1..).unwrap_or_default();
            self.held.push(byte);
            self.place = self.next_place(byte);
            if self.place == Place::Text {
                let held = std::mem::take(&mut self.held);
                self.note(&held);
                part(&held, is_question(&held));
            } else if self.held.len() >= LONGEST {
                let held = std::mem::take(&mut self.held);
                part(&held, false);
            }
        }
    }

    fn next_place(&self, byte: u8) -> Place {
        match (self.place, byte) {
            (Place::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Place::String,
            // Intermediate characters, as in the choice of a character set.
            (Place::Escape, 0x20..=0x2f) => Place::Escape,
            (Place::Escape, b'[') | (Place::Control, 0x20..=0x3f) => Place::Control,
            (Place::String, 0x1b) => Place::StringEscape,
            (Place::StringEscape, byte) if byte != b'\\' => Place::String,
            (Place::String, byte) if byte != 0x07 => Place::String,
            _ => Place::Text,
        }
    }

    fn note(&mut self, sequence: &[u8]) {
        match sequence {
            b"\x1b=" => self.keypad = true,
            b"\x1b>" => self.keypad = false,
            b"\x1bc" => *self = Self::default(),
            [0x1b, b'[', b'>', .., b'u'] => self.keyboard_levels += 1,
            [0x1b, b'[', b'<', .., b'u'] => self.keyboard_levels = self.keyboard_levels.saturating_sub(1),
            [0x1b, b'[', b'?', modes @ .., set @ (b'h' | b'l')] => {
                for mode in modes.split(|byte| *byte == b';') {
                    let mode = std::str::from_utf8(mode).ok().and_then(|mode| mode.parse().ok());
                    if let Some(mode) = mode {
                        self.switch(mode, *set == b'h');
                    }
                }
            }
            [0x1b, b'[', codes @ .., b'm'] => self.styled = !codes.is_empty() && codes != b"0",
            _ => {}
        }
    }

    fn switch(&mut self, mode: u16, on: bool) {
        if mode != CURSOR && !SWITCHED_ON.contains(&mode) {
            return;
        }
        self.changed.retain(|known| *known != mode);
        if on != (mode == CURSOR) {
            self.changed.push(mode);
        }
    }

    /// What puts our terminal back.
    pub(super) fn undo(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.place != Place::Text {
            // Ends a sequence that was cut off, and a string, too.
            bytes.extend_from_slice(b"\x1b\\");
        }
        if self.styled {
            bytes.extend_from_slice(b"\x1b[m");
        }
        for _level in 0..self.keyboard_levels.min(16) {
            bytes.extend_from_slice(b"\x1b[<u");
        }
        for mode in self.changed.iter().rev() {
            let letter = if *mode == CURSOR { 'h' } else { 'l' };
            bytes.extend_from_slice(format!("\x1b[?{mode}{letter}").as_bytes());
        }
        if self.keypad {
            bytes.extend_from_slice(b"\x1b>");
        }
        bytes
    }
}

/// Whether a terminal answers to a sequence.
fn is_question(sequence: &[u8]) -> bool {
    match sequence {
        [0x1b, b'[', middle @ .., last] => match last {
            b'c' | b'n' | b'x' => true,
            b'p' => middle.ends_with(b"$"),
            b'q' => middle.starts_with(b">"),
            b'u' => middle.starts_with(b"?"),
            b't' => {
                let first = middle.split(|byte| *byte == b';').next().unwrap_or_default();
                matches!(first, b"11" | b"13" | b"14" | b"15" | b"16" | b"18" | b"19" | b"20" | b"21")
            }
            _ => false,
        },
        [0x1b, b']', middle @ ..] => middle.windows(2).any(|pair| pair == b";?"),
        [0x1b, b'Z'] | [0x1b, b'P', b'$' | b'+', b'q', ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undo(bytes: &[u8]) -> String {
        let mut results: Vec<Vec<u8>> = (1..=bytes.len())
            .map(|size| {
                let (mut sequences, mut shown) = (Sequences::default(), Vec::new());
                bytes.chunks(size).for_each(|piece| sequences.live(piece, &mut shown));
                assert_eq!(shown, bytes);
                sequences.undo()
            })
            .collect();
        results.dedup();
        assert_eq!(results.len(), 1, "{bytes:?}");
        String::from_utf8(results.remove(0)).unwrap()
    }

    #[test]
    fn what_is_left_switched_on_is_switched_off_in_reverse_order() {
        for (bytes, undone) in [
            (&b"plain text\r\n"[..], ""),
            (b"\x1b[?1049h\x1b[?1h\x1b=\x1b[?25l\x1b[7mvi", "\x1b[m\x1b[?25h\x1b[?1l\x1b[?1049l\x1b>"),
            (b"\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l", ""),
            (b"\x1b[?1000;1006h\x1b[?2004hx", "\x1b[?2004l\x1b[?1006l\x1b[?1000l"),
            (b"\x1b[?7h\x1b[?2026h", ""),
            (b"\x1b[31mred\x1b[0m", ""),
            (b"\x1b[31mred", "\x1b[m"),
            (b"\x1b[>1u\x1b[>5u\x1b[<u", "\x1b[<u"),
            (b"\x1b[?2004h\x1bc", ""),
            (b"\x1b]0;title", "\x1b\\"),
            (b"\x1b]0;\x1b[?25l\x07", ""),
            (b"\x1b(B\x1b[?25l", "\x1b[?25h"),
        ] {
            assert_eq!(undo(bytes), undone, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn questions_are_left_out_of_what_is_shown_again_and_nothing_else_is() {
        let question_free = [
            "text \x1b[1;31mred\x1b[m\r\n",
            "\x1b[2J\x1b[H\x1b[?1049h",
            "\x1b]0;what; now?\x07",
            "\x1b]8;;http://a/?b\x1b\\link",
            "\x1b[8;24;80t",
            "\x1b[!p\x1b[2 q\x1b(0",
            "grün 🦀",
        ];
        let questions = [
            "\x1b[c",
            "\x1b[>c",
            "\x1b[0c",
            "\x1b[6n",
            "\x1b[?6n",
            "\x1b[?2026$p",
            "\x1b[>q",
            "\x1b[?u",
            "\x1b[14t",
            "\x1b]11;?\x1b\\",
            "\x1b]4;1;?\x07",
            "\x1bP+q544e\x1b\\",
            "\x1bP$qm\x1b\\",
            "\x05",
            "\x1bZ",
        ];
        let mut all = String::new();
        for (number, question) in questions.iter().enumerate() {
            all.push_str(question);
            all.push_str(question_free[number % question_free.len()]);
        }
        let expected: String = (0..questions.len()).map(|number| question_free[number % question_free.len()]).collect();
        for size in 1..40 {
            let (mut sequences, mut shown) = (Sequences::default(), Vec::new());
            all.as_bytes().chunks(size).for_each(|piece| sequences.replayed(piece, &mut shown));
            sequences.end_of_replay(&mut shown);
            assert_eq!(String::from_utf8_lossy(&shown), expected, "{size}");
        }
    }

    #[test]
    fn long_strings_are_passed_on_and_cost_no_memory() {
        let image = format!("\x1bPq{}\x1b\\end\x1b[?25l", "#".repeat(100_000));
        let (mut sequences, mut shown) = (Sequences::default(), Vec::new());
        sequences.replayed(image.as_bytes(), &mut shown);
        assert_eq!(shown, image.as_bytes());
        assert!(sequences.held.capacity() <= 2 * LONGEST);
        assert_eq!(sequences.undo(), b"\x1b[?25h");
    }
}

//! Bytes of a terminal as a client gets them: text, without escape sequences, and with the ends of lines of a file.

use std::fmt::Write as _;

/// Bytes as text. Those that are no UTF-8 are shown as `\xNN`.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    push(&mut text, bytes);
    text
}

/// Puts bytes behind a text, those that are no UTF-8 as `\xNN`.
pub(crate) fn push(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        push_escaped(text, chunk.invalid());
    }
}

/// Puts bytes behind a text as `\xNN`.
pub(crate) fn push_escaped(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing into a string cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

/// How many bytes at the end may be the beginning of a character.
pub(crate) fn unfinished(bytes: &[u8]) -> usize {
    let tail = bytes.get(bytes.len().saturating_sub(4)..).unwrap_or_default();
    match std::str::from_utf8(tail.get(first_of_character(tail)..).unwrap_or_default()) {
        Err(error) if error.error_len().is_none() => tail.len() - first_of_character(tail) - error.valid_up_to(),
        _ => 0,
    }
}

/// Where the last byte stands that begins a character.
fn first_of_character(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(bytes.len())
}

/// A text without escape sequences (`ESC [@-_] [0-?]* [ -/]* [@-~]`), and then with `\n` where the terminal has `\r\n`.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\u{1b}', '\n']) {
        plain.push_str(rest.get(..at).unwrap_or_default());
        let found = rest.get(at..).unwrap_or_default();
        let length = if found.starts_with('\n') {
            // Of several the last one is the terminal's.
            if plain.ends_with('\r') {
                plain.pop();
            }
            plain.push('\n');
            1
        } else if let Some(length) = sequence(found.as_bytes()) {
            length
        } else {
            plain.push('\u{1b}');
            1
        };
        rest = found.get(length..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
}

/// The length of the escape sequence that these bytes begin with.
fn sequence(bytes: &[u8]) -> Option<usize> {
    let (kind, rest) = bytes.get(1..)?.split_first()?;
    if !(b'@'..=b'_').contains(kind) {
        return None;
    }
    let parameters = rest.iter().take_while(|byte| (b'0'..=b'?').contains(*byte)).count();
    let rest = rest.get(parameters..)?;
    let between = rest.iter().take_while(|byte| (b' '..=b'/').contains(*byte)).count();
    rest.get(between).filter(|byte| (b'@'..=b'~').contains(*byte))?;
    Some(2 + parameters + between + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_ends_of_lines_go_and_all_else_stays() {
        for (bytes, expected) in [
            (&b"a\r\nb\r\n"[..], "a\nb\n"),
            (b"\x1b[1;31mred\x1b[0m", "red"),
            (b"\x1b[?2004hx\x1b[?2004l", "x"),
            (b"50 %\r100 %", "50 %\r100 %"),
            (b"a\r\r\nb\r\n\r\n", "a\r\nb\n\n"),
            (b"a\r\x1b[K\nb\n\r", "a\nb\n\r"),
            (b"\x1b", "\x1b"),
            (b"\x1b[", "\x1b["),
            (b"\x1b[31", "\x1b[31"),
            (b"\x1b(B", "\x1b(B"),
            ("gr\u{fc}n \u{1f600}".as_bytes(), "gr\u{fc}n \u{1f600}"),
            (b"\xff\xfea", "\\xff\\xfea"),
        ] {
            assert_eq!(plain(&text(bytes)), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_character_may_be_on_its_way() {
        let smile = "\u{1f600}".as_bytes();
        for (bytes, expected) in [
            (&b"abc"[..], 0),
            (&smile[..1], 1),
            (&smile[..3], 3),
            (smile, 0),
            (b"\xff", 0),
            (b"a\xc3", 1),
            (b"\x80\x80\x80\x80\x80", 0),
            (b"", 0),
        ] {
            assert_eq!(unfinished(bytes), expected, "{bytes:?}");
        }
    }
}

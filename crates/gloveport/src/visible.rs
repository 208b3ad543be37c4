//! Foreign text on a person's terminal: what a terminal would obey is shown and does nothing.
//!
//! Names, contents, logs and messages of a sandbox, a server or a program can have control characters, which move the
//! cursor, hide lines or type into the shell, and marks that turn the direction of writing around, by which a name reads
//! as another one. The output of a command that somebody runs is not text in this sense: it goes to the terminal as it
//! is, as if the command ran there.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

/// Whether a terminal would do something else with it than show it.
const fn is_obeyed(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A name or a cell of a table: one line, with a question mark in place of each such character.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_obeyed(c) { '?' } else { c }).collect()
}

/// A text as one line of at most this many characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    let line = one_line(text.trim());
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// A text of several lines. Such a character is written as JSON writes it, so that JSON stays JSON.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut kept = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let ends_line = c == '\r' && characters.peek().is_some_and(|(_, next)| *next == '\n');
        if !is_obeyed(c) || matches!(c, '\n' | '\t') || ends_line {
            continue;
        }
        shown.push_str(&text[kept..at]);
        kept = at + c.len_utf8();
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing into a string cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    if kept == 0 {
        return text.into();
    }
    shown.push_str(&text[kept..]);
    shown.into()
}

/// Shows a stream of bytes, whose pieces may end within a character.
#[derive(Debug)]
pub(crate) struct Stream<W> {
    out: W,
    /// The beginning of a character, at most three bytes; or a carriage return whose line may end.
    begun: Vec<u8>,
}

impl<W: Write> Stream<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }

    /// Writes what is complete.
    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut end = complete(&bytes);
        if bytes[..end].ends_with(b"\r") {
            end -= 1;
        }
        self.begun = bytes.split_off(end);
        self.out.write_all(lines(&String::from_utf8_lossy(&bytes)).as_bytes())?;
        self.out.flush()
    }

    /// Writes what was begun and never became a character.
    pub(crate) fn end(mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        self.out.write_all(lines(&String::from_utf8_lossy(&begun)).as_bytes())?;
        self.out.flush()
    }
}

/// How many bytes come before a character that may go on in the next piece of a stream.
pub(crate) fn complete(bytes: &[u8]) -> usize {
    let begun = bytes.utf8_chunks().last().map_or(&[][..], |last| last.invalid());
    let may_go_on = std::str::from_utf8(begun).is_err_and(|error| error.error_len().is_none());
    if may_go_on { bytes.len() - begun.len() } else { bytes.len() }
}

/// Standard error for the log, whose colours are kept: the log escapes those of others itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let mut shown = String::with_capacity(text.len());
        for (at, part) in text.split('\x1b').enumerate() {
            let colour = part.find('m').filter(|end| {
                part.starts_with('[') && part[1..*end].bytes().all(|byte| byte.is_ascii_digit() || byte == b';')
            });
            match (at, colour) {
                (0, _) => {}
                (_, Some(_)) => shown.push('\x1b'),
                (_, None) => shown.push_str("\\u001b"),
            }
            shown.push_str(&lines(part));
        }
        io::stderr().write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        for (text, on_one_line, on_lines) in [
            ("plain ä 漢 👩\u{200d}🚀", "plain ä 漢 👩\u{200d}🚀", "plain ä 漢 👩\u{200d}🚀"),
            ("a\tb\r\nc\n", "a?b??c?", "a\tb\r\nc\n"),
            ("over\rwritten", "over?written", "over\\u000dwritten"),
            ("\x1b]0;title\x07", "?]0;title?", "\\u001b]0;title\\u0007"),
            ("\u{9b}31m", "?31m", "\\u009b31m"),
            ("photo\u{202e}gnp.exe", "photo?gnp.exe", "photo\\u202egnp.exe"),
            ("\u{e0041}", "?", "\\udb40\\udc41"),
            ("\x7f\0", "??", "\\u007f\\u0000"),
        ] {
            assert_eq!((one_line(text).as_str(), &*lines(text)), (on_one_line, on_lines), "{text:?}");
        }
    }

    #[test]
    fn a_stream_shows_the_same_in_any_pieces() {
        let bytes = "ä\r\n\u{202e}\x1b[2J漢\r".as_bytes();
        for (first, second) in (0..=bytes.len()).flat_map(|a| (a..=bytes.len()).map(move |b| (a, b))) {
            let mut out = Vec::new();
            let mut stream = Stream::new(&mut out);
            for piece in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                stream.write(piece).unwrap();
            }
            stream.end().unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), "ä\r\n\\u202e\\u001b[2J漢\\u000d", "{first} {second}");
        }
        let mut out = Vec::new();
        let mut stream = Stream::new(&mut out);
        stream.write(b"\xff\xf0\x9f").unwrap();
        stream.end().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\u{fffd}\u{fffd}");
    }
}

//! Output within a bound, and its lines as they come.

use std::{collections::VecDeque, mem};

use gloveport_protocol::truncate::NOTICE;

/// Bytes kept of the beginning, and as many of the end, of what is told at once. What an observation shows of visible
/// output is far less.
const KEPT: usize = 32 * 1024 * 1024;
/// Longest piece without an end of line that a listener waits for.
const LONGEST_LINE: usize = 64 * 1024;

/// Turns CR LF and CR into LF, across pieces.
#[derive(Debug, Default)]
pub(crate) struct Newlines {
    /// The last byte was a CR, which is an LF already.
    behind_cr: bool,
}

impl Newlines {
    /// The piece with other ends of lines.
    pub(crate) fn convert(&mut self, piece: &mut Vec<u8>) {
        if piece.is_empty() {
            return;
        }
        if mem::take(&mut self.behind_cr) && piece.first() == Some(&b'\n') {
            piece.remove(0);
        }
        self.behind_cr = piece.last() == Some(&b'\r');
        if memchr::memchr(b'\r', piece).is_none() {
            return;
        }
        let mut converted = Vec::with_capacity(piece.len());
        let mut bytes = piece.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte == b'\r' {
                bytes.next_if_eq(&b'\n');
                converted.push(b'\n');
            } else {
                converted.push(byte);
            }
        }
        *piece = converted;
    }
}

/// What a command wrote since it was last told: the beginning and the end of it, if it is very much.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    is_cut: bool,
}

impl Transcript {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(first);
        // All but the last is only passed through.
        let rest = &rest[rest.len().saturating_sub(KEPT)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(KEPT);
        self.is_cut |= excess > 0 || bytes.len() - first.len() > rest.len();
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// All of it as text, which is forgotten here.
    pub(crate) fn take(&mut self) -> String {
        let Self { mut head, tail, is_cut } = mem::take(self);
        if is_cut {
            head.extend_from_slice(NOTICE.as_bytes());
        }
        head.extend(tail);
        String::from_utf8(head).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

/// Cuts output into lines for a listener.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of a line that has no end yet.
    pending: Vec<u8>,
}

impl Lines {
    /// Tells the lines that are complete now.
    pub(crate) fn push(&mut self, bytes: &[u8], mut tell: impl FnMut(&str)) {
        self.pending.extend_from_slice(bytes);
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', &self.pending) {
            tell(&String::from_utf8_lossy(&self.pending[from..=end]));
            from = end + 1;
        }
        self.pending.drain(..from);
        if self.pending.len() > LONGEST_LINE {
            self.flush(tell);
        }
    }

    /// Tells what has no end of line.
    pub(crate) fn flush(&mut self, mut tell: impl FnMut(&str)) {
        if !self.pending.is_empty() {
            tell(&String::from_utf8_lossy(&mem::take(&mut self.pending)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_lines_are_those_of_text_mode_wherever_the_pieces_are_cut() {
        let text = b"a\r\nb\rc\n\r\n\r\rd\r";
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut newlines = Newlines::default();
                let mut converted = Vec::new();
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    let mut piece = piece.to_vec();
                    newlines.convert(&mut piece);
                    converted.extend(piece);
                }
                assert_eq!(String::from_utf8(converted).unwrap(), "a\nb\nc\n\n\n\nd\n", "{first} {second}");
            }
        }
    }

    #[test]
    fn very_much_output_keeps_its_beginning_and_its_end() {
        let mut transcript = Transcript::default();
        for byte in [b'a', b'b', b'c', b'd'] {
            transcript.push(&vec![byte; KEPT / 2]);
        }
        assert_eq!(transcript.take().len(), 2 * KEPT);
        for byte in [b'a', b'b', b'c', b'd', b'e'] {
            transcript.push(&vec![byte; KEPT / 2]);
        }
        let text = transcript.take();
        assert_eq!(text.len(), 2 * KEPT + NOTICE.len());
        assert!(text.starts_with('a') && text.ends_with('e'));
        assert_eq!(&text[KEPT - 1..=KEPT + NOTICE.len()], format!("b{NOTICE}d"));
        assert_eq!(transcript.take(), "");
        let mut at_once = Transcript::default();
        at_once.push(&vec![b'x'; 3 * KEPT]);
        assert_eq!(at_once.take().len(), 2 * KEPT + NOTICE.len());
    }

    #[test]
    fn lines_are_told_whole_and_the_rest_at_the_end() {
        let mut lines = Lines::default();
        let mut told = Vec::new();
        for piece in ["a\nb", "c\n", "", "é"] {
            lines.push(piece.as_bytes(), |line| told.push(line.to_owned()));
        }
        assert_eq!(told, ["a\n", "bc\n"]);
        lines.flush(|line| told.push(line.to_owned()));
        lines.flush(|line| told.push(line.to_owned()));
        assert_eq!(told, ["a\n", "bc\n", "é"]);
    }
}

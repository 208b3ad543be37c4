//! The lines that a build says: told as they come, and the last ones kept for its error.

use std::collections::VecDeque;

use crate::builder::Progress;

/// Most lines that are kept.
const KEPT: usize = 25;
/// Longest line; the rest of it is dropped.
const LONGEST: usize = 2000;

/// Takes pieces of text and tells lines.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    progress: &'a Progress,
    begun: Vec<u8>,
    last: VecDeque<String>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(progress: &'a Progress) -> Self {
        Self { progress, begun: Vec::new(), last: VecDeque::new() }
    }

    /// More text. A carriage return ends a line, too: bars of progress use it.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            match byte {
                b'\n' | b'\r' => self.end_line(),
                _ if self.begun.len() < LONGEST => self.begun.push(*byte),
                _ => {}
            }
        }
    }

    /// One line.
    pub(crate) fn line(&mut self, line: &str) {
        self.end_line();
        self.push(line.as_bytes());
        self.end_line();
    }

    /// The last lines, without those that begin one before.
    pub(crate) fn into_last(mut self) -> Vec<String> {
        self.end_line();
        self.last.into()
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.begun);
        // What programs say may move the cursor or colour the terminal of whoever reads.
        let text: String = text.trim_end().chars().filter(|letter| *letter == '\t' || !letter.is_control()).collect();
        self.begun.clear();
        if text.trim().is_empty() {
            return;
        }
        self.progress.tell(&text);
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(text);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn lines_are_told_as_they_end_and_the_last_ones_kept() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&told);
        let progress = Progress::to(move |line| sink.lock().unwrap().push(line.to_owned()));
        let mut lines = Lines::new(&progress);
        lines.push(b"one\ntw");
        assert_eq!(*told.lock().unwrap(), ["one"]);
        lines.push(b"o\r\n\n  \n\x1b[31mred\x07 \xff");
        for number in 0..KEPT {
            lines.line(&number.to_string());
        }
        assert_eq!(told.lock().unwrap()[1..4], ["two", "[31mred \u{fffd}", "0"]);
        let last = lines.into_last();
        assert_eq!((last.len(), last.first().unwrap().as_str()), (KEPT, "0"));
    }

    #[test]
    fn a_line_without_an_end_does_not_grow() {
        let mut lines = Lines::new(&Progress(None));
        lines.push(&[b'x'; 3 * LONGEST]);
        assert_eq!(lines.into_last(), ["x".repeat(LONGEST)]);
    }
}

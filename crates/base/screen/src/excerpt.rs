//! The beginning and the end of what a program writes, as a terminal would show them.

use std::collections::VecDeque;

use crate::{Renderer, Size};

/// The beginning and the end of what a program wrote.
#[derive(Debug)]
pub struct Excerpt {
    each: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Excerpt {
    /// Nothing so far. So many bytes of the beginning are kept, and as many of the end.
    pub const fn new(each: usize) -> Self {
        Self { each, head: Vec::new(), tail: VecDeque::new(), left_out: 0 }
    }

    /// Takes what was written next.
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.each - self.head.len()));
        self.head.extend_from_slice(head);
        // Of much at once only the end can stay.
        let skipped = rest.len().saturating_sub(self.each);
        let rest = rest.get(skipped..).unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(self.each);
        self.tail.drain(..over);
        self.tail.extend(rest);
        self.left_out += (skipped + over) as u64;
    }

    /// Bytes that are kept.
    pub fn kept(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Bytes between the beginning and the end that are not kept.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// What a terminal would show, with `notice` on a line of its own where something is left out.
    pub fn text(&self, notice: impl FnOnce(u64) -> String) -> String {
        // Each line has a byte at least.
        let mut screen = Renderer::new(Size { history: 3 * self.each, ..Size::default() });
        screen.feed(&self.head);
        if self.left_out > 0 {
            screen.feed(format!("\r\n{}\r\n", notice(self.left_out)).as_bytes());
        }
        let (one, other) = self.tail.as_slices();
        screen.feed(one);
        screen.feed(other);
        screen.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_stay_and_what_is_between_is_told() {
        let notice = |count| format!("[{count}]");
        for pieces in [&["abcdef"][..], &["a", "b", "c", "d", "e", "f"], &["abc", "def"]] {
            let mut excerpt = Excerpt::new(2);
            for piece in pieces {
                excerpt.push(piece.as_bytes());
            }
            assert_eq!((excerpt.kept(), excerpt.left_out()), (4, 2));
            assert_eq!(excerpt.text(notice), "ab\n[2]\nef", "{pieces:?}");
        }
        let mut whole = Excerpt::new(100);
        whole.push(b"\x1b[31mred\x1b[0m\r\n10%\r100%");
        assert_eq!(whole.text(notice), "red\n100%");
    }
}

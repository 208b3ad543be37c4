//! Turns the bytes that programs write to a pseudo-terminal into the text that a terminal would show.
//!
//! A [`Renderer`] is a terminal without colours: a screen of fixed size with scroll-back above it. It exists so that
//! output reads as a person would see it, with progress bars overwritten, escape sequences gone and long lines in one
//! piece. Its memory is bounded whatever the program sends.
//!
//! The work is split like this: `parser` finds text and escape sequences in the bytes, `screen` knows what they do to
//! the cursor and the cells, `grid` holds the rows, `row` is one line of cells and `history` the text that has left the
//! screen.
//!
//! Of long output an [`Excerpt`] keeps the beginning and the end. What a cell of a notebook shows is no terminal: a
//! [`Collector`] keeps its beginning and its end, without colours.

mod collect;
mod excerpt;
mod grid;
mod history;
mod parser;
mod row;
mod screen;
#[cfg(test)]
mod tests;

use memchr::memchr_iter;

pub use collect::Collector;
pub use excerpt::Excerpt;
use parser::Parser;
use screen::{Arrows, Screen};

/// Size of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Cells of a row, at least 1.
    pub columns: u16,
    /// Rows of the screen, at least 1.
    pub rows: u16,
    /// Rows of scroll-back above the screen.
    pub history: usize,
}

impl Default for Size {
    /// 1000 columns and rows, 10,000 rows of history. A shell keeps 13 more (`bash-session` 1).
    fn default() -> Self {
        Self { columns: 1000, rows: 1000, history: 10_000 }
    }
}

/// Text that a terminal of `columns` x `rows` with `history` lines of scroll-back would show.
#[derive(Debug)]
pub struct Renderer {
    parser: Parser,
    screen: Screen,
}

impl Renderer {
    /// A blank screen with the cursor in its upper left corner.
    pub fn new(size: Size) -> Self {
        Self { parser: Parser::default(), screen: Screen::new(size) }
    }

    /// Shows more output. How it is split into calls makes no difference.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(&mut self.screen, bytes);
    }

    /// All lines kept, oldest first, joined by LF.
    ///
    /// Rows that were wrapped at the right edge are one line again. Trailing blanks of every line and trailing empty
    /// lines are left out. While a program uses the alternate screen this is what it shows there.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        self.screen.write_to(&mut out);
        // Rows hold whole characters only, so the lossy branch is never taken.
        String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Rows were pushed out of the history since the last [`clear`](Self::clear).
    pub fn lines_lost(&self) -> bool {
        self.screen.lines_lost()
    }

    /// The program has erased the screen or the history since the last [`clear`](Self::clear): by ED 2, ED 3, RIS, or
    /// ED 0 in the upper left corner, which is how some terminal types clear. The alternate screen does not count.
    pub fn erased(&self) -> bool {
        self.screen.erased
    }

    /// Number of lines that [`text`](Self::text) shows. Costs as much as the text.
    pub fn line_count(&self) -> usize {
        let mut out = Vec::new();
        self.screen.write_to(&mut out);
        if out.is_empty() { 0 } else { memchr_iter(b'\n', &out).count() + 1 }
    }

    /// Changes whenever [`text`](Self::text) could have changed; moving the cursor alone does not change it.
    pub fn revision(&self) -> u64 {
        self.screen.revision
    }

    /// A program has switched to the alternate screen and not yet back.
    pub fn in_alternate_screen(&self) -> bool {
        self.screen.in_alternate()
    }

    /// A program has asked for the other sequences of the arrow keys (DECCKM).
    pub fn application_cursor(&self) -> bool {
        self.screen.arrows == Arrows::Application
    }

    /// A blank screen without history for the next command.
    ///
    /// An unfinished escape sequence or character is forgotten and the memory of large output given back. Modes stay,
    /// and so does the alternate screen; only the scroll region is the whole screen again.
    pub fn clear(&mut self) {
        self.parser = Parser::default();
        self.screen.start_over();
    }

    /// Memory held apart from the value itself, in bytes; approximate.
    pub fn heap_bytes(&self) -> usize {
        self.screen.heap_bytes()
    }
}

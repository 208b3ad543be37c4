//! The cells of the screen, the cursor, and everything that moves or changes them.

use memchr::{memchr, memchr_iter};
use unicode_width::UnicodeWidthChar as _;

use super::Size;
use super::grid::Grid;
use super::history::{self, History};

/// Marks that a row keeps, as a multiple of its columns.
const MARKS_PER_COLUMN: usize = 2;

/// Position of the cursor. `column` equals the number of columns while a wrap is due before the next character.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cursor {
    row: usize,
    column: usize,
}

/// Whether the screen scrolls into the history.
#[derive(Debug)]
enum Active {
    Main,
    Alternate {
        /// The rows of the main screen, and the cursor if leaving restores it.
        main: Grid,
        cursor: Option<Cursor>,
    },
}

/// How the alternate screen treats the cursor of the main screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorOnSwitch {
    Keep,
    SaveAndRestore,
}

/// Which sequences a program has asked for when an arrow key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrows {
    Cursor,
    Application,
}

/// Part of a row or of the screen, seen from the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    After,
    Before,
    All,
}

/// The screen with its history.
#[derive(Debug)]
pub(super) struct Screen {
    columns: usize,
    height: usize,
    grid: Grid,
    history: History,
    cursor: Cursor,
    saved: Cursor,
    /// First and last row that scroll.
    top: usize,
    bottom: usize,
    autowrap: bool,
    insert: bool,
    active: Active,
    /// What a repeat sequence repeats.
    last: Option<char>,
    pub(super) arrows: Arrows,
    pub(super) erased: bool,
    pub(super) revision: u64,
}

impl Screen {
    pub(super) fn new(size: Size) -> Self {
        let (columns, height) = (size.columns.max(1), size.rows.max(1));
        Self {
            columns: columns.into(),
            height: height.into(),
            grid: Grid::new(height),
            history: History::new(size.history, columns.into()),
            cursor: Cursor::default(),
            saved: Cursor::default(),
            top: 0,
            bottom: usize::from(height) - 1,
            autowrap: true,
            insert: false,
            active: Active::Main,
            last: None,
            arrows: Arrows::Cursor,
            erased: false,
            revision: 0,
        }
    }

    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        if !self.in_alternate() {
            self.history.write_to(out);
        }
        for row in self.grid.iter() {
            history::append(out, row);
        }
        while matches!(out.last(), Some(b' ' | b'\n')) {
            out.pop();
        }
    }

    pub(super) fn lines_lost(&self) -> bool {
        self.history.lost
    }

    pub(super) fn in_alternate(&self) -> bool {
        matches!(self.active, Active::Alternate { .. })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let main = match &self.active {
            Active::Main => 0,
            Active::Alternate { main, .. } => main.heap_bytes(),
        };
        self.grid.heap_bytes() + main + self.history.heap_bytes()
    }

    /// A blank screen without history for the next command; the modes stay.
    pub(super) fn start_over(&mut self) {
        let main = match &mut self.active {
            Active::Main => None,
            Active::Alternate { main, cursor } => {
                *cursor = cursor.map(|_| Cursor::default());
                Some(main)
            }
        };
        for grid in [Some(&mut self.grid), main].into_iter().flatten() {
            grid.start_over(self.columns / 4);
        }
        self.history.erase();
        self.history.lost = false;
        self.erased = false;
        self.home();
        self.last = None;
        self.changed();
    }

    /// Forgets everything, as after switching a terminal on (RIS).
    pub(super) fn reset(&mut self) {
        self.leave_alternate(CursorOnSwitch::Keep);
        self.grid.clear(0, self.height);
        self.history.erase();
        self.erased = true;
        self.home();
        self.autowrap = true;
        self.insert = false;
        self.arrows = Arrows::Cursor;
        self.last = None;
        self.changed();
    }

    /// A scroll region left behind by a killed program would make later output vanish, so it goes along.
    fn home(&mut self) {
        self.cursor = Cursor::default();
        self.saved = Cursor::default();
        (self.top, self.bottom) = (0, self.height - 1);
    }

    #[inline]
    fn changed(&mut self) {
        self.revision = self.revision.wrapping_add(1);
    }

    // Text

    /// Writes printable ASCII at the cursor.
    #[inline]
    pub(super) fn print_ascii(&mut self, text: &[u8]) {
        let Some(last) = text.last() else { return };
        self.last = Some(char::from(*last));
        self.changed();
        let mut rest = text;
        while !rest.is_empty() {
            if self.cursor.column >= self.columns {
                if self.autowrap {
                    self.wrap();
                } else {
                    // All of them land on the last column, one over the other.
                    self.cursor.column = self.columns - 1;
                    rest = text.get(text.len() - 1..).unwrap_or_default();
                }
            }
            let column = self.cursor.column;
            let (now, later) = rest.split_at(rest.len().min(self.columns - column));
            let (insert, columns) = (self.insert, self.columns);
            if let Some(row) = self.grid.row_mut(self.cursor.row) {
                if insert {
                    row.insert_blanks(column, now.len(), columns);
                }
                row.put_ascii(column, now);
            }
            self.cursor.column += now.len();
            rest = later;
        }
    }

    /// Writes one character at the cursor, or attaches it to the character before if it has no width.
    pub(super) fn print_char(&mut self, code: char) {
        // Control characters have no width at all and do not belong into text.
        let Some(width) = code.width() else { return };
        self.changed();
        if width == 0 {
            let limit = self.columns * MARKS_PER_COLUMN;
            if let Some(column) = self.cursor.column.checked_sub(1)
                && let Some(row) = self.grid.row_mut(self.cursor.row)
            {
                row.put_mark(column, code, limit);
            }
            return;
        }
        self.last = Some(code);
        if width > self.columns {
            return;
        }
        if self.cursor.column + width > self.columns {
            if self.autowrap {
                // What stood in the cell that the character does not fit into would tear the joined line.
                let (column, columns) = (self.cursor.column, self.columns);
                if let Some(row) = self.grid.row_mut(self.cursor.row) {
                    row.erase(column, columns);
                }
                self.wrap();
            } else {
                self.cursor.column = self.columns - width;
            }
        }
        let (column, columns, insert) = (self.cursor.column, self.columns, self.insert);
        if let Some(row) = self.grid.row_mut(self.cursor.row) {
            if insert {
                row.insert_blanks(column, width, columns);
            }
            row.put_char(column, code, width, 1);
        }
        self.cursor.column += width;
    }

    /// Plain lines written now push the rows above into the history one by one.
    pub(super) fn is_at_end(&self) -> bool {
        !self.in_alternate()
            && !self.insert
            && self.cursor.row == self.height - 1
            && (self.top, self.bottom) == (0, self.height - 1)
    }

    /// Takes a block of printable ASCII and LF of which most lines would only pass through the screen, and puts these
    /// into the history directly. Returns how many bytes it has taken: 0 if this is not worth while.
    pub(super) fn print_lines(&mut self, block: &[u8]) -> usize {
        let lines = if block.len() > self.height { memchr_iter(b'\n', block).count() } else { 0 };
        let Some(first) = memchr(b'\n', block).filter(|_| self.is_at_end() && lines > self.height) else { return 0 };
        let (line, rest) = block.split_at(first);
        let Some(rest) = rest.get(1..) else { return 0 };
        self.print_ascii(line);
        self.line_feed();
        // At least a screenful follows: the rows of the screen all go, and so do the lines that do not fit on it.
        for row in self.grid.iter().take(self.height - 1) {
            self.history.push(row);
        }
        let blank = (self.height - 1).saturating_sub(self.grid.used);
        self.history.push_blank(blank);
        self.grid.clear(0, self.height);
        self.cursor = Cursor::default();
        self.changed();
        let taken = first + 1 + self.history.push_lines(rest, lines - self.height);
        // REP repeats the last character also when it has scrolled away already.
        let printed = block.get(..taken).unwrap_or_default().iter().rev().find(|byte| **byte != b'\n');
        self.last = printed.map(|byte| char::from(*byte)).or(self.last);
        taken
    }

    /// Repeats the last character, at most up to the right edge.
    pub(super) fn repeat(&mut self, count: usize) {
        let Some(code) = self.last else { return };
        let width = code.width().unwrap_or(1).max(1);
        let room = self.columns.saturating_sub(self.cursor.column) / width;
        let count = count.min(room);
        if count == 0 {
            return;
        }
        if let Ok(byte) = u8::try_from(code)
            && byte.is_ascii()
        {
            return self.print_ascii(&vec![byte; count]);
        }
        let (column, columns, insert) = (self.cursor.column, self.columns, self.insert);
        if let Some(row) = self.grid.row_mut(self.cursor.row) {
            if insert {
                row.insert_blanks(column, width * count, columns);
            }
            row.put_char(column, code, width, count);
        }
        self.cursor.column += width * count;
        self.changed();
    }

    // Lines

    fn wrap(&mut self) {
        if let Some(row) = self.grid.row_mut(self.cursor.row) {
            row.wrapped = true;
        }
        self.down();
        self.cursor.column = 0;
    }

    /// LF: a new line on the main screen, straight down on the alternate one.
    ///
    /// The terminal driver leaves line feeds alone, but a program that has the whole screen to itself sends raw ones.
    #[inline]
    pub(super) fn line_feed(&mut self) {
        if self.in_alternate() {
            self.index();
        } else {
            self.cursor.column = 0;
            self.down();
        }
    }

    /// IND: down in the same column, scrolling at the bottom.
    pub(super) fn index(&mut self) {
        self.settle();
        self.down();
    }

    /// RI: up in the same column, scrolling at the top.
    pub(super) fn reverse_index(&mut self) {
        self.settle();
        if self.cursor.row == self.top {
            self.scroll_down(1);
        } else {
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
    }

    #[inline]
    fn down(&mut self) {
        if self.cursor.row == self.bottom {
            self.scroll_up(1);
        } else if self.cursor.row + 1 < self.height {
            self.cursor.row += 1;
        }
    }

    /// Scrolls the region up; from the top of the main screen rows go into the history.
    #[inline]
    pub(super) fn scroll_up(&mut self, count: usize) {
        let count = count.min(self.bottom + 1 - self.top);
        if self.top == 0 && !self.in_alternate() {
            for row in self.grid.iter().take(count) {
                self.history.push(row);
            }
            self.history.push_blank(count.saturating_sub(self.grid.used));
        }
        self.grid.scroll_up(self.top, self.bottom, count);
        self.changed();
    }

    pub(super) fn scroll_down(&mut self, count: usize) {
        let count = count.min(self.bottom + 1 - self.top);
        self.grid.scroll_down(self.top, self.bottom, count);
        self.changed();
    }

    pub(super) fn insert_lines(&mut self, count: usize) {
        if (self.top..=self.bottom).contains(&self.cursor.row) {
            let count = count.min(self.bottom + 1 - self.cursor.row);
            self.grid.scroll_down(self.cursor.row, self.bottom, count);
            self.cursor.column = 0;
            self.changed();
        }
    }

    pub(super) fn delete_lines(&mut self, count: usize) {
        if (self.top..=self.bottom).contains(&self.cursor.row) {
            let count = count.min(self.bottom + 1 - self.cursor.row);
            self.grid.scroll_up(self.cursor.row, self.bottom, count);
            self.cursor.column = 0;
            self.changed();
        }
    }

    // Cursor

    /// Gives a due wrap up: the cursor stands on the last column.
    fn settle(&mut self) {
        self.cursor.column = self.cursor.column.min(self.columns - 1);
    }

    pub(super) fn carriage_return(&mut self) {
        self.cursor.column = 0;
    }

    pub(super) fn up(&mut self, count: usize) {
        self.settle();
        let first = if self.cursor.row >= self.top { self.top } else { 0 };
        self.cursor.row = self.cursor.row.saturating_sub(count).max(first);
    }

    pub(super) fn down_by(&mut self, count: usize) {
        self.settle();
        let last = if self.cursor.row <= self.bottom { self.bottom } else { self.height - 1 };
        self.cursor.row = self.cursor.row.saturating_add(count).min(last);
    }

    pub(super) fn left(&mut self, count: usize) {
        self.cursor.column = self.cursor.column.saturating_sub(count);
    }

    pub(super) fn right(&mut self, count: usize) {
        self.cursor.column = self.cursor.column.saturating_add(count).min(self.columns - 1);
    }

    /// Moves to a column, counted from 0.
    pub(super) fn move_to_column(&mut self, column: usize) {
        self.cursor.column = column.min(self.columns - 1);
    }

    /// Moves to a row, counted from 0.
    pub(super) fn move_to_row(&mut self, row: usize) {
        self.settle();
        self.cursor.row = row.min(self.height - 1);
    }

    /// Moves to the next tab stop; a wrap that is due stays so.
    pub(super) fn tab(&mut self, count: usize) {
        if self.cursor.column < self.columns {
            self.move_to_column((self.cursor.column / 8).saturating_add(count).saturating_mul(8));
        }
    }

    pub(super) fn tab_back(&mut self, count: usize) {
        self.cursor.column = self.cursor.column.div_ceil(8).saturating_sub(count) * 8;
    }

    pub(super) fn save_cursor(&mut self) {
        self.saved = self.cursor;
    }

    pub(super) fn restore_cursor(&mut self) {
        self.cursor = self.saved;
    }

    /// Sets the rows that scroll, counted from 0; an empty region is ignored.
    pub(super) fn set_region(&mut self, top: usize, bottom: usize) {
        let bottom = bottom.min(self.height - 1);
        if top < bottom {
            (self.top, self.bottom) = (top, bottom);
            self.cursor = Cursor::default();
        }
    }

    // Erasing. While a wrap is due the cursor is behind the last cell, so nothing of the row is after it.

    pub(super) fn erase_in_line(&mut self, part: Part) {
        let (start, end) = match part {
            Part::After => (self.cursor.column, self.columns),
            Part::Before => (0, self.cursor.column + 1),
            Part::All => (0, self.columns),
        };
        self.erase_cells(start, end.min(self.columns));
    }

    pub(super) fn erase_in_display(&mut self, part: Part) {
        // Terminal types without a sequence of their own for it clear the screen from its first cell to its end.
        let all = part == Part::All || part == Part::After && self.cursor == Cursor::default();
        let row = self.cursor.row;
        match part {
            _ if all => self.grid.clear(0, self.height),
            Part::After => {
                self.erase_in_line(part);
                self.grid.clear(row + 1, self.height);
            }
            Part::Before => {
                self.grid.clear(0, row);
                self.erase_in_line(part);
            }
            Part::All => {}
        }
        self.erased |= all && !self.in_alternate();
        self.changed();
    }

    pub(super) fn erase_history(&mut self) {
        self.history.erase();
        self.erased = true;
        self.changed();
    }

    pub(super) fn erase_chars(&mut self, count: usize) {
        let start = self.cursor.column;
        self.erase_cells(start, start.saturating_add(count).min(self.columns));
    }

    fn erase_cells(&mut self, start: usize, end: usize) {
        if self.cursor.row < self.grid.used
            && start < end
            && let Some(row) = self.grid.row_mut(self.cursor.row)
        {
            row.erase(start, end);
            if end >= self.columns {
                row.wrapped = false;
            }
            self.changed();
        }
    }

    pub(super) fn insert_chars(&mut self, count: usize) {
        let (column, columns) = (self.cursor.column, self.columns);
        if let Some(row) = self.grid.row_mut(self.cursor.row) {
            row.insert_blanks(column, count, columns);
            self.changed();
        }
    }

    pub(super) fn delete_chars(&mut self, count: usize) {
        let column = self.cursor.column;
        if column < self.columns
            && let Some(row) = self.grid.row_mut(self.cursor.row)
        {
            row.delete(column, count);
            row.wrapped = false;
            self.changed();
        }
    }

    // Modes

    pub(super) fn set_autowrap(&mut self, on: bool) {
        self.autowrap = on;
    }

    pub(super) fn set_insert(&mut self, on: bool) {
        self.insert = on;
    }

    pub(super) fn enter_alternate(&mut self, mode: CursorOnSwitch) {
        if !self.in_alternate() {
            let height = u16::try_from(self.height).unwrap_or(u16::MAX);
            let main = std::mem::replace(&mut self.grid, Grid::new(height));
            let cursor = (mode == CursorOnSwitch::SaveAndRestore).then_some(self.cursor);
            self.active = Active::Alternate { main, cursor };
            self.changed();
        }
    }

    pub(super) fn leave_alternate(&mut self, mode: CursorOnSwitch) {
        if let Active::Alternate { main, cursor } = std::mem::replace(&mut self.active, Active::Main) {
            self.grid = main;
            if let Some(cursor) = cursor.filter(|_| mode == CursorOnSwitch::SaveAndRestore) {
                self.cursor = cursor;
            }
            self.changed();
        }
    }
}

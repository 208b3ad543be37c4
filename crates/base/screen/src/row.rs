//! One row of cells: a byte a cell while everything on it is ASCII, a character a cell otherwise.

/// Right half of a wide character. NUL never reaches a row, so it cannot be mistaken for text.
const CONTINUATION: char = '\0';

/// Combining marks kept on one cell; together with the base this makes 16 code points.
const MARKS_PER_CELL: usize = 15;

/// One row of the screen.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// The cells while all of them are ASCII.
    ascii: Vec<u8>,
    /// The cells otherwise.
    rich: Rich,
    is_rich: bool,
    /// The line goes on in the next row because it reached the right edge.
    pub(super) wrapped: bool,
}

#[derive(Debug, Default)]
struct Rich {
    cells: Vec<char>,
    /// Ordered by column; within a column in the order of arrival.
    marks: Vec<Mark>,
}

/// A code point without width of its own that belongs to the cell at `column`.
#[derive(Debug, Clone, Copy)]
struct Mark {
    column: u16,
    code: char,
}

impl Mark {
    fn column(self) -> usize {
        usize::from(self.column)
    }
}

impl Row {
    pub(super) const fn blank() -> Self {
        Self { ascii: Vec::new(), rich: Rich { cells: Vec::new(), marks: Vec::new() }, is_rich: false, wrapped: false }
    }

    /// Makes the row blank and keeps its buffers for the next line, which is most likely of the same kind.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.wrapped = false;
        self.ascii.clear();
        if self.is_rich {
            self.is_rich = false;
            self.rich.cells.clear();
            self.rich.marks.clear();
        }
    }

    /// Makes the row blank and gives its buffers back.
    pub(super) fn release(&mut self) {
        *self = Self::blank();
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.ascii.capacity()
            + self.rich.cells.capacity() * size_of::<char>()
            + self.rich.marks.capacity() * size_of::<Mark>()
    }

    /// Appends the text of all cells, trailing blanks included.
    #[inline]
    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        if self.is_rich {
            self.rich.write_to(out);
        } else {
            out.extend_from_slice(&self.ascii);
        }
    }

    /// Overwrites cells from `column` on with printable ASCII.
    #[inline]
    pub(super) fn put_ascii(&mut self, column: usize, text: &[u8]) {
        if self.is_rich {
            return self.rich.put_ascii(column, text);
        }
        if let Some(target) = self.ascii.get_mut(column..column + text.len()) {
            target.copy_from_slice(text);
        } else {
            if self.ascii.len() != column {
                self.ascii.resize(column, b' ');
            }
            self.ascii.extend_from_slice(text);
        }
    }

    /// Writes a character of `width` cells (1 or 2) `count` times from `column` on.
    #[inline]
    pub(super) fn put_char(&mut self, column: usize, code: char, width: usize, count: usize) {
        let rich = self.rich();
        if rich.cells.len() != column {
            rich.open(column, width * count);
        }
        let covers = [code, CONTINUATION];
        let covers = covers.get(..width).unwrap_or(&covers);
        if rich.cells.len() == column {
            for _ in 0..count {
                rich.cells.extend_from_slice(covers);
            }
        } else {
            let all = covers.iter().cycle().take(width * count);
            for (cell, cover) in rich.cells.iter_mut().skip(column).zip(all) {
                *cell = *cover;
            }
        }
    }

    /// Attaches a code point without width to the character at `column`; `limit` bounds the marks of the row.
    pub(super) fn put_mark(&mut self, column: usize, code: char, limit: usize) {
        let rich = self.rich();
        if rich.cells.len() <= column {
            rich.cells.resize(column + 1, ' ');
        }
        // The marks of a wide character stand at its left half, so that they move and vanish with it.
        let column = match rich.cells.get(column) {
            Some(&CONTINUATION) => column.saturating_sub(1),
            _ => column,
        };
        let end = rich.marks_before(column + 1);
        if rich.marks.len() < limit && end - rich.marks_before(column) < MARKS_PER_CELL {
            rich.marks.insert(end, Mark { column: narrow(column), code });
        }
    }

    /// Makes the cells from `start` up to `end` blank.
    pub(super) fn erase(&mut self, start: usize, end: usize) {
        if self.is_rich {
            self.rich.erase(start, end);
        } else if end >= self.ascii.len() {
            self.ascii.truncate(start);
        } else if let Some(target) = self.ascii.get_mut(start..end) {
            target.fill(b' ');
        }
    }

    /// Moves the cells from `column` on to the right by `count` blanks; what leaves the `columns` is lost.
    pub(super) fn insert_blanks(&mut self, column: usize, count: usize, columns: usize) {
        let count = count.min(columns.saturating_sub(column));
        if self.is_rich {
            self.rich.insert_blanks(column, count, columns);
        } else if column < self.ascii.len() {
            self.ascii.splice(column..column, std::iter::repeat_n(b' ', count));
            self.ascii.truncate(columns);
        }
    }

    /// Takes `count` cells out at `column`; the rest of the row moves left.
    pub(super) fn delete(&mut self, column: usize, count: usize) {
        if self.is_rich {
            self.rich.delete(column, count);
        } else {
            let end = column.saturating_add(count).min(self.ascii.len());
            if column < end {
                self.ascii.drain(column..end);
            }
        }
    }

    /// The cells as characters, whatever they have been so far.
    #[inline]
    fn rich(&mut self) -> &mut Rich {
        if !self.is_rich {
            self.is_rich = true;
            self.rich.cells.extend(self.ascii.iter().copied().map(char::from));
            self.ascii.clear();
        }
        &mut self.rich
    }
}

impl Rich {
    fn put_ascii(&mut self, column: usize, text: &[u8]) {
        if self.cells.len() == column {
            self.cells.extend(text.iter().copied().map(char::from));
            return;
        }
        self.open(column, text.len());
        for (cell, byte) in self.cells.iter_mut().skip(column).zip(text) {
            *cell = char::from(*byte);
        }
    }

    fn erase(&mut self, start: usize, end: usize) {
        let end = end.min(self.cells.len());
        if start < end {
            self.open(start, end - start);
            if end == self.cells.len() {
                self.cells.truncate(start);
            } else if let Some(target) = self.cells.get_mut(start..end) {
                target.fill(' ');
            }
        }
    }

    fn insert_blanks(&mut self, column: usize, count: usize, columns: usize) {
        if column < self.cells.len() {
            // A wide character through which the gap goes loses both halves, and so does one at the right edge.
            self.split_at(column);
            self.cells.splice(column..column, std::iter::repeat_n(' ', count));
            let first = self.marks_before(column);
            for mark in self.marks.iter_mut().skip(first) {
                mark.column = narrow(mark.column() + count);
            }
            self.split_at(columns);
            self.cells.truncate(columns);
            let kept = self.marks_before(columns);
            self.marks.truncate(kept);
        }
    }

    fn delete(&mut self, column: usize, count: usize) {
        let end = column.saturating_add(count).min(self.cells.len());
        if column < end {
            self.open(column, end - column);
            self.cells.drain(column..end);
            let first = self.marks_before(column);
            for mark in self.marks.iter_mut().skip(first) {
                mark.column = narrow(mark.column().saturating_sub(end - column));
            }
        }
    }

    /// Makes sure that `width` cells exist at `column` and that they hold no marks and no half of a character outside.
    fn open(&mut self, column: usize, width: usize) {
        let end = column + width;
        if self.cells.len() > column {
            self.split_at(column);
            self.split_at(end);
        }
        if self.cells.len() < end {
            self.cells.resize(end, ' ');
        }
        if self.marks.last().is_some_and(|mark| mark.column() >= column) {
            let range = self.marks_before(column)..self.marks_before(end);
            self.marks.drain(range);
        }
    }

    /// Blanks both halves of a wide character that has one on each side of the border before `column`.
    fn split_at(&mut self, column: usize) {
        if self.cells.get(column) == Some(&CONTINUATION) {
            let left = column.saturating_sub(1);
            for cell in self.cells.iter_mut().skip(left).take(2) {
                *cell = ' ';
            }
            let range = self.marks_before(left)..self.marks_before(column);
            self.marks.drain(range);
        }
    }

    /// Number of marks that stand left of `column`.
    fn marks_before(&self, column: usize) -> usize {
        // Text mostly arrives from left to right, so the answer is mostly "all".
        if self.marks.last().is_none_or(|mark| mark.column() < column) {
            return self.marks.len();
        }
        self.marks.partition_point(|mark| mark.column() < column)
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.cells.len());
        let mut marks = self.marks.as_slice();
        for (column, cell) in self.cells.iter().enumerate() {
            if *cell != CONTINUATION {
                push_char(out, *cell);
            }
            while let Some((mark, rest)) = marks.split_first()
                && mark.column() <= column
            {
                push_char(out, mark.code);
                marks = rest;
            }
        }
    }
}

#[inline]
fn push_char(out: &mut Vec<u8>, code: char) {
    match u8::try_from(code) {
        Ok(byte) if byte.is_ascii() => out.push(byte),
        _ => out.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Columns fit, because a screen has at most `u16::MAX` of them; beyond that the value only has to stay large.
fn narrow(column: usize) -> u16 {
    u16::try_from(column).unwrap_or(u16::MAX)
}

//! One row of cells: a byte a cell while everything on it is ASCII, a character a cell otherwise.

/// Right half of a wide character. NUL never reaches a row, so it cannot be mistaken for text.
const CONTINUATION: char = '\0';

/// Combining marks kept on one cell; together with the base this makes 16 code points.
const MARKS_PER_CELL: usize = 15;

/// One row of the screen.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// The cells, unless `rich` holds them.
    ascii: Vec<u8>,
    rich: Option<Box<Rich>>,
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
    /// Makes the row blank and keeps its buffer for the next line.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.wrapped = false;
        self.ascii.clear();
        // A fresh line is most likely ASCII, which takes a quarter of the room.
        self.rich = None;
    }

    /// Makes the row blank and gives its buffer back.
    pub(super) fn release(&mut self) {
        *self = Self::default();
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let rich = self.rich.as_ref().map_or(0, |rich| {
            size_of::<Rich>() + rich.cells.capacity() * size_of::<char>() + rich.marks.capacity() * size_of::<Mark>()
        });
        self.ascii.capacity() + rich
    }

    /// Appends the text of all cells, trailing blanks included.
    #[inline]
    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        match &self.rich {
            None => out.extend_from_slice(&self.ascii),
            Some(rich) => rich.write_to(out),
        }
    }

    /// Overwrites cells from `column` on with printable ASCII.
    #[inline]
    pub(super) fn put_ascii(&mut self, column: usize, text: &[u8]) {
        match &mut self.rich {
            None => {
                let end = column + text.len();
                if let Some(target) = self.ascii.get_mut(column..end) {
                    target.copy_from_slice(text);
                } else {
                    if self.ascii.len() != column {
                        self.ascii.resize(column, b' ');
                    }
                    self.ascii.extend_from_slice(text);
                }
            }
            Some(rich) => {
                rich.open(column, text.len());
                for (cell, byte) in rich.cells.iter_mut().skip(column).zip(text) {
                    *cell = char::from(*byte);
                }
            }
        }
    }

    /// Overwrites `width` cells (1 or 2) from `column` on with one character.
    pub(super) fn put_char(&mut self, column: usize, code: char, width: usize) {
        let rich = self.rich();
        rich.open(column, width);
        let mut next = code;
        for cell in rich.cells.iter_mut().skip(column).take(width) {
            *cell = next;
            next = CONTINUATION;
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
        match &mut self.rich {
            None => {
                if end >= self.ascii.len() {
                    self.ascii.truncate(start);
                } else if let Some(target) = self.ascii.get_mut(start..end) {
                    target.fill(b' ');
                }
            }
            Some(rich) => {
                let end = end.min(rich.cells.len());
                if start < end {
                    rich.open(start, end - start);
                    for cell in rich.cells.iter_mut().take(end).skip(start) {
                        *cell = ' ';
                    }
                    if end == rich.cells.len() {
                        rich.cells.truncate(start);
                    }
                }
            }
        }
    }

    /// Moves the cells from `column` on to the right by `count` blanks; what leaves the `columns` is lost.
    pub(super) fn insert_blanks(&mut self, column: usize, count: usize, columns: usize) {
        let count = count.min(columns.saturating_sub(column));
        match &mut self.rich {
            None => {
                if column < self.ascii.len() {
                    self.ascii.splice(column..column, std::iter::repeat_n(b' ', count));
                    self.ascii.truncate(columns);
                }
            }
            Some(rich) => {
                if column < rich.cells.len() {
                    // A wide character whose middle becomes the border loses both halves.
                    rich.split_at(column);
                    rich.cells.splice(column..column, std::iter::repeat_n(' ', count));
                    let first = rich.marks_before(column);
                    for mark in rich.marks.iter_mut().skip(first) {
                        mark.column = narrow(mark.column() + count);
                    }
                    rich.split_at(columns);
                    rich.truncate(columns);
                }
            }
        }
    }

    /// Takes `count` cells out at `column`; the rest of the row moves left.
    pub(super) fn delete(&mut self, column: usize, count: usize) {
        match &mut self.rich {
            None => {
                let end = column.saturating_add(count).min(self.ascii.len());
                if column < end {
                    self.ascii.drain(column..end);
                }
            }
            Some(rich) => {
                let end = column.saturating_add(count).min(rich.cells.len());
                if column < end {
                    rich.open(column, end - column);
                    rich.cells.drain(column..end);
                    let first = rich.marks_before(column);
                    for mark in rich.marks.iter_mut().skip(first) {
                        mark.column = narrow(mark.column().saturating_sub(end - column));
                    }
                }
            }
        }
    }

    fn rich(&mut self) -> &mut Rich {
        let ascii = &mut self.ascii;
        self.rich.get_or_insert_with(|| {
            let cells = ascii.iter().copied().map(char::from).collect();
            *ascii = Vec::new();
            Box::new(Rich { cells, marks: Vec::new() })
        })
    }
}

impl Rich {
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

    fn truncate(&mut self, columns: usize) {
        self.cells.truncate(columns);
        let kept = self.marks_before(columns);
        self.marks.truncate(kept);
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
        let mut marks = self.marks.iter().peekable();
        let mut buffer = [0; 4];
        for (column, cell) in self.cells.iter().enumerate() {
            if *cell != CONTINUATION {
                out.extend_from_slice(cell.encode_utf8(&mut buffer).as_bytes());
            }
            while let Some(mark) = marks.next_if(|mark| mark.column() <= column) {
                out.extend_from_slice(mark.code.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
}

/// Columns fit, because a screen has at most `u16::MAX` of them; beyond that the value only has to stay large.
fn narrow(column: usize) -> u16 {
    u16::try_from(column).unwrap_or(u16::MAX)
}

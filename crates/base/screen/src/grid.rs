//! The rows of a screen in their order, and how they scroll.

use std::collections::VecDeque;

use super::row::Row;

/// Rows that keep a small buffer when the screen is cleared for the next command.
const WARM_ROWS: usize = 16;

/// What a row that was erased together with all others looks like.
static BLANK: Row = Row::blank();

/// Rows in their order on the screen.
#[derive(Debug)]
pub(super) struct Grid {
    rows: Vec<Row>,
    /// For each of `rows` the epoch in which it was written to.
    epochs: Vec<u64>,
    /// Erasing everything starts a new epoch, so that it costs the same however large the screen is.
    epoch: u64,
    /// Indices into `rows` from top to bottom: two bytes a row are cheap to move when a part of the screen scrolls.
    order: VecDeque<u16>,
    /// All rows from here on are blank.
    pub(super) used: usize,
}

impl Grid {
    pub(super) fn new(height: u16) -> Self {
        let mut rows = Vec::new();
        rows.resize_with(usize::from(height), Row::default);
        Self { rows, epochs: vec![0; height.into()], epoch: 0, order: (0..height).collect(), used: 0 }
    }

    /// The row to write to.
    #[inline]
    pub(super) fn row_mut(&mut self, row: usize) -> Option<&mut Row> {
        self.used = self.used.max(row + 1);
        let index = usize::from(*self.order.get(row)?);
        let (row, epoch) = (self.rows.get_mut(index)?, self.epochs.get_mut(index)?);
        if *epoch != self.epoch {
            *epoch = self.epoch;
            row.clear();
        }
        Some(row)
    }

    /// The rows that may hold text, from the top.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.order.iter().take(self.used).map(|index| {
            let index = usize::from(*index);
            match self.rows.get(index) {
                Some(row) if self.epochs.get(index) == Some(&self.epoch) => row,
                _ => &BLANK,
            }
        })
    }

    /// Makes rows blank.
    pub(super) fn clear(&mut self, start: usize, end: usize) {
        let end = end.min(self.used);
        if start == 0 && end == self.used {
            self.epoch += 1;
            self.used = 0;
            return;
        }
        for row in start..end {
            if let Some(row) = self.row_mut(row) {
                row.clear();
            }
        }
        if end == self.used {
            self.used = self.used.min(start);
        }
    }

    /// Ends the line of the row above `row`, because what follows it is no longer its continuation.
    pub(super) fn cut_above(&mut self, row: usize) {
        if let Some(above) = row.checked_sub(1)
            && above < self.used
            && let Some(above) = self.row_mut(above)
        {
            above.wrapped = false;
        }
    }

    /// Moves the rows `top..=bottom` up by `count`; blank rows come in from below.
    pub(super) fn scroll_up(&mut self, top: usize, bottom: usize, count: usize) {
        self.clear(top, top + count);
        self.cut_above(top);
        if top == 0 && bottom + 1 == self.order.len() && count == 1 {
            if let Some(index) = self.order.pop_front() {
                self.order.push_back(index);
            }
            self.used = self.used.saturating_sub(1);
        } else if top < self.used {
            if let Some(part) = self.order.make_contiguous().get_mut(top..=bottom) {
                part.rotate_left(count);
            }
            if self.used <= bottom + 1 {
                self.used = self.used.saturating_sub(count).max(top);
            }
        }
    }

    /// Moves the rows `top..=bottom` down by `count`; blank rows come in from above.
    pub(super) fn scroll_down(&mut self, top: usize, bottom: usize, count: usize) {
        if top < self.used {
            self.clear(bottom + 1 - count, bottom + 1);
            self.cut_above(top);
            self.cut_above(bottom + 1 - count);
            if let Some(part) = self.order.make_contiguous().get_mut(top..=bottom) {
                part.rotate_right(count);
            }
            if self.used <= bottom {
                self.used = (self.used + count).min(bottom + 1);
            }
        }
    }

    /// Makes everything blank and gives memory back, apart from buffers of up to `kept` bytes for the first rows.
    pub(super) fn start_over(&mut self, kept: usize) {
        self.clear(0, self.order.len());
        for (index, row) in self.rows.iter_mut().enumerate() {
            if index >= WARM_ROWS || row.heap_bytes() > kept {
                row.release();
            }
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let rows: usize = self.rows.iter().map(Row::heap_bytes).sum();
        let tables = self.rows.capacity() * size_of::<Row>() + self.epochs.capacity() * size_of::<u64>();
        rows + tables + self.order.capacity() * size_of::<u16>()
    }
}

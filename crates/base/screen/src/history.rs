//! Rows that have left the screen: finished text in blocks, the oldest of which goes when there are too many.

use std::collections::VecDeque;

use super::row::Row;

/// Bytes that a cell of the history may take on average before the limit in bytes applies.
const BYTES_PER_CELL: usize = 4;

/// Scroll-back above the screen.
///
/// Nothing can change a row any more once it is here, so only its text is kept, ready to be shown.
#[derive(Debug)]
pub(super) struct History {
    /// Cells of a row.
    columns: usize,
    /// Rows that fit.
    limit: usize,
    /// Rows in one block, and so the rows that are dropped at once.
    step: usize,
    /// Bytes that fit. Only text with several marks on every cell can reach it before `limit` is reached.
    byte_limit: usize,
    blocks: VecDeque<Block>,
    rows: usize,
    bytes: usize,
    /// Buffer of the block dropped last, for the next one.
    spare: Vec<u8>,
    /// Rows were dropped since the last `reset`.
    pub(super) lost: bool,
}

#[derive(Debug, Default)]
struct Block {
    text: Vec<u8>,
    rows: usize,
}

impl History {
    pub(super) fn new(limit: usize, columns: usize) -> Self {
        Self {
            columns,
            limit,
            step: (limit / 10).max(1),
            byte_limit: limit.saturating_mul(columns + 1).saturating_mul(BYTES_PER_CELL),
            blocks: VecDeque::new(),
            rows: 0,
            bytes: 0,
            spare: Vec::new(),
            lost: false,
        }
    }

    /// Appends a row that scrolls off the screen.
    #[inline]
    pub(super) fn push(&mut self, row: &Row) {
        if self.make_room() > 0 {
            self.extend(1, |text| append(text, row));
        }
    }

    /// Appends blank rows.
    pub(super) fn push_blank(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let rows = left.min(self.make_room());
            if rows == 0 {
                return;
            }
            self.extend(rows, |text| {
                // A line that is open from the row before ends at the first of them.
                trim(text);
                text.resize(text.len() + rows, b'\n');
            });
            left -= rows;
        }
    }

    /// Appends up to `count` lines of printable ASCII that each end in LF, stops before one that needs more than a row,
    /// and says how many bytes it has taken.
    pub(super) fn push_lines(&mut self, text: &[u8], count: usize) -> usize {
        let mut taken = 0;
        let mut copied = 0;
        let mut rows = 0;
        let mut room = 0;
        for end in LineFeeds::new(text).take(count) {
            if end - taken > self.columns {
                break;
            }
            if room == 0 {
                room = self.make_room();
            }
            taken = end + 1;
            rows += 1;
            let blank_at_end = text.get(..end).and_then(<[u8]>::last) == Some(&b' ');
            if rows >= room || blank_at_end {
                self.copy_lines(text.get(copied..taken).unwrap_or_default(), rows);
                (copied, rows, room) = (taken, 0, 0);
            }
        }
        self.copy_lines(text.get(copied..taken).unwrap_or_default(), rows);
        taken
    }

    /// Copies whole lines for which there is room and of which only the last may end in blanks.
    fn copy_lines(&mut self, lines: &[u8], rows: usize) {
        if let Some(lines) = lines.strip_suffix(b"\n") {
            self.extend(rows, |text| {
                text.extend_from_slice(lines);
                trim(text);
                text.push(b'\n');
            });
        }
    }

    /// Lets `write` add rows to the last block, which has room for them.
    #[inline]
    fn extend(&mut self, rows: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(block) = self.blocks.back_mut() {
            let before = block.text.len();
            write(&mut block.text);
            // The end of a line may take blanks of the rows before it away again.
            self.bytes = (self.bytes + block.text.len()).saturating_sub(before);
            block.rows += rows;
            self.rows += rows;
        }
    }

    /// Makes sure that the last block takes at least one more row and says how many; 0 when the history keeps nothing.
    #[inline]
    fn make_room(&mut self) -> usize {
        if self.rows >= self.limit || self.bytes >= self.byte_limit {
            self.drop_oldest();
            if self.limit == 0 {
                return 0;
            }
        }
        if self.blocks.back().is_none_or(|block| block.rows >= self.step) {
            let text = std::mem::take(&mut self.spare);
            self.blocks.push_back(Block { text, rows: 0 });
        }
        // Close to the limit in bytes rows go one by one, so that it takes effect at the same row however they arrive.
        if self.bytes.saturating_add(self.step.saturating_mul(self.columns + 1)) > self.byte_limit {
            return 1;
        }
        let room = self.blocks.back().map_or(0, |block| self.step - block.rows);
        room.min(self.limit - self.rows)
    }

    fn drop_oldest(&mut self) {
        self.lost = true;
        if let Some(mut block) = self.blocks.pop_front() {
            self.rows = self.rows.saturating_sub(block.rows);
            self.bytes = self.bytes.saturating_sub(block.text.len());
            block.text.clear();
            self.spare = block.text;
        }
    }

    /// Forgets all rows and gives their memory back.
    pub(super) fn erase(&mut self) {
        self.blocks = VecDeque::new();
        self.spare = Vec::new();
        self.rows = 0;
        self.bytes = 0;
    }

    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes);
        for block in &self.blocks {
            // The line that is open from the block before has nothing but blanks in this one.
            if block.text.first() == Some(&b'\n') {
                trim(out);
            }
            out.extend_from_slice(&block.text);
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.text.capacity()).sum();
        blocks + self.spare.capacity() + self.blocks.capacity() * size_of::<Block>()
    }
}

/// Appends a row; unless it goes on in the next one, its line ends and loses its trailing blanks.
#[inline]
pub(super) fn append(out: &mut Vec<u8>, row: &Row) {
    row.write_to(out);
    if !row.wrapped {
        trim(out);
        out.push(b'\n');
    }
}

/// Takes trailing blanks away.
#[inline]
pub(super) fn trim(out: &mut Vec<u8>) {
    while out.last() == Some(&b' ') {
        out.pop();
    }
}

/// Positions of the line feeds in a text, found eight bytes at a time because they may be very close to each other.
struct LineFeeds<'text> {
    text: &'text [u8],
    /// Where the eight bytes begin, and the top bit of each that is a line feed and not yet handed out.
    start: usize,
    found: u64,
}

impl<'text> LineFeeds<'text> {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const PATTERN: u64 = u64::from_le_bytes([b'\n'; 8]);

    fn new(text: &'text [u8]) -> Self {
        Self { text, start: 0, found: Self::search(text) }
    }

    #[inline]
    fn search(text: &[u8]) -> u64 {
        let word = match text.first_chunk::<8>() {
            Some(word) => *word,
            None => std::array::from_fn(|index| text.get(index).copied().unwrap_or_default()),
        };
        let difference = u64::from_le_bytes(word) ^ Self::PATTERN;
        // The carry of the addition reaches the top bit of a byte unless all its low bits are 0, and never the next byte.
        !(((difference & Self::LOW_BITS) + Self::LOW_BITS) | difference | Self::LOW_BITS)
    }
}

impl Iterator for LineFeeds<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            self.start += 8;
            self.found = Self::search(self.text.get(self.start..)?);
            if self.start >= self.text.len() {
                return None;
            }
        }
        let position = self.start + self.found.trailing_zeros() as usize / 8;
        self.found &= self.found - 1;
        Some(position)
    }
}

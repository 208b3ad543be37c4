//! Which lines of two texts belong together (file-editor 3.9).
//!
//! The longest block of equal lines is looked for, then the same to the left and to the right of it. Of equally long
//! blocks the first in the old text is taken, and of those the first in the new. In a long new text, lines that it has
//! very often are no reason to look; they only extend a block.

use super::{
    Change, Side,
    lines::{Numbered, number},
};

/// A new text with as many lines has lines that are too common.
pub(super) const LONG: usize = 200;

/// How often a line may be in a long text that has so many lines, to be a reason to look.
pub(super) fn common(lines: usize) -> usize {
    lines / 100 + 1
}

/// Places looked at until the search is given up. What is not matched until then counts as changed.
const BUDGET: usize = 50_000_000;

/// Equal lines: where they begin in the old text and in the new, and how many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    old: usize,
    new: usize,
    length: usize,
}

/// A part of both texts: from (inclusive) and to (exclusive).
#[derive(Debug, Clone, Copy)]
struct Window {
    old: (usize, usize),
    new: (usize, usize),
}

/// The parts that are not the same, in order.
pub(super) fn changes<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    let end = Block { old: old.len(), new: new.len(), length: 0 };
    for block in Search::new(number(old, new)).blocks().into_iter().chain([end]) {
        if block.old > old_at || block.new > new_at {
            changes.push(Change {
                old: Side { start: old_at, lines: old[old_at..block.old].to_vec() },
                new: Side { start: new_at, lines: new[new_at..block.new].to_vec() },
            });
        }
        (old_at, new_at) = (block.old + block.length, block.new + block.length);
    }
    changes
}

struct Search {
    lines: Numbered,
    /// Where the places of a line begin in `places`; those of the next one follow.
    starts: Vec<u32>,
    /// Places in the new text, in order for each line; none for a line that is too common.
    places: Vec<u32>,
    /// For each place of the new text: a row, and the length of the block that ends there in that row.
    runs: Vec<(u64, u32)>,
    /// Rows looked at so far; tells whether a run belongs to the row before.
    row: u64,
    budget: usize,
}

impl Search {
    fn new(lines: Numbered) -> Self {
        let mut counts = vec![0_u32; lines.count];
        for line in &lines.new {
            counts[*line as usize] += 1;
        }
        let limit = common(lines.new.len());
        let is_common = |count: u32| lines.new.len() >= LONG && count as usize > limit;
        let mut starts = Vec::with_capacity(lines.count + 1);
        let mut total = 0;
        for count in &counts {
            starts.push(total);
            total += if is_common(*count) { 0 } else { *count };
        }
        starts.push(total);
        let mut places = vec![0; total as usize];
        let mut next = starts.clone();
        for (place, line) in (0_u32..).zip(&lines.new) {
            let line = *line as usize;
            if !is_common(counts[line]) {
                places[next[line] as usize] = place;
                next[line] += 1;
            }
        }
        let runs = vec![(0, 0); lines.new.len()];
        Self { lines, starts, places, runs, row: 1, budget: BUDGET }
    }

    /// All blocks in order.
    fn blocks(mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut windows = vec![Window { old: (0, self.lines.old.len()), new: (0, self.lines.new.len()) }];
        while let Some(window) = windows.pop() {
            let block = self.longest(window);
            if block.length == 0 {
                continue;
            }
            blocks.push(block);
            let left = Window { old: (window.old.0, block.old), new: (window.new.0, block.new) };
            let right =
                Window { old: (block.old + block.length, window.old.1), new: (block.new + block.length, window.new.1) };
            windows.extend([left, right].into_iter().filter(|part| part.old.0 < part.old.1 && part.new.0 < part.new.1));
        }
        blocks.sort_unstable();
        blocks
    }

    /// The longest block within a window.
    fn longest(&mut self, window: Window) -> Block {
        let mut best = Block { old: window.old.0, new: window.new.0, length: 0 };
        if self.budget == 0 {
            return best;
        }
        // No run of another window counts.
        self.row += 1;
        for old in window.old.0..window.old.1 {
            self.row += 1;
            let places = self.places_in(self.lines.old[old], window.new);
            self.budget = self.budget.saturating_sub(1 + places.len());
            if self.budget == 0 {
                break;
            }
            self.look_at_row(old, places, &mut best);
        }
        self.extend(best, window)
    }

    /// Where in the window's part of the new text the line stands.
    fn places_in(&self, line: u32, window: (usize, usize)) -> std::ops::Range<usize> {
        let start = self.starts[line as usize] as usize;
        let places = &self.places[start..self.starts[line as usize + 1] as usize];
        // Most lines are unique.
        if let [place] = places {
            let is_inside = (window.0..window.1).contains(&(*place as usize));
            return start..start + usize::from(is_inside);
        }
        let first = places.partition_point(|place| (*place as usize) < window.0);
        let end = places.partition_point(|place| (*place as usize) < window.1);
        start + first..start + end
    }

    /// Extends the blocks that end in the row before by the line of this row.
    fn look_at_row(&mut self, old: usize, places: std::ops::Range<usize>, best: &mut Block) {
        let before = best.length;
        // From the end, since each place needs the run of the place before it from the row before.
        for index in places.rev() {
            let new = self.places[index] as usize;
            let length = match new.checked_sub(1).map(|previous| self.runs[previous]) {
                Some((row, length)) if row == self.row - 1 => length + 1,
                _ => 1,
            };
            self.runs[new] = (self.row, length);
            let length = length as usize;
            // Within a row the first place counts, which comes last here.
            if length > before && length >= best.length {
                *best = Block { old: old + 1 - length, new: new + 1 - length, length };
            }
        }
    }

    /// Extends a block by equal lines at both ends, however common they are.
    fn extend(&self, block: Block, window: Window) -> Block {
        let Block { mut old, mut new, mut length } = block;
        let (old_lines, new_lines) = (&self.lines.old, &self.lines.new);
        while old > window.old.0 && new > window.new.0 && old_lines[old - 1] == new_lines[new - 1] {
            (old, new, length) = (old - 1, new - 1, length + 1);
        }
        while old + length < window.old.1
            && new + length < window.new.1
            && old_lines[old + length] == new_lines[new + length]
        {
            length += 1;
        }
        Block { old, new, length }
    }
}

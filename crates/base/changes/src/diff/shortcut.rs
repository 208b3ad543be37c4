//! The usual edit, a few lines in one place, without a look at all lines.
//!
//! The result is that of [`super::matcher`], which is asked if that is not certain. Both texts begin with the same
//! lines and end with the same lines, and the lines between them in the one text are nowhere in the other. So a block of
//! equal lines does not reach over them, and the matcher prefers each beginning and each end to stand for itself: of
//! equally long blocks it takes the first. Its block then grows to the whole beginning or end. For that to be so,
//!
//! - the end has a line that is not too common to hold on to;
//! - in the other text no block reaches over the place of the change either: its lines between beginning and end are
//!   not in the first text, or at least no two lines that are side by side there are so in the end. A block of one
//!   such line is possible then, and the end has to have two lines to hold on to.

use memchr::{memchr, memmem, memrchr};

use super::{Change, Side, matcher};
use crate::python::newlines;

/// Most lines between beginning and end that are looked for in the other text.
const CHANGED: usize = 4;

/// Lines of the end among which one is looked for to hold on to.
const HELD: usize = 16;

/// Bytes compared at once.
const CHUNK: usize = 4096;

/// Two different texts without the lines at their beginning that are the same, or at their end. A text is `None` if no
/// line is left of it.
struct Parts<'a> {
    head: Option<&'a str>,
    old: Option<&'a str>,
    new: Option<&'a str>,
    tail: Option<&'a str>,
}

/// The only change between two different texts, if there is no doubt about it.
pub(super) fn only_change<'a>(old: &'a str, new: &'a str) -> Option<Change<'a>> {
    let parts = Parts::of(old, new);
    let (old_lines, new_lines) = (few_lines(parts.old)?, few_lines(parts.new)?);
    let is_apart = |lines: &[&str], text| lines.iter().all(|line| !has_lines(text, line));
    let held = match (is_apart(&old_lines, new), is_apart(&new_lines, old)) {
        (true, true) if old_lines.is_empty() || new_lines.is_empty() => (!parts.may_cross(&[])).then_some(1),
        (true, true) => Some(1),
        (true, false) if !old_lines.is_empty() => (!parts.may_cross(&new_lines)).then_some(2),
        (false, true) if !new_lines.is_empty() => (!parts.may_cross(&old_lines)).then_some(2),
        _ => None,
    };
    if !parts.is_tail_held(new, held?) {
        return None;
    }
    let start = parts.head.map_or(0, |head| newlines(head) + 1);
    Some(Change { old: Side { start, lines: old_lines }, new: Side { start, lines: new_lines } })
}

impl<'a> Parts<'a> {
    fn of(old: &'a str, new: &'a str) -> Self {
        let (head, old, new) = without_head(old, new);
        let (old, new, tail) = match (old, new) {
            (Some(old), Some(new)) => without_tail(old, new),
            (old, new) => (old, new, None),
        };
        Self { head, old, new, tail }
    }

    /// Whether the end has so many lines in a row that are not too common in the new text.
    fn is_tail_held(&self, new: &str, wanted: usize) -> bool {
        let Some(tail) = self.tail else { return true };
        let lines = newlines(new) + 1;
        let first: Vec<&str> = tail.split('\n').take(HELD).collect();
        if lines < matcher::LONG {
            return first.len() >= wanted;
        }
        let limit = matcher::common(lines);
        // Long lines are rarely common ones.
        let longest = first.windows(wanted).max_by_key(|lines| lines.iter().map(|line| line.len()).min());
        longest.is_some_and(|lines| lines.iter().all(|line| count(new, line, limit) <= limit))
    }

    /// Whether of these lines between beginning and end, and their neighbours, two stand side by side in the end, too.
    fn may_cross(&self, lines: &[&str]) -> bool {
        let Some(tail) = self.tail else { return false };
        let last = self.head.and_then(|head| head.rsplit('\n').next());
        let around: Vec<&str> = last.into_iter().chain(lines.iter().copied()).chain(tail.split('\n').next()).collect();
        around.windows(2).any(|pair| has_lines(tail, &pair.join("\n")))
    }
}

/// The lines that both texts begin with, and what is left.
fn without_head<'a>(old: &'a str, new: &'a str) -> (Option<&'a str>, Option<&'a str>, Option<&'a str>) {
    let same = same_head(old.as_bytes(), new.as_bytes());
    let ends = |text: &str| text.as_bytes().get(same).is_none_or(|byte| *byte == b'\n');
    let end = if ends(old) && ends(new) { Some(same) } else { memrchr(b'\n', &old.as_bytes()[..same]) };
    match end {
        Some(end) => (Some(&old[..end]), old.get(end + 1..), new.get(end + 1..)),
        None => (None, Some(old), Some(new)),
    }
}

/// What is left, and the lines that both texts end with.
fn without_tail<'a>(old: &'a str, new: &'a str) -> (Option<&'a str>, Option<&'a str>, Option<&'a str>) {
    let same = same_tail(old.as_bytes(), new.as_bytes());
    let begins = |text: &str| text.len() == same || text.as_bytes()[text.len() - same - 1] == b'\n';
    let length = if begins(old) && begins(new) {
        Some(same)
    } else {
        memchr(b'\n', &old.as_bytes()[old.len() - same..]).map(|at| same - at - 1)
    };
    let Some(length) = length else { return (Some(old), Some(new), None) };
    let rest = |text: &'a str| (text.len() - length).checked_sub(1).map(|end| &text[..end]);
    (rest(old), rest(new), Some(&old[old.len() - length..]))
}

fn same_head(old: &[u8], new: &[u8]) -> usize {
    let chunks = old.chunks(CHUNK).zip(new.chunks(CHUNK)).take_while(|(old, new)| old == new);
    let same = chunks.map(|(chunk, _)| chunk.len()).sum::<usize>();
    same + old[same..].iter().zip(&new[same..]).take_while(|(old, new)| old == new).count()
}

fn same_tail(old: &[u8], new: &[u8]) -> usize {
    let chunks = old.rchunks(CHUNK).zip(new.rchunks(CHUNK)).take_while(|(old, new)| old == new);
    let same = chunks.map(|(chunk, _)| chunk.len()).sum::<usize>();
    let (old, new) = (&old[..old.len() - same], &new[..new.len() - same]);
    same + old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count()
}

/// The lines of what is left of a text, if they are few.
fn few_lines(text: Option<&str>) -> Option<Vec<&str>> {
    let lines: Vec<&str> = text.into_iter().flat_map(|text| text.split('\n')).take(CHANGED + 1).collect();
    (lines.len() <= CHANGED).then_some(lines)
}

/// Whether the lines stand in the text one after the other.
fn has_lines(text: &str, lines: &str) -> bool {
    let (bytes, length) = (text.as_bytes(), lines.len());
    text == lines
        || text.starts_with(lines) && bytes[length] == b'\n'
        || text.ends_with(lines) && bytes[text.len() - length - 1] == b'\n'
        || memmem::find(bytes, format!("\n{lines}\n").as_bytes()).is_some()
}

/// How often a text has a line; one more than `limit` for anything above it.
fn count(text: &str, line: &str, limit: usize) -> usize {
    let bytes = text.as_bytes();
    let ends = |end: usize| bytes.get(end).is_none_or(|byte| *byte == b'\n');
    let first = usize::from(text.starts_with(line) && ends(line.len()));
    let needle = format!("\n{line}");
    let others = memmem::find_iter(bytes, needle.as_bytes()).filter(|at| ends(at + needle.len()));
    first + others.take(limit + 1 - first).count()
}

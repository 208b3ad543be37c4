//! The lines of a document that a table or value has.

use std::ops::Range;

use toml_edit::{Item, Table, TableLike};

/// What happens to an empty line above a table that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blank {
    /// It stays.
    Left,
    /// It goes with the table, as it came with it.
    Taken,
}

/// All lines of a member, in their order. Comments above it and behind it are not of it.
pub(super) fn item_lines(text: &str, table: &dyn TableLike, key: &str, blank: Blank) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    collect(text, table, key, blank, &mut found);
    found.sort_by_key(|lines| (lines.start, lines.end));
    found
}

/// Where the last member begins that stands below the name of its table, and where its lines end; those of the name if
/// there is none.
pub(super) fn last_member(text: &str, table: &Table) -> (usize, usize) {
    let head = table.span().unwrap_or_default();
    let members = table.iter().filter(|(_, item)| stands_in_table(item));
    let lines = members.flat_map(|(key, _)| item_lines(text, table, key, Blank::Left));
    let last = lines.max_by_key(|lines| lines.end).unwrap_or(head.start..line_end(text, head.end));
    (last.start, last.end)
}

/// Whether something is written below the name of its table, and not below its own.
fn stands_in_table(item: &Item) -> bool {
    match item {
        Item::Value(_) => true,
        Item::Table(table) => table.is_dotted(),
        Item::None | Item::ArrayOfTables(_) => false,
    }
}

fn collect(text: &str, table: &dyn TableLike, key: &str, blank: Blank, found: &mut Vec<Range<usize>>) {
    match table.get(key) {
        None | Some(Item::None) => {}
        Some(Item::Value(value)) => {
            // Dotted keys are in the line of their last part.
            let start = table.key(key).and_then(toml_edit::Key::span).map_or(0, |span| span.start);
            let end = value.span().map_or(start, |span| span.end);
            found.push(line_start(text, start)..line_end(text, end));
        }
        Some(Item::Table(table)) => collect_table(text, table, blank, found),
        Some(Item::ArrayOfTables(tables)) => tables.iter().for_each(|table| collect_table(text, table, blank, found)),
    }
}

fn collect_table(text: &str, table: &Table, blank: Blank, found: &mut Vec<Range<usize>>) {
    let has_head = !table.is_dotted() && !table.is_implicit();
    if has_head {
        let start = table.span().map_or(0, |head| line_start(text, head.start));
        let own = start..last_member(text, table).1;
        found.push(if blank == Blank::Taken { with_blank(text, own) } else { own });
    }
    let others = table.iter().filter(|(_, item)| !has_head || !stands_in_table(item));
    others.for_each(|(key, _)| collect(text, table, key, blank, found));
}

/// The lines with one empty line above them, or below them where nothing is above.
fn with_blank(text: &str, lines: Range<usize>) -> Range<usize> {
    let is_blank = |line: &Range<usize>| !line.is_empty() && text[line.clone()].trim().is_empty();
    let above = line_start(text, lines.start.saturating_sub(1))..lines.start;
    let below = lines.end..line_end(text, lines.end);
    if is_blank(&above) {
        above.start..lines.end
    } else if lines.start == 0 && is_blank(&below) {
        lines.start..below.end
    } else {
        lines
    }
}

/// Where the line begins that has this place.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Where the line after this place begins.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length + 1)
}

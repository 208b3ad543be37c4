//! Edits of a text, and its lines.

use std::ops::Range;

/// Mark at the beginning of a file that says that it is Unicode.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Parts of a text that get another text. They do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push((range, text.into()));
    }

    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    pub(crate) fn remove(&mut self, range: Range<usize>) {
        self.replace(range, "");
    }

    /// The text with all edits; those at one place in the order in which they were asked for.
    pub(crate) fn apply(mut self, text: &str) -> String {
        self.0.sort_by_key(|(range, _)| (range.start, range.end));
        let mut edited = String::with_capacity(text.len() + self.0.iter().map(|(_, new)| new.len()).sum::<usize>());
        let mut at = 0;
        for (range, new) in self.0 {
            edited.push_str(text.get(at..range.start).unwrap_or_default());
            edited.push_str(&new);
            at = at.max(range.end);
        }
        edited.push_str(text.get(at..).unwrap_or_default());
        edited
    }
}

/// The byte order mark, if the text has one, and the rest.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => text.split_at(text.len() - rest.len()),
        None => ("", text),
    }
}

/// The end of the first line.
pub(crate) fn newline(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((line, _)) if line.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Where the line begins that has this place.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1)
}

/// The white space that the line of this place begins with.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether there is only white space before this place in its line.
pub(crate) fn starts_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].trim_matches([' ', '\t']).is_empty()
}

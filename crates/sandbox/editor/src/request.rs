//! What is asked of the editor, and what it answers.

use std::{fmt, sync::Arc};

/// One request, with the fields of the `edit` action; which of them a command needs, the editor checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditRequest<'a> {
    /// `view`, `create`, `str_replace`, `insert` or `undo_edit`.
    pub command: &'a str,
    /// An absolute path.
    pub path: &'a str,
    /// The whole text of a file to be created.
    pub file_text: Option<&'a str>,
    /// The lines to be shown.
    pub view_range: Option<ViewRange<'a>>,
    /// The text to be replaced.
    pub old_str: Option<&'a str>,
    /// The text that replaces it, or is inserted.
    pub new_str: Option<&'a str>,
    /// How many lines stand before the inserted text.
    pub insert_line: Option<i64>,
}

impl<'a> EditRequest<'a> {
    /// A request without parameters.
    pub fn new(command: &'a str, path: &'a str) -> Self {
        Self { command, path, file_text: None, view_range: None, old_str: None, new_str: None, insert_line: None }
    }
}

/// The lines to be shown, as they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewRange<'a> {
    /// Numbers; only two are a range.
    Lines(&'a [i64]),
    /// Something else, in the words of the message: `['a', 2]`.
    Malformed(&'a str),
}

impl ViewRange<'_> {
    /// An empty range is none.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Lines([]))
    }
}

/// As Python prints the list.
impl fmt::Display for ViewRange<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines(lines) => write!(formatter, "{lines:?}"),
            Self::Malformed(text) => formatter.write_str(text),
        }
    }
}

/// What a request did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditReport {
    /// The text for the caller.
    pub output: String,
    /// What the edit changed (file-editor 3.9); empty for `view`.
    pub diff: String,
    /// The text before the edit; none for `view` and `create`.
    pub old_text: Option<Arc<String>>,
    /// The text behind the edit; none for `view`.
    pub new_text: Option<Arc<String>>,
}

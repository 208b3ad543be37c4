//! The files that an editor works on.

use gloveport_protocol::BoxFuture;

/// Files of a sandbox, and its linter.
pub trait EditFiles: Send + Sync {
    /// The whole text of a file.
    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<String, ReadFailure>>;

    /// Gives a file a text, or makes it. A failure is told as text that the agent gets to read.
    fn write<'a>(&'a self, path: &'a str, text: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// What a linter finds wrong with the new text of a file that the old one did not have, such as
    /// `Line 3, Column 5: invalid syntax`. Nothing if edits are not linted.
    fn lint<'a>(&'a self, path: &'a str, old: &'a str, new: &'a str) -> BoxFuture<'a, Vec<String>>;
}

/// Why a file has no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFailure {
    /// It is not there; an edit makes it.
    NotFound,
    /// It cannot be read, for this reason.
    Failed(String),
}

//! What can go wrong.

use std::{io, path::PathBuf};

use crate::program::Program;

/// Why an entry could not be put into a file, or taken out. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A variable that the file's place depends on is not set, or is not an absolute path.
    #[error("cannot find the configuration of {}: {variable} is not set to an absolute path", program.title())]
    NoHome {
        /// Whose configuration.
        program: Program,
        /// The variable.
        variable: &'static str,
    },
    /// The program has one configuration for all projects.
    #[error("{} has no configuration for a single project: install the server for the user instead", .0.title())]
    NoProjectFile(Program),
    /// The entry is one that no client could use.
    #[error("{what} {why}")]
    Entry {
        /// Which part of it.
        what: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file cannot be read, or is no regular file.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is a link, and what it leads to is missing.
    #[error("{} is a link to a file that does not exist: create that file or remove the link", .0.display())]
    DanglingLink(PathBuf),
    /// The file is larger than any configuration, or would be.
    #[error("{} is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read and written, in bytes.
        limit: u64,
    },
    /// The file is no text.
    #[error("{} is not UTF-8 text: byte {at} is wrong", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The 0-based place of the first wrong byte.
        at: usize,
    },
    /// The text of the file does not allow the change.
    #[error("cannot edit {}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        problem: Problem,
    },
    /// The file is not the one that the change was made for.
    #[error("{} was changed by another program in the meantime: try again", .0.display())]
    Changed(PathBuf),
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What is wrong in the text of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It does not parse.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The 1-based line.
        line: usize,
        /// The 1-based column, in characters.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// Values are in values that are in values, and so on.
    #[error("line {line}: values are nested more than {limit} deep")]
    TooDeep {
        /// The 1-based line.
        line: usize,
        /// How deep they may be.
        limit: usize,
    },
    /// Something that must have members has none.
    #[error("{place} is {found}, not {wanted}")]
    WrongKind {
        /// Where.
        place: String,
        /// What stands there.
        found: &'static str,
        /// What must stand there.
        wanted: &'static str,
    },
    /// A key stands twice in one object, so readers do not agree on what it means.
    #[error("{0} occurs twice: remove one of them")]
    Twice(String),
    /// A table that is written in a way that nothing can be added to without guessing.
    #[error("{0} is written with dotted keys: write it as a table of its own, [{0}]")]
    Dotted(String),
}

//! Why a request is refused, in the words of file-editor 3.3.

use std::fmt;

/// An error of this crate. It is shown as the text that follows `ERROR:\n` on the wire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditorError {
    /// The command needs a parameter that is absent.
    #[error("Parameter `{parameter}` is required for command: {command}.")]
    MissingParameter {
        /// Its name.
        parameter: &'static str,
        /// The command.
        command: &'static str,
    },
    /// A parameter has a value that can not be.
    #[error("Invalid `{parameter}` parameter: {value}. {hint}")]
    InvalidParameter {
        /// Its name.
        parameter: &'static str,
        /// Its value, as Python prints it.
        value: String,
        /// What is wrong with it.
        hint: Hint,
    },
    /// The text to be replaced does not occur.
    #[error("No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}.")]
    NoMatch {
        /// The text that was looked for, without white space around it.
        old_str: String,
        /// The file.
        path: String,
    },
    /// The text to be replaced occurs more than once.
    #[error(
        "No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines {lines}. \
         Please ensure it is unique."
    )]
    ManyMatches {
        /// The text that was looked for.
        old_str: String,
        /// Where it begins.
        lines: LineNumbers,
    },
    /// There is nothing to undo.
    #[error("No edit history found for {0}.")]
    NoHistory(String),
    /// The command does not exist.
    #[error(
        "Unrecognized command {0}. The allowed commands for the oh_editor tool are: view, create, str_replace, \
         insert, undo_edit"
    )]
    UnknownCommand(String),
    /// The file is not one that can be shown or edited.
    #[error("File validation failed for {path}: {reason}")]
    Validation {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: Reason,
    },
    /// The file can not be read.
    #[error("Ran into {reason} while trying to read {path}")]
    Read {
        /// The file.
        path: String,
        /// The system's error, or why its bytes are no text.
        reason: String,
    },
    /// The file can not be written; it is as it was.
    #[error("Ran into {reason} while trying to write to {path}")]
    Write {
        /// The file.
        path: String,
        /// The system's error, or why the text can not be encoded.
        reason: String,
    },
    /// The document can not be shown.
    #[error("Error in converting file to Markdown: {reason}. Please use Python code to read {path}")]
    Conversion {
        /// The document.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory can not be listed; one line for each part that can not.
    #[error("{0}")]
    Listing(String),
}

/// What is wrong with a parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Hint {
    /// The path does not begin with `/`.
    #[error("The path should be an absolute path, starting with `/`.{}", Meant(.meant))]
    Relative {
        /// The path below the workspace, if there is something.
        meant: Option<String>,
    },
    /// There is a file where one is to be created.
    #[error("File already exists at: {0}. Cannot overwrite files using command `create`.")]
    Exists(String),
    /// There is nothing at the path.
    #[error("The path {0} does not exist. Please provide a valid path.")]
    Missing(String),
    /// A directory can not be edited.
    #[error("The path {0} is a directory and only the `view` command can be used on directories.")]
    Directory(String),
    /// A document can not be edited.
    #[error(
        "The path {path} points to a binary file ({extension}) and only the `view` command can be used on supported \
         binary files."
    )]
    Document {
        /// The document.
        path: String,
        /// Its extension with the dot, as written.
        extension: String,
    },
    /// A directory has no lines.
    #[error("The `view_range` parameter is not allowed when `path` points to a directory.")]
    RangeOfDirectory,
    /// The range is something else than two numbers.
    #[error("It should be a list of two integers.")]
    RangeType,
    /// The range begins outside of the file.
    #[error("Its first element `{first}` should be within the range of lines of the file: [1, {lines}].")]
    RangeFirst {
        /// Where it begins.
        first: i64,
        /// How many lines there are.
        lines: usize,
    },
    /// The range ends before it begins.
    #[error("Its second element `{second}` should be greater than or equal to the first element `{first}`.")]
    RangeSecond {
        /// Where it begins.
        first: i64,
        /// Where it ends.
        second: i64,
    },
    /// There is no such place to insert at.
    #[error("It should be within the range of allowed values: [0, {0}]")]
    InsertLine(usize),
    /// The replacement would change nothing.
    #[error("No replacement was performed. `new_str` and `old_str` must be different.")]
    Same,
}

/// Why a file can not be shown or edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It is larger than the editor takes; its size in bytes.
    #[error("File is too large ({:.1}MB). Maximum allowed size is 10MB.", megabytes(*.0))]
    Size(u64),
    /// It is not text.
    #[error("File appears to be binary and this file type cannot be read or edited by this tool.")]
    Binary,
    /// It is no regular file.
    #[error("It is a {0}, and only regular files can be read or edited by this tool.")]
    Special(&'static str),
}

#[expect(clippy::cast_precision_loss, reason = "one decimal place is shown")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

/// Most line numbers that a message holds; a file of 10 MiB can have millions of matches.
const LINES_SHOWN: usize = 2_000;

/// Some line numbers in ascending order, without repetition, shown as Python prints a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineNumbers {
    numbers: Vec<usize>,
    more: bool,
}

impl LineNumbers {
    /// Adds a number that is not less than the last; false if there is room for no more.
    pub(crate) fn push(&mut self, number: usize) -> bool {
        if self.numbers.last() == Some(&number) {
            return true;
        }
        self.more = self.numbers.len() == LINES_SHOWN;
        if !self.more {
            self.numbers.push(number);
        }
        !self.more
    }
}

impl fmt::Display for LineNumbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[")?;
        for (index, number) in self.numbers.iter().enumerate() {
            write!(formatter, "{}{number}", if index == 0 { "" } else { ", " })?;
        }
        formatter.write_str(if self.more { ", ...]" } else { "]" })
    }
}

struct Meant<'a>(&'a Option<String>);

impl fmt::Display for Meant<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(path) => write!(formatter, " Maybe you meant {path}?"),
            None => Ok(()),
        }
    }
}

//! What is wrong with a manifest, and where.

use std::{fmt, path::PathBuf};

/// A manifest that cannot be used, with all that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", Lines(self))]
pub struct ManifestError {
    /// The file.
    pub path: PathBuf,
    /// The name that it gives its plugin, if that can be told.
    pub name: Option<String>,
    /// What is wrong, in the order of the file; at least one.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub suggestion: Option<String>,
}

impl ManifestError {
    /// An error about the file as a whole.
    pub(crate) fn whole(path: PathBuf, message: String, suggestion: &str) -> Self {
        let problem = Problem { line: 0, column: 0, message, suggestion: Some(suggestion.to_owned()) };
        Self { path, name: None, problems: vec![problem] }
    }
}

/// One line for each problem.
struct Lines<'a>(&'a ManifestError);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", self.0.path.display())?;
            if problem.line > 0 {
                write!(f, ":{}:{}", problem.line, problem.column)?;
            }
            write!(f, ": {}", problem.message)?;
            if let Some(suggestion) = &problem.suggestion {
                write!(f, "; {suggestion}")?;
            }
        }
        Ok(())
    }
}

//! What can be wrong with a microagent.

use std::{fmt, io, path::PathBuf};

/// Why a microagent, or a directory of them, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MicroagentError {
    /// The front matter says something that is not allowed (runtime-interface 13.3).
    #[error("Error validating microagent metadata in {file_name}: {reason}{}", shown(kind.as_ref()))]
    Metadata {
        /// The name of the file, without its directory.
        file_name: String,
        /// All that is wrong.
        reason: String,
        /// The value of `type`, if it is none of the types.
        kind: Option<InvalidKind>,
    },
    /// The front matter is not what its language allows.
    #[error("the front matter is not valid {language}: {reason}")]
    FrontMatter {
        /// YAML, TOML or JSON.
        language: &'static str,
        /// What is wrong, and where.
        reason: String,
    },
    /// The front matter is larger than any that is meant.
    #[error("the front matter has {bytes} bytes; at most {limit} are read")]
    FrontMatterTooLarge {
        /// Its size.
        bytes: usize,
        /// Most bytes.
        limit: usize,
    },
    /// The file is not in the directory that its name is to be relative to.
    #[error("{} is not in {}", path.display(), directory.display())]
    Outside {
        /// The file.
        path: PathBuf,
        /// The directory.
        directory: PathBuf,
    },
    /// A file or a directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is larger than any that is meant.
    #[error("{} has more than {limit} bytes", path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// Most bytes.
        limit: usize,
    },
    /// A file is no text.
    #[error("{} is not UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// A directory has more than anybody means it to have.
    #[error("{} has more than {limit} {what}", directory.display())]
    TooMuch {
        /// The directory.
        directory: PathBuf,
        /// Of what.
        what: &'static str,
        /// Most of it.
        limit: usize,
    },
    /// The first failure in a directory ends its loading (runtime-interface 13.4).
    #[error("Error loading microagent from {}: {source}", file.display())]
    Load {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: Box<MicroagentError>,
    },
}

impl MicroagentError {
    /// Whether it is what the reference calls a microagent validation error; everything else is a value error there.
    pub fn is_validation(&self) -> bool {
        match self {
            Self::Metadata { .. } => true,
            Self::Load { source, .. } => source.is_validation(),
            _ => false,
        }
    }
}

/// A value of `type` that names no type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidKind(pub String);

impl fmt::Display for InvalidKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = &self.0;
        write!(formatter, ". Invalid \"type\" value: \"{value}\". Valid types are: \"knowledge\", \"repo\", \"task\"")
    }
}

fn shown(kind: Option<&InvalidKind>) -> String {
    kind.map(ToString::to_string).unwrap_or_default()
}

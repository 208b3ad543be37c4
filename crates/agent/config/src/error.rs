//! Why there is no configuration.

use std::{fmt, io, path::PathBuf};

use crate::note::{Note, Severity};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there but cannot be read.
    #[error("cannot read the configuration file {}: {source}", path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is longer than any configuration.
    #[error("the configuration file {} is larger than {limit} bytes", path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// How many bytes are read at most.
        limit: u64,
    },
    /// The configuration is wrong in a way that must not be passed over (configuration 3, 7 and 9).
    #[error("{}", Fatal(notes))]
    Invalid {
        /// Everything that was noticed, the fatal ones among it.
        notes: Vec<Note>,
    },
    /// The directory that the process works in is not known.
    #[error("cannot tell the current directory: {0}")]
    CurrentDirectory(io::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(gloveport_ids::Error),
}

/// The fatal notes, one a line.
struct Fatal<'a>(&'a [Note]);

impl fmt::Display for Fatal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for note in self.0.iter().filter(|note| note.severity == Severity::Error) {
            if !first {
                f.write_str("\n")?;
            }
            first = false;
            write!(f, "{note}")?;
        }
        Ok(())
    }
}

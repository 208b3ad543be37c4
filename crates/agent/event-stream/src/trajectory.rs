//! A history as one file, and how it is played again (event-stream 6).

mod load;
mod replay;
mod save;

use std::{io, path::PathBuf};

use gloveport_protocol::ParseEventError;

pub use load::{Recording, Trajectory, load, load_recording, parse, parse_recording};
pub use replay::Replay;
pub use save::{Screenshots, filter, save, to_value};

use crate::error::HistoryError;

/// Why a trajectory was not saved or not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrajectoryError {
    /// There is nothing at the path.
    #[error("Trajectory file not found: {}", .0.display())]
    NotFound(PathBuf),
    /// There is something else at the path.
    #[error("Trajectory path is a directory, not a file: {}", .0.display())]
    NotAFile(PathBuf),
    /// The text is no JSON.
    #[error("Invalid JSON format in {name}: {source}")]
    Json {
        /// The file, or what else the text is from.
        name: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The JSON is no list.
    #[error("Expected a list in {name}, got {found}")]
    NotAList {
        /// The file, or what else the text is from.
        name: String,
        /// Name of the type in Python: "dict".
        found: &'static str,
    },
    /// An element of the list is no event.
    #[error("event {index} in {name} cannot be read: {source}")]
    Event {
        /// The file, or what else the text is from.
        name: String,
        /// Which element; 0 for the first.
        index: usize,
        /// What is wrong with it.
        source: Box<ParseEventError>,
    },
    /// There is no message to begin with.
    #[error("{name} does not begin with a message, which would be the task: {found}")]
    NoTask {
        /// The file, or what else the text is from.
        name: String,
        /// What is there instead.
        found: String,
    },
    /// The events cannot be read.
    #[error("the trajectory cannot be saved: {0}")]
    History(#[from] HistoryError),
    /// A file or a directory cannot be used.
    #[error("cannot {operation} '{}': {source}", path.display())]
    Io {
        /// What was to be done: "write".
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

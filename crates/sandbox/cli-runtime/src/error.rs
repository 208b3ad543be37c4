//! Why something of the runtime is refused or fails, in the words of local-and-cli-runtime B.

use std::{io, path::PathBuf};

use gloveport_sys::os_error::described;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The runtime is closed.
    #[error("Runtime not initialized")]
    NotInitialized,
    /// The path is not one of the workspace.
    #[error("Invalid path: {path}. You can only work with files in {}.", workspace.display())]
    NotInWorkspace {
        /// The path as it was given.
        path: String,
        /// The workspace.
        workspace: PathBuf,
    },
    /// The path leads out of the workspace.
    #[error(
        "Invalid path traversal: {path}. Path resolves outside the workspace. Resolved: {}, Workspace: {}",
        resolved.display(), workspace.display()
    )]
    Traversal {
        /// The path as it was given.
        path: String,
        /// Where it leads.
        resolved: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// No file has such a name.
    #[error("embedded null byte")]
    NulByte,
    /// The path can not be followed.
    #[error("{}", described(.source, .path))]
    Unresolved {
        /// The path in the workspace.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is to be copied does not exist.
    #[error("Source path '{}' does not exist.", .0.display())]
    SourceMissing(PathBuf),
    /// What is to be copied is neither a file nor, with `recursive`, a directory.
    #[error("Source path '{}' is not a valid file or directory.", .0.display())]
    SourceInvalid(PathBuf),
    /// A copy failed on the way; what was copied before stays.
    #[error("Unexpected error copying file: {0}")]
    Copy(String),
    /// There is nothing to copy out of the workspace.
    #[error("Path not found: {0}")]
    PathMissing(String),
    /// No zip file could be made.
    #[error("Error creating zip file: {0}")]
    Zip(String),
    /// The workspace can not be used.
    #[error("the workspace {} cannot be used: {source}; choose another directory", path.display())]
    Workspace {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

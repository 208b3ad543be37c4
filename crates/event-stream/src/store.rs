//! Named contents somewhere: a directory, memory, a bucket (event-stream 5).

mod local;

use std::{future::Future, io, path::Path, path::PathBuf, pin::Pin};

use bytes::Bytes;

pub use local::LocalStore;
pub(crate) use local::{create_directories, sync_directory};

/// A future that can be sent to another thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Contents by path. A path has `/` between its parts; a `/` at its start means nothing.
///
/// When `write` is done, the content is where it survives the end of this process, and of the machine for stores that
/// outlive it.
pub trait FileStore: Send + Sync {
    /// Creates or replaces a content. What is above it need not exist.
    fn write<'a>(&'a self, path: &'a str, content: Bytes) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The content. A missing one is [`StoreError::NotFound`].
    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Bytes, StoreError>>;

    /// What is directly below a path: each with the path before it, directories with `/` at the end.
    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;

    /// Removes a content, or all below a path. What is missing is no error.
    fn delete<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The directory on this machine where each content is a plain file at its path, if that is all there is to this
    /// store. Who knows it may write files there without the store; so a store that does more with what is written,
    /// such as telling somebody, gives nothing.
    fn directory(&self) -> Option<&Path> {
        None
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is nothing at this path.
    #[error("there is no '{path}' in the file store{}", detail.as_deref().map(|text| format!(": {text}")).unwrap_or_default())]
    NotFound {
        /// The path.
        path: String,
        /// What the store says about it.
        detail: Option<String>,
    },
    /// The path leads out of the store, or cannot name a file.
    #[error("'{path}' cannot be a path in the file store: {reason}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file of this machine cannot be used.
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

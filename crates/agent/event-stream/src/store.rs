//! Named contents somewhere: a directory, memory, a bucket (event-stream 5).

#[cfg(any(feature = "gcs", feature = "s3"))]
mod bucket;
mod factory;
#[cfg(feature = "gcs")]
mod gcs;
mod http;
mod local;
mod memory;
mod path;
#[cfg(feature = "s3")]
mod s3;
mod webhook;

use std::{error::Error, future::Future, io, path::Path, path::PathBuf, pin::Pin};

use bytes::Bytes;

#[cfg(any(feature = "gcs", feature = "s3"))]
pub use bucket::BucketStore;
pub use factory::{StoreOptions, open_store};
#[cfg(feature = "gcs")]
pub use gcs::{GcsAccess, GcsOptions, GcsStore};
pub use http::HttpLimits;
pub use local::LocalStore;
pub(crate) use local::create_directories;
pub use memory::MemoryStore;
#[cfg(feature = "s3")]
pub use s3::{S3Options, S3Store};
pub use webhook::{Clock, Delivery, Pause, WebhookOptions, WebhookStore};

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

    /// Waits until others that are told of changes have been told of those before, or could not be. A store that tells
    /// nobody has nothing to wait for.
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

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
    /// A content does not fit into the store.
    #[error(
        "'{path}' does not fit into the file store in memory: it needs {needed} bytes, and {free} of {limit} are free"
    )]
    Full {
        /// The path.
        path: String,
        /// Bytes of the path and the content.
        needed: u64,
        /// Bytes that are left.
        free: u64,
        /// Bytes that the store may have in all.
        limit: u64,
    },
    /// The bucket is not there. The text is that of event-stream 5.
    #[error("Error: The bucket '{bucket}' does not exist.")]
    NoBucket {
        /// The bucket.
        bucket: String,
    },
    /// The credentials are missing or wrong, or do not allow this. The text is that of event-stream 5.
    #[error("Error: Access denied to bucket '{bucket}'.")]
    AccessDenied {
        /// The bucket.
        bucket: String,
        /// What the service says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The bucket cannot be used for another reason. The text begins as event-stream 5 has it.
    #[error("Error: Failed to {operation} '{path}' in bucket '{bucket}': {source}")]
    Bucket {
        /// What was to be done: "write".
        operation: &'static str,
        /// The path.
        path: String,
        /// The bucket.
        bucket: String,
        /// Why it failed.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A store on this machine needs a directory. The text is that of event-stream 5.
    #[error("file_store_path is required for local file store")]
    NoDirectory,
    /// A store in a bucket needs the name of one.
    #[error(
        "'{name}' is not a valid name for a bucket for file_store {kind}: set file_store_path to the name, or leave it out and set {variable}"
    )]
    BucketName {
        /// The kind of store: "s3".
        kind: &'static str,
        /// What was given.
        name: String,
        /// The environment variable that may name the bucket.
        variable: &'static str,
    },
    /// The configuration of a store cannot be used.
    #[error("file_store {kind} cannot be used as it is configured: {reason}")]
    Configuration {
        /// The kind of store: "s3".
        kind: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The kind of store is not part of this program.
    #[error("file_store {kind} is not part of this program: build it with the feature `{feature}`")]
    NotBuilt {
        /// The kind of store.
        kind: &'static str,
        /// The feature of the crate that has it.
        feature: &'static str,
    },
    /// Nobody can be told of changes.
    #[error("file_store_web_hook_{field} cannot be used: {reason}")]
    Webhook {
        /// Which part of the configuration: "url", "headers".
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// No HTTP client can be made.
    #[error("cannot create an HTTP client for the file store")]
    NoHttp(#[source] reqwest::Error),
}

//! Contents as objects of a bucket.

mod connector;

use std::{error::Error, fmt, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{
    BackoffConfig, Error as BucketError, ObjectStore, ObjectStoreExt as _, RetryConfig, path::Path as Key,
};

use super::{BoxFuture, FileStore, HttpLimits, StoreError, path};

pub(super) use connector::Connector;

/// Most repetitions of a request that failed in a way that may pass.
const RETRIES: usize = 4;
/// How the statuses stand in the errors of the library.
const DENIED: [&str; 2] = ["status code: 401", "status code: 403"];

/// Contents as objects of a bucket, at their paths. `C` is the client of the service; each service has its own type, so
/// that a program has only the code that it uses.
///
/// What is below a path is found by the prefix of its objects; a directory that nothing is below does not exist.
/// Requests that fail in a way that may pass (connections, 5xx, 429) are sent again a few times.
///
/// The other failures are told apart: only what is missing is [`StoreError::NotFound`], so that a bucket that cannot be
/// reached does not look like an empty one.
pub struct BucketStore<C> {
    bucket: String,
    client: C,
}

impl<C: ObjectStore> BucketStore<C> {
    pub(super) fn new(bucket: String, client: C) -> Self {
        Self { bucket, client }
    }

    /// The name of the bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    async fn put(&self, path: &str, content: Bytes) -> Result<(), StoreError> {
        let key = key(path, path::content_key(path)?)?;
        let written = self.client.put(&key, content.into()).await;
        written.map(drop).map_err(|error| self.failed("write", path, error))
    }

    async fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let key = key(path, path::content_key(path)?)?;
        let read = async { self.client.get(&key).await?.bytes().await }.await;
        read.map_err(|error| self.failed("read", path, error))
    }

    async fn children(&self, path: &str) -> Result<Vec<String>, StoreError> {
        let text = path::key(path)?;
        let (below, prefix) = (path::below(&text), path::list_prefix(path));
        let parent = key(path, text)?;
        let listed = self.client.list_with_delimiter(Some(&parent)).await;
        let listed = listed.map_err(|error| self.failed("list", path, error))?;
        // An object that marks the directory itself has no name below it.
        let name = |key: &Key| key.as_ref().strip_prefix(&below).filter(|name| !name.is_empty()).map(String::from);
        let files = listed.objects.iter().filter_map(|object| name(&object.location));
        let directories = listed.common_prefixes.iter().filter_map(name).map(|name| format!("{name}/"));
        let mut names: Vec<String> = files.chain(directories).map(|name| format!("{prefix}{name}")).collect();
        names.sort_unstable();
        Ok(names)
    }

    async fn remove(&self, path: &str) -> Result<(), StoreError> {
        let key = key(path, path::content_key(path)?)?;
        let failed = |error| self.failed("delete", path, error);
        let below = self.client.list(Some(&key)).map_ok(|object| object.location);
        let mut removed = self.client.delete_stream(below.chain(stream::iter([Ok(key)])).boxed());
        while let Some(result) = removed.next().await {
            found(result).map_err(failed)?;
        }
        Ok(())
    }

    /// The error for a failure of the service.
    fn failed(&self, operation: &'static str, path: &str, error: BucketError) -> StoreError {
        let bucket = self.bucket.clone();
        match error {
            error if says(&error, "NoSuchBucket") => StoreError::NoBucket { bucket },
            BucketError::NotFound { .. } => {
                let detail = format!("Error: The object key '{path}' does not exist in bucket '{bucket}'.");
                StoreError::NotFound { path: path.to_owned(), detail: Some(detail) }
            }
            error @ (BucketError::PermissionDenied { .. } | BucketError::Unauthenticated { .. }) => {
                StoreError::AccessDenied { bucket, source: error.into() }
            }
            // The library does not tell apart how a list failed.
            error if DENIED.iter().any(|status| says(&error, status)) => {
                StoreError::AccessDenied { bucket, source: error.into() }
            }
            error => StoreError::Bucket { operation, path: path.to_owned(), bucket, source: error.into() },
        }
    }
}

impl<C: ObjectStore> FileStore for BucketStore<C> {
    fn write<'a>(&'a self, path: &'a str, content: Bytes) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.put(path, content))
    }

    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        Box::pin(self.get(path))
    }

    /// A path below which there is nothing has an empty list; it is no error. Lists of any length are whole.
    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(self.children(path))
    }

    /// A bucket is not emptied: the path must name something in it.
    fn delete<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.remove(path))
    }
}

impl<C> fmt::Debug for BucketStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketStore").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

/// How often, and for how long, a request is repeated.
pub(super) fn retries(limits: HttpLimits) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: RETRIES,
        retry_timeout: limits.all_attempts,
    }
}

/// The name of a bucket from the configuration, or else from the environment.
pub(super) fn bucket_name(
    kind: &'static str,
    configured: Option<String>,
    variable: &'static str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<String, StoreError> {
    let name = configured.filter(|name| !name.is_empty()).or_else(|| environment(variable)).unwrap_or_default();
    let allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '_' | ':');
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(StoreError::BucketName { kind, name, variable });
    }
    Ok(name)
}

fn key(path: &str, text: String) -> Result<Key, StoreError> {
    Key::parse(text).map_err(|_| StoreError::Path { path: path.to_owned(), reason: "it contains a control character" })
}

/// What is missing is deleted.
fn found<T>(result: Result<T, BucketError>) -> Result<(), BucketError> {
    match result {
        Err(error @ BucketError::NotFound { .. }) if !says(&error, "NoSuchBucket") => Ok(()),
        result => result.map(drop),
    }
}

/// Whether the answer of the service, which is somewhere in the error, has this code.
fn says(error: &BucketError, code: &str) -> bool {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains(code) {
            return true;
        }
        cause = error.source();
    }
    false
}

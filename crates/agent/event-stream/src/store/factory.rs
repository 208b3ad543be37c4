//! The store that the configuration asks for (event-stream 5, configuration 4).

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_protocol::Secret;

use super::{Delivery, FileStore, LocalStore, MemoryStore, StoreError, WebhookOptions, WebhookStore};

/// The header that a web hook is sent if no others are configured, and where its value is from (event-stream 5.1).
const KEY_HEADER: &str = "X-Session-API-Key";
const KEY_VARIABLE: &str = "SESSION_API_KEY";

/// What the configuration says about the store, by the names it has there (configuration 4).
#[derive(Clone)]
pub struct StoreOptions<'a> {
    /// `file_store`: `local`, `s3` or `google_cloud`; anything else is memory.
    pub kind: String,
    /// `file_store_path`: the directory, or the name of the bucket.
    pub path: Option<String>,
    /// `file_store_web_hook_url`: who is told of changes.
    pub web_hook_url: Option<String>,
    /// `file_store_web_hook_headers`: what is sent along; none is the key of the session, if there is one.
    pub web_hook_headers: Option<BTreeMap<String, Secret>>,
    /// `file_store_web_hook_batch`: whether changes are sent together.
    pub web_hook_batch: bool,
    /// The home directory of the user: what `~` stands for.
    pub home: Option<PathBuf>,
    /// The environment: credentials, and names of buckets.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
}

impl fmt::Debug for StoreOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("kind", &self.kind)
            .field("path", &self.path)
            .field("web_hook_batch", &self.web_hook_batch)
            .finish_non_exhaustive()
    }
}

/// Opens the store that the options describe. Nothing is sent anywhere before it is used; a store on this machine
/// creates its directory.
pub fn open_store(options: StoreOptions<'_>) -> Result<Arc<dyn FileStore>, StoreError> {
    let store = inner(&options)?;
    let Some(url) = options.web_hook_url.filter(|url| !url.is_empty()) else { return Ok(store) };
    let default = || {
        let key = (options.environment)(KEY_VARIABLE).filter(|key| !key.is_empty());
        key.map(|key| (KEY_HEADER.to_owned(), Secret::from(key))).into_iter().collect()
    };
    let headers = options.web_hook_headers.unwrap_or_else(default);
    let delivery = if options.web_hook_batch { Delivery::Batched } else { Delivery::Each };
    let web_hook = WebhookOptions { headers, delivery, ..WebhookOptions::new(url) };
    Ok(Arc::new(WebhookStore::new(store, web_hook)?))
}

fn inner(options: &StoreOptions<'_>) -> Result<Arc<dyn FileStore>, StoreError> {
    match options.kind.as_str() {
        "local" => {
            let root = options.path.as_deref().filter(|path| !path.is_empty()).ok_or(StoreError::NoDirectory)?;
            Ok(Arc::new(LocalStore::new(Path::new(root), options.home.as_deref())?))
        }
        "s3" => s3(options),
        "google_cloud" => gcs(options),
        _ => Ok(Arc::new(MemoryStore::default())),
    }
}

#[cfg(feature = "s3")]
fn s3(options: &StoreOptions<'_>) -> Result<Arc<dyn FileStore>, StoreError> {
    let options = super::S3Options::from_environment(options.path.clone(), options.environment)?;
    Ok(Arc::new(options.open()?))
}

#[cfg(not(feature = "s3"))]
fn s3(_options: &StoreOptions<'_>) -> Result<Arc<dyn FileStore>, StoreError> {
    Err(StoreError::NotBuilt { kind: "s3", feature: "s3" })
}

#[cfg(feature = "gcs")]
fn gcs(options: &StoreOptions<'_>) -> Result<Arc<dyn FileStore>, StoreError> {
    let home = options.home.as_deref();
    let options = super::GcsOptions::from_environment(options.path.clone(), home, options.environment)?;
    Ok(Arc::new(options.open()?))
}

#[cfg(not(feature = "gcs"))]
fn gcs(_options: &StoreOptions<'_>) -> Result<Arc<dyn FileStore>, StoreError> {
    Err(StoreError::NotBuilt { kind: "google_cloud", feature: "gcs" })
}

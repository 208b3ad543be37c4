//! Telling a web service of every change (event-stream 5.1 and 5.2).

mod pending;
mod sender;
mod worker;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use gloveport_protocol::Secret;

use super::{BoxFuture, FileStore, HttpLimits, StoreError};
use pending::Change;
use sender::Sender;
use worker::Outbox;

/// How the service is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One request for each change, in the order of the changes: `POST {url}{path}` with the content, or
    /// `DELETE {url}{path}` (event-stream 5.1).
    #[default]
    Each,
    /// One request for all changes of some time: `POST {url}` with a list, 5 s after the last change, or when 1 MiB is
    /// pending. Of several changes of one path only the last is sent (event-stream 5.2).
    Batched,
}

/// Waits. Tests wait for nothing.
pub trait Pause: Send + Sync {
    /// Ends after this time.
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// Waits as long as it is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock;

impl Pause for Clock {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Who is told of changes, and how.
#[derive(Clone)]
pub struct WebhookOptions {
    /// Where requests go: `http` or `https`.
    pub url: String,
    /// What is sent along with each request.
    pub headers: BTreeMap<String, Secret>,
    /// How the service is told.
    pub delivery: Delivery,
    /// Time that requests may take.
    pub limits: HttpLimits,
    /// What waits between attempts, and for the end of a batch.
    pub pause: Arc<dyn Pause>,
}

impl WebhookOptions {
    /// One request for each change, without headers.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: BTreeMap::new(),
            delivery: Delivery::default(),
            limits: HttpLimits::default(),
            pause: Arc::new(Clock),
        }
    }
}

impl fmt::Debug for WebhookOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookOptions").field("delivery", &self.delivery).finish_non_exhaustive()
    }
}

/// A store that tells a web service of what is written and deleted. Reads and lists go to the store behind it.
///
/// The service is told in the background, after the change is done. A request that fails is sent three times in all, 1 s
/// apart; then the change is dropped, with a warning. While the service is slow, up to 64 MiB and 10,000 changes wait; then
/// the oldest are dropped, with a warning: a copy that lags keeps up with what is new, and the conversation never waits
/// for it.
///
/// [`flush`](FileStore::flush) waits until all is sent. What is still waiting when the store is dropped is not sent.
pub struct WebhookStore {
    inner: Arc<dyn FileStore>,
    outbox: Outbox,
}

impl WebhookStore {
    /// Tells a service of the changes of a store.
    pub fn new(inner: Arc<dyn FileStore>, options: WebhookOptions) -> Result<Self, StoreError> {
        let delivery = options.delivery;
        let pause = Arc::clone(&options.pause);
        Ok(Self { inner, outbox: Outbox::new(Sender::new(options)?, delivery, pause) })
    }
}

impl FileStore for WebhookStore {
    fn write<'a>(&'a self, path: &'a str, content: Bytes) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.inner.write(path, content.clone()).await?;
            self.outbox.put(Change { path: path.to_owned(), content: Some(content) });
            Ok(())
        })
    }

    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        self.inner.read(path)
    }

    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        self.inner.list(path)
    }

    fn delete<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.inner.delete(path).await?;
            self.outbox.put(Change { path: path.to_owned(), content: None });
            Ok(())
        })
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.inner.flush().await;
            self.outbox.flush().await;
        })
    }
}

impl fmt::Debug for WebhookStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookStore").finish_non_exhaustive()
    }
}

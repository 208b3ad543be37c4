//! Telling a web service of every change (event-stream 5.1 and 5.2).

mod options;
mod pending;
mod sender;
mod worker;

use std::{fmt, sync::Arc};

use bytes::Bytes;

use super::{BoxFuture, FileStore, StoreError};
pub use options::{Clock, Delivery, Pause, WebhookOptions};
use pending::Change;
use sender::Sender;
use worker::Outbox;

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

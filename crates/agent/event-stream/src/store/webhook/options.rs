//! Who is told of changes, and how.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use gloveport_protocol::Secret;

use crate::store::{BoxFuture, HttpLimits};

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

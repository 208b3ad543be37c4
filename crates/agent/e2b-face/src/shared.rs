//! What all requests share.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{FaceOptions, Host, contexts::Contexts, lives::Lives, place::Places, watchers::Watchers};

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) options: FaceOptions,
    pub(crate) lives: Lives,
    pub(crate) places: Places,
    pub(crate) watchers: Watchers,
    pub(crate) contexts: Contexts,
    /// Requests with a key that are being worked on, by tenant and key.
    pub(crate) keys: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    /// What goes on behind an answer.
    pub(crate) tasks: TaskTracker,
    /// Ends it.
    pub(crate) stop: CancellationToken,
}

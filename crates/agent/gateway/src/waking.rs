//! The sandboxes that are being woken.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gloveport_provider::SandboxId;
use tokio::sync::watch;

/// The sandboxes that are being woken, and who tells that it is done.
#[derive(Debug, Default)]
pub(crate) struct Waking(Mutex<HashMap<SandboxId, watch::Receiver<()>>>);

impl Waking {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, watch::Receiver<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

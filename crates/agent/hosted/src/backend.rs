//! What a backend has of sandboxes: those that end with it, those that it holds, and what goes on in tasks of its own.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use gloveport_provider::{ProviderError, SandboxId, backend::Backends};
use tokio::time::{sleep, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long the end of a backend may take.
const CLOSE: Duration = Duration::from_mins(1);
/// Sandboxes that are asked about at the same time.
const AT_ONCE: usize = 8;

/// A backend of a hosted service.
#[derive(Debug)]
pub struct Backend {
    /// Who of this machine uses sandboxes.
    pub backends: Backends,
    /// It ends, or has ended.
    pub closing: CancellationToken,
    /// What goes on in tasks of its own: sandboxes that are made or taken back, programs in sandboxes that are ended.
    pub tasks: TaskTracker,
    own: Mutex<BTreeSet<SandboxId>>,
    held: Mutex<BTreeSet<SandboxId>>,
    keeping: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Backend {
    /// One that leaves its traces in this directory ([`Backends`]).
    pub fn new(directory: PathBuf) -> Self {
        Self {
            backends: Backends::new(directory),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            own: Mutex::default(),
            held: Mutex::default(),
            keeping: AtomicBool::new(false),
        }
    }

    /// Nothing is begun any more once it ends.
    ///
    /// # Errors
    ///
    /// It ends.
    pub fn check_open(&self, name: &str) -> Result<(), ProviderError> {
        if self.closing.is_cancelled() { Err(ProviderError::Closed(name.to_owned())) } else { Ok(()) }
    }

    /// Sandboxes that end with this backend.
    pub fn own(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        lock(&self.own)
    }

    /// Kept sandboxes that it uses.
    pub fn held(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        lock(&self.held)
    }

    /// A sandbox is gone.
    pub fn forget(&self, id: &SandboxId) {
        self.own().remove(id);
        self.held().remove(id);
    }

    /// Does this every so often until the backend ends. Only the first call has an effect.
    pub fn keep_going<F: Future<Output = ()> + Send + 'static>(
        &self,
        every: Duration,
        mut work: impl FnMut() -> F + Send + 'static,
    ) {
        if self.keeping.swap(true, Ordering::SeqCst) {
            return;
        }
        let closing = self.closing.clone();
        // Ends with `closing`, which the provider cancels when it is closed or dropped.
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = sleep(every) => {}
                }
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = work() => {}
                }
            }
        });
    }

    /// Does this for each sandbox that it has or holds, some at the same time.
    pub async fn for_each<F: Future<Output = ()>>(&self, work: impl FnMut(SandboxId) -> F) {
        let mut all: Vec<SandboxId> = self.own().iter().cloned().collect();
        all.extend(self.held().iter().cloned());
        stream::iter(all).for_each_concurrent(AT_ONCE, work).await;
    }

    /// Ends: waits for what goes on, and does this for each sandbox that ends with it, within a minute altogether.
    pub async fn end<F: Future<Output = ()>>(&self, delete: impl FnMut(SandboxId) -> F) {
        self.closing.cancel();
        self.tasks.close();
        let ending = async {
            self.tasks.wait().await;
            let own: BTreeSet<SandboxId> = std::mem::take(&mut *self.own());
            stream::iter(own).for_each_concurrent(AT_ONCE, delete).await;
        };
        if timeout(CLOSE, ending).await.is_err() {
            tracing::warn!("the end of the backend took too long; its sandboxes end with their time limits");
        }
        self.backends.vanish();
    }
}

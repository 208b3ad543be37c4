//! Lengthens the time limits of sandboxes that this backend holds. Those of a backend that has died end, or rest, by
//! themselves.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use gloveport_provider::{ProviderError, SandboxId, SandboxState};
use tokio::time::sleep;

use crate::inner::Inner;

/// How many times a limit is lengthened before it would be reached.
const TIMES: u32 = 3;
/// Sandboxes that are lengthened at the same time.
const AT_ONCE: usize = 8;

impl Inner {
    /// From now on this backend holds a sandbox.
    pub(crate) async fn hold(self: &Arc<Self>, id: &SandboxId) -> Result<(), ProviderError> {
        self.check_open()?;
        if !self.control.set_timeout(id, self.options.time_limit).await? {
            return Err(ProviderError::NotFound(id.clone()));
        }
        self.held().insert(id.clone());
        self.keep_going();
        Ok(())
    }

    /// Lengthens limits until the backend ends.
    pub(crate) fn keep_going(self: &Arc<Self>) {
        if self.keeping.swap(true, Ordering::SeqCst) {
            return;
        }
        let (inner, closing) = (Arc::downgrade(self), self.closing.clone());
        let every = self.options.time_limit / TIMES;
        // Ends with `closing`, which the provider cancels when it is closed or dropped.
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = sleep(every) => {}
                }
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = lengthen_all(&inner, every) => {}
                }
            }
        });
    }

    /// Lengthens the limit of a sandbox whose server lives.
    pub(crate) async fn lengthen(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let Some(found) = self.find(id).await? else {
            tracing::warn!(%id, "a sandbox is gone: somebody deleted it, or it reached the limit of the plan");
            self.forget(id);
            return Ok(());
        };
        // One whose server has ended costs money until its limit is reached, and one that rests has none.
        if matches!(found.state, SandboxState::Running | SandboxState::Pending) {
            self.control.set_timeout(id, self.options.time_limit).await?;
        }
        Ok(())
    }
}

async fn lengthen_all(inner: &Weak<Inner>, every: Duration) {
    let Some(inner) = inner.upgrade() else { return };
    let mut all: Vec<SandboxId> = inner.own().iter().cloned().collect();
    all.extend(inner.held().iter().cloned());
    let one = |id: SandboxId| {
        let inner = &inner;
        async move {
            match inner.lengthen(&id).await {
                Ok(()) => {}
                Err(error @ ProviderError::Spec { .. }) => {
                    tracing::warn!(%id, %error, "a sandbox reaches the longest time of the plan; pause and resume it to go on");
                }
                Err(error) => tracing::warn!(%id, %error, again_in = ?every, "a time limit was not lengthened"),
            }
        }
    };
    stream::iter(all).for_each_concurrent(AT_ONCE, one).await;
}

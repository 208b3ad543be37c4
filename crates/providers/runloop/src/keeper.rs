//! Tells the service that sandboxes which this backend holds are of use. Those of a backend that has died end, or rest, by
//! themselves.

use std::sync::{Arc, Weak};

use gloveport_provider::{ProviderError, SandboxId, SandboxState};

use crate::inner::Inner;

/// How many times it is told before a limit would be reached.
const TIMES: u32 = 3;

impl Inner {
    /// From now on this backend holds a sandbox.
    pub(crate) async fn hold(self: &Arc<Self>, id: &SandboxId) -> Result<(), ProviderError> {
        self.backend.check_open(crate::names::NAME)?;
        let (devbox, _) = self.existing(id).await?;
        // One that rests has no clock.
        if devbox.status == "running" && !self.keep_alive(id).await? {
            return Err(ProviderError::NotFound(id.clone()));
        }
        self.backend.held().insert(id.clone());
        self.keep_going();
        Ok(())
    }

    /// The clock of a sandbox begins anew. Whether there is one.
    async fn keep_alive(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        self.control.change("keep a sandbox alive", id, "keep_alive").await
    }

    /// Goes on until the backend ends.
    pub(crate) fn keep_going(self: &Arc<Self>) {
        let inner = Arc::downgrade(self);
        self.backend.keep_going(self.options.time_limit / TIMES, move || tell_all(Weak::clone(&inner)));
    }

    /// Tells it of a sandbox whose server lives.
    async fn tell(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let Some(found) = self.find(id).await? else {
            tracing::warn!(%id, "a sandbox is gone: somebody deleted it, or it was not heard of for too long");
            self.backend.forget(id);
            return Ok(());
        };
        // One whose server has ended costs money until its limit is reached, and one that rests has none.
        if matches!(found.state, SandboxState::Running | SandboxState::Pending) {
            self.keep_alive(id).await?;
        }
        Ok(())
    }
}

async fn tell_all(inner: Weak<Inner>) {
    let Some(inner) = inner.upgrade() else { return };
    let of = &inner;
    let one = |id: SandboxId| async move {
        if let Err(error) = of.tell(&id).await {
            tracing::warn!(%id, %error, "a sandbox was not kept alive; it is tried again");
        }
    };
    inner.backend.for_each(one).await;
}

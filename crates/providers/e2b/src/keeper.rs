//! Lengthens the time limits of sandboxes that this backend holds. Those of a backend that has died end, or rest, by
//! themselves.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use gloveport_provider::{ProviderError, SandboxId, SandboxState};

use crate::{inner::Inner, names::NAME};

/// How many times a limit is lengthened before it would be reached.
const TIMES: u32 = 3;

impl Inner {
    /// From now on this backend holds a sandbox.
    pub(crate) async fn hold(self: &Arc<Self>, id: &SandboxId) -> Result<(), ProviderError> {
        self.backend.check_open(NAME)?;
        if !self.control.set_timeout(id, self.options.time_limit).await? {
            return Err(ProviderError::NotFound(id.clone()));
        }
        self.backend.held().insert(id.clone());
        self.keep_going();
        Ok(())
    }

    /// Lengthens limits until the backend ends.
    pub(crate) fn keep_going(self: &Arc<Self>) {
        let (inner, every) = (Arc::downgrade(self), self.options.time_limit / TIMES);
        self.backend.keep_going(every, move || lengthen_all(Weak::clone(&inner), every));
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

async fn lengthen_all(inner: Weak<Inner>, every: Duration) {
    let Some(inner) = inner.upgrade() else { return };
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
    inner.backend.for_each(one).await;
}

//! Tells the service that sandboxes are in use which this backend holds: that programs run in one is no use to it. Those of a
//! backend that has died are stopped, and deleted if they were to end with it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use gloveport_provider::{ProviderError, SandboxId, SandboxState};

use crate::{inner::Inner, names::NAME};

/// How many times the service is told before it would stop a sandbox.
const TIMES: u32 = 3;
/// What that is, for messages.
const ACTION: &str = "keep a sandbox alive";

impl Inner {
    /// From now on this backend holds a sandbox.
    pub(crate) async fn hold(self: &Arc<Self>, id: &SandboxId) -> Result<(), ProviderError> {
        self.backend.check_open(NAME)?;
        self.existing(id).await?;
        if !self.control.act(ACTION, id, "last-activity").await? {
            return Err(ProviderError::NotFound(id.clone()));
        }
        self.backend.held().insert(id.clone());
        self.keep_going();
        Ok(())
    }

    /// Keeps sandboxes in use until the backend ends.
    pub(crate) fn keep_going(self: &Arc<Self>) {
        let (inner, every) = (Arc::downgrade(self), self.options.time_limit / TIMES);
        self.backend.keep_going(every, move || use_all(Weak::clone(&inner), every));
    }

    /// Keeps a sandbox in use whose server lives.
    async fn keep(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let Some(found) = self.find(id).await? else {
            tracing::warn!(%id, "a sandbox is gone: somebody deleted it, or its time was over");
            self.forget(id);
            return Ok(());
        };
        // One whose server has ended costs money until it is stopped.
        if matches!(found.state, SandboxState::Running | SandboxState::Pending) {
            self.control.act(ACTION, id, "last-activity").await?;
        }
        Ok(())
    }
}

async fn use_all(inner: Weak<Inner>, every: Duration) {
    let Some(inner) = inner.upgrade() else { return };
    let one = |id: SandboxId| {
        let inner = &inner;
        async move {
            if let Err(error) = inner.keep(&id).await {
                tracing::warn!(%id, %error, again_in = ?every, "a sandbox was not kept in use");
            }
        }
    };
    inner.backend.for_each(one).await;
}

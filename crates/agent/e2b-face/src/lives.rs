//! When sandboxes end, and what becomes of them then.
//!
//! Engines do not change when a sandbox ends, and clients of E2B do so all the time. So the gateway ends them, and what it is told
//! is in its memory. One that it knows nothing of, because another gateway was told, or this one before it was started anew, runs as
//! long as sandboxes may run at most.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt as _, stream};
use gloveport_provider::SandboxId;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    Host,
    mark::{self, LABEL, Mark},
};

/// Pause between two looks at what is over.
const LOOK: Duration = Duration::from_millis(500);
/// Looks of which one is at the engine.
const ENGINE: u32 = 120;
/// Sandboxes that are ended at a time.
const AT_ONCE: usize = 8;
/// Time that one still has whose end nobody here knows.
const GRACE: Duration = Duration::from_mins(5);
/// When a sandbox that could not be ended is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// What is known of the end of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) until: SystemTime,
    /// It is paused then, and not ended.
    pub(crate) auto_pause: bool,
}

/// When sandboxes end.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    known: Mutex<HashMap<SandboxId, Life>>,
}

impl Lives {
    fn known(&self) -> MutexGuard<'_, HashMap<SandboxId, Life>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a sandbox ends, if that is known here.
    pub(crate) fn get(&self, id: &SandboxId) -> Option<Life> {
        self.known().get(id).copied()
    }

    /// Says when a sandbox ends.
    pub(crate) fn set(&self, id: &SandboxId, life: Life) {
        self.known().insert(id.clone(), life);
    }

    /// It has no end any more: it is gone, or paused.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.known().remove(id);
    }

    fn over(&self, now: SystemTime) -> Vec<(SandboxId, Life)> {
        self.known().iter().filter(|(_, life)| life.until <= now).map(|(id, life)| (id.clone(), *life)).collect()
    }

    /// Ends sandboxes when their time is over, until `stop` is cancelled.
    pub(crate) async fn care(&self, host: &Arc<dyn Host>, longest: Duration, stop: &CancellationToken) {
        let mut looks = 0;
        while stop.run_until_cancelled(sleep(LOOK)).await.is_some() {
            if looks % ENGINE == 0 {
                self.adopt(&**host, longest).await;
            }
            looks = looks.wrapping_add(1);
            let over = self.over(SystemTime::now());
            stream::iter(over)
                .for_each_concurrent(AT_ONCE, async |(id, life)| self.end(&**host, &id, life).await)
                .await;
        }
    }

    async fn end(&self, host: &dyn Host, id: &SandboxId, life: Life) {
        let ended = if life.auto_pause { host.pause(id).await } else { host.end(id).await };
        let mut known = self.known();
        // Somebody may have given it more time meanwhile.
        if known.get(id) != Some(&life) {
            return;
        }
        match ended {
            Ok(()) => {
                known.remove(id);
                tracing::info!(%id, paused = life.auto_pause, "the time of a sandbox was over");
            }
            Err(refusal) if refusal.status == http::StatusCode::NOT_FOUND => drop(known.remove(id)),
            Err(refusal) => {
                tracing::warn!(%id, reason = refusal.message, "a sandbox whose time is over could not be ended yet");
                known.insert(id.clone(), Life { until: SystemTime::now() + AGAIN, ..life });
            }
        }
    }

    /// Gives those an end of which nothing is known here, and forgets those that are no more.
    async fn adopt(&self, host: &dyn Host, longest: Duration) {
        let listed = match host.list(LABEL).await {
            Ok(listed) => listed,
            Err(refusal) => {
                tracing::debug!(reason = refusal.message, "the sandboxes cannot be listed now");
                return;
            }
        };
        let mut known = self.known();
        let now = SystemTime::now();
        for sandbox in &listed {
            if let (Some(mark), Some(false)) = (Mark::of(sandbox), mark::is_paused(sandbox)) {
                let until = (mark::created(sandbox) + longest).max(now + GRACE);
                known.entry(sandbox.id.clone()).or_insert(Life { until, auto_pause: mark.auto_pause });
            }
        }
        known.retain(|id, life| life.until > now || listed.iter().any(|sandbox| sandbox.id == *id));
    }
}

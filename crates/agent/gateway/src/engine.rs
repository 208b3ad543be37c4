//! Whether the engine answers, and what it has: asked at most once in a few seconds, however many want to know.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gloveport_provider::ListFilter;
use tokio::{sync::Semaphore, time::timeout};

use crate::{labels::LABEL, shared::Shared};

/// How long an answer counts.
const FRESH: Duration = Duration::from_secs(5);
/// Time for the engine to answer.
const LIMIT: Duration = Duration::from_secs(2);

/// What was seen of the engine.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Sandboxes by the word for their state; or why it does not answer.
    pub(crate) states: Result<BTreeMap<&'static str, u64>, String>,
    at: Instant,
}

/// What was seen last, and whose turn it is to look.
#[derive(Debug)]
pub(crate) struct Engine {
    seen: Mutex<Option<Arc<Seen>>>,
    turn: Semaphore,
}

impl Default for Engine {
    fn default() -> Self {
        Self { seen: Mutex::default(), turn: Semaphore::new(1) }
    }
}

impl Engine {
    fn fresh(&self) -> Option<Arc<Seen>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        seen.filter(|seen| seen.at.elapsed() < FRESH)
    }
}

impl Shared {
    /// The engine as it was a moment ago at most.
    pub(crate) async fn engine_seen(&self) -> Arc<Seen> {
        if let Some(seen) = self.engine.fresh() {
            return seen;
        }
        // Never closed; and who comes second finds what the first one has seen.
        let _turn = self.engine.turn.acquire().await;
        if let Some(seen) = self.engine.fresh() {
            return seen;
        }
        let label = self.can.labels.then(|| (LABEL.0.to_owned(), LABEL.1.to_owned()));
        let filter = ListFilter { labels: label.into_iter().collect(), ended: false };
        let states = match timeout(LIMIT, self.provider.list(&filter)).await {
            Ok(Ok(listed)) => {
                let mut states = BTreeMap::new();
                for sandbox in listed {
                    *states.entry(sandbox.state.word()).or_default() += 1;
                }
                Ok(states)
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it did not answer within {} s", LIMIT.as_secs())),
        };
        if let Err(error) = &states {
            tracing::warn!(error, "the engine does not answer");
        }
        let seen = Arc::new(Seen { states, at: Instant::now() });
        *self.engine.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&seen));
        seen
    }
}

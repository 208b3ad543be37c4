//! Where operations are written down.

use std::fmt;

use gloveport_event_stream::{EventStore, MaskStream, Masker, Search};
use gloveport_protocol::{BoxFuture, Event, EventSource};
use gloveport_security::History;

use crate::RuntimeError;

/// A history, as operations see it.
pub trait Journal: Send + Sync + fmt::Debug {
    /// Adds an event, without secrets, and gives its number. `None` if it is not written down; then nothing is that
    /// belongs to it.
    fn add(&self, event: Event, source: EventSource) -> BoxFuture<'_, Result<Option<i64>, RuntimeError>>;

    /// What is written down already, for analyzers.
    fn events(&self) -> Option<EventStore>;

    /// Hides the secrets in output that arrives in chunks.
    fn mask(&self) -> MaskStream;
}

/// Nothing is written down.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn add(&self, _: Event, _: EventSource) -> BoxFuture<'_, Result<Option<i64>, RuntimeError>> {
        Box::pin(async { Ok(None) })
    }

    fn events(&self) -> Option<EventStore> {
        None
    }

    fn mask(&self) -> MaskStream {
        Masker::default().stream()
    }
}

/// A history, as analyzers see it.
pub(crate) struct LookBack(pub(crate) Option<EventStore>);

impl History for LookBack {
    fn latest(&self, count: usize) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async move {
            let Some(store) = &self.0 else { return Vec::new() };
            let search = Search { reverse: true, limit: Some(count), ..Search::default() };
            let mut found = store.search(search);
            let mut events = Vec::new();
            while events.len() < count {
                match found.next().await {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(%error, "an analyzer sees only a part of the history");
                        break;
                    }
                }
            }
            events.reverse();
            events
        })
    }
}

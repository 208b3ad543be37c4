//! The history of a session, as analyzers see it.

use gloveport_event_stream::{EventStream, Search};
use gloveport_protocol::{BoxFuture, Event};
use gloveport_security::History;

/// The events of a stream.
pub(crate) struct StreamHistory<'a>(pub(crate) &'a EventStream);

impl History for StreamHistory<'_> {
    fn latest(&self, count: usize) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async move {
            let search = Search { reverse: true, limit: Some(count), ..Search::default() };
            let mut found = self.0.store().search(search);
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

//! What all tests share.

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use gloveport_event_stream::{EventStream, LocalStore};
use gloveport_protocol::Event;

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Ends a test that hangs.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.unwrap()
}

/// What an event says.
pub(crate) fn said(event: &Event) -> String {
    match event {
        Event::Action(event) => event.action.message(),
        Event::Observation(event) => event.observation.message(),
    }
}

/// Opens the conversation `s`.
pub(crate) async fn open(root: &Path) -> EventStream {
    EventStream::open_local(root, None, "s", None).await.unwrap()
}

/// A store.
pub(crate) fn local(root: &Path) -> Arc<LocalStore> {
    Arc::new(LocalStore::new(root, None).unwrap())
}

//! What all tests share.

use std::{path::Path, sync::Arc};

use gloveport_event_stream::{EventStream, LocalStore};
use gloveport_protocol::Event;

pub(crate) use gloveport_testing::within;

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

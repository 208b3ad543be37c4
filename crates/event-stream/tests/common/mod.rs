//! What the tests share.

#![expect(clippy::unwrap_used, reason = "functions that tests share stop at the first broken assumption, too")]

use std::{future::Future, path::Path, sync::Arc, time::Duration};

use gloveport_event_stream::{BoxFuture, EventStream, LocalStore, Subscriber, SubscriberError};
use gloveport_protocol::{Action, Event, MessageAction};
use tokio::sync::mpsc;

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Ends a test that hangs.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.unwrap()
}

/// A message.
pub(crate) fn message(text: impl Into<String>) -> Action {
    Action::Message(MessageAction::new(text))
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

/// A subscriber that passes on what it is told.
pub(crate) struct Listener(mpsc::UnboundedSender<Arc<Event>>);

impl Listener {
    /// The subscriber, and where its events come out.
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Arc<Event>>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self(sender)), receiver)
    }
}

impl Subscriber for Listener {
    fn on_event(&self, event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>> {
        Box::pin(async move {
            self.0.send(event)?;
            Ok(())
        })
    }
}

/// A subscriber that is a function.
pub(crate) struct Callback<F>(pub(crate) F);

impl<F, R> Subscriber for Callback<F>
where
    F: Fn(Arc<Event>) -> R + Send + Sync,
    R: Future<Output = Result<(), SubscriberError>> + Send + 'static,
{
    fn on_event(&self, event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>> {
        Box::pin((self.0)(event))
    }
}

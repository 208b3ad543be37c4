//! Events to add, and subscribers that tell the test what they are told.

use std::{future::Future, sync::Arc};

use gloveport_event_stream::{BoxFuture, Subscriber, SubscriberError};
use gloveport_protocol::{Action, Event, MessageAction};
use tokio::sync::mpsc;

/// A message.
pub(crate) fn message(text: impl Into<String>) -> Action {
    Action::Message(MessageAction::new(text))
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

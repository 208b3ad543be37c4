//! The ledger of a history that grows, and who waits for it to grow.

use std::sync::{Arc, Mutex, PoisonError};

use gloveport_event_stream::{BoxFuture, Subscriber, SubscriberError};
use gloveport_protocol::Event;
use tokio::sync::watch;

use crate::ledger::Ledger;

/// Sees each event of a stream.
#[derive(Debug)]
pub(crate) struct Tracker {
    ledger: Mutex<Ledger>,
    /// The number of the latest event that was seen.
    latest: watch::Sender<i64>,
}

impl Tracker {
    /// Goes on with the ledger of what there is, up to `latest`.
    pub(crate) fn new(ledger: Ledger, latest: i64) -> Self {
        Self { ledger: Mutex::new(ledger), latest: watch::Sender::new(latest) }
    }

    /// What is unanswered.
    pub(crate) fn ledger(&self) -> Ledger {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether nothing is being done. Questions may wait.
    pub(crate) fn rests(&self) -> bool {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).open.is_empty()
    }

    /// How many actions have no answer.
    pub(crate) fn open(&self) -> usize {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).open.len()
    }

    /// Is told of each number.
    pub(crate) fn latest(&self) -> watch::Receiver<i64> {
        self.latest.subscribe()
    }
}

impl Subscriber for Tracker {
    fn on_event(&self, event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>> {
        Box::pin(async move {
            self.ledger.lock().unwrap_or_else(PoisonError::into_inner).see(&event);
            self.latest.send_replace(event.id().unwrap_or(-1));
            Ok(())
        })
    }
}

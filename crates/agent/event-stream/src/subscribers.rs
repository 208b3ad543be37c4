//! Who is told of new events, and how (event-stream 4.2).

mod id;
mod queue;
mod task;

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{self, AtomicU64},
    },
    time::Duration,
};

use gloveport_protocol::Event;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

pub use id::SubscriberId;
pub(crate) use queue::QueueLimits;
use task::{Subscription, is_inside};

use crate::{error::SubscribeError, history::EventStore, store::BoxFuture};

/// How long is waited for a callback that runs while its subscriber is removed. After that it is dropped.
const CALLBACK_LIMIT: Duration = Duration::from_secs(10);

/// What went wrong in a callback.
pub type SubscriberError = Box<dyn Error + Send + Sync>;

/// Somebody who is told of events.
///
/// The events come in the order of their numbers, one at a time: the next one when the future of the one before has
/// ended. What fails or panics here is logged, and harms nobody else. A callback that blocks its thread does harm, as
/// it does everywhere in asynchronous programs.
pub trait Subscriber: Send + Sync {
    /// Is told of an event, as it is stored.
    fn on_event(&self, event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>>;
}

/// All who are told of the events of a stream.
pub(crate) struct Registry {
    /// Tells this stream from others.
    key: u64,
    members: Mutex<Members>,
    /// Ends everything.
    stop: CancellationToken,
    history: EventStore,
    limits: QueueLimits,
    tasks: Handle,
}

#[derive(Default)]
struct Members {
    /// In the order in which they are told: by subscriber, and then by when they came.
    by_id: BTreeMap<SubscriberId, Vec<Arc<Subscription>>>,
    /// The last number that was announced.
    announced: i64,
}

impl Registry {
    /// Nobody yet. Must be called within a runtime, which runs the callbacks.
    pub(crate) fn new(history: EventStore, limits: QueueLimits, next: i64) -> Self {
        static KEYS: AtomicU64 = AtomicU64::new(0);
        let key = KEYS.fetch_add(1, atomic::Ordering::Relaxed);
        let members = Members { by_id: BTreeMap::new(), announced: next - 1 };
        let stop = CancellationToken::new();
        Self { key, members: Mutex::new(members), stop, history, limits, tasks: Handle::current() }
    }

    /// What ends all subscriptions when it is cancelled.
    pub(crate) const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(crate) fn subscribe(
        &self,
        subscriber: SubscriberId,
        callback_id: &str,
        handler: Arc<dyn Subscriber>,
    ) -> Result<(), SubscribeError> {
        let mut members = self.members();
        if self.stop.is_cancelled() {
            return Err(SubscribeError::Closed);
        }
        let announced = members.announced;
        let callbacks = members.by_id.entry(subscriber).or_default();
        if callbacks.iter().any(|known| known.callback_id() == callback_id) {
            return Err(SubscribeError::Exists { subscriber, callback_id: callback_id.to_owned() });
        }
        let subscription = Subscription::new(subscriber, callback_id, self.limits, announced, self.stop.child_token());
        let run = Arc::clone(&subscription).run(self.key, handler, self.history.clone());
        subscription.started(self.tasks.spawn(run).abort_handle());
        callbacks.push(subscription);
        Ok(())
    }

    pub(crate) async fn unsubscribe(&self, subscriber: SubscriberId, callback_id: &str) {
        match self.remove(subscriber, callback_id) {
            Ok(subscription) => {
                subscription.stop();
                if !is_inside(self.key) {
                    subscription.ended(CALLBACK_LIMIT).await;
                }
            }
            Err(text) => tracing::warn!("{text}"),
        }
    }

    fn remove(&self, subscriber: SubscriberId, callback_id: &str) -> Result<Arc<Subscription>, String> {
        let mut members = self.members();
        let callbacks = members
            .by_id
            .get_mut(&subscriber)
            .ok_or_else(|| format!("Subscriber not found during unsubscribe: {subscriber}"))?;
        let at = callbacks
            .iter()
            .position(|known| known.callback_id() == callback_id)
            .ok_or_else(|| format!("Callback not found during unsubscribe: {callback_id}"))?;
        Ok(callbacks.remove(at))
    }

    /// Gives an event to all. Never waits.
    pub(crate) fn announce(&self, id: i64, event: &Arc<Event>, size: usize) {
        let mut members = self.members();
        members.announced = id;
        for subscription in members.by_id.values().flatten() {
            subscription.announce(id, event, size);
        }
    }

    /// Waits until all have handled what is announced now.
    pub(crate) async fn delivered(&self) {
        if is_inside(self.key) {
            return;
        }
        let (announced, subscriptions) = {
            let members = self.members();
            (members.announced, members.by_id.values().flatten().cloned().collect::<Vec<_>>())
        };
        for subscription in subscriptions {
            subscription.handled(announced).await;
        }
    }

    /// Ends all subscriptions, and waits for the callbacks that run.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        let subscriptions = std::mem::take(&mut self.members().by_id);
        if !is_inside(self.key) {
            let ends = subscriptions.values().flatten().map(|subscription| subscription.ended(CALLBACK_LIMIT));
            futures_util::future::join_all(ends).await;
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // What is behind it is whole whenever it is unlocked.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

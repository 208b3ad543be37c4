//! One subscriber: its queue, and the task that calls it.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use gloveport_protocol::Event;
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};
use tokio_util::sync::CancellationToken;

use super::{
    Subscriber, SubscriberId,
    queue::{Next, Queue, QueueLimits},
};
use crate::history::{EventStore, Search};

/// First and longest wait before a store that failed is read again.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

tokio::task_local! {
    /// The stream whose callback this is.
    static STREAM: u64;
}

/// Whether this is within a callback of a stream. Who waited there for callbacks could wait for itself.
pub(crate) fn is_inside(stream: u64) -> bool {
    STREAM.try_with(|inside| *inside == stream).unwrap_or(false)
}

/// One (subscriber, callback).
pub(crate) struct Subscription {
    subscriber: SubscriberId,
    callback_id: String,
    queue: Mutex<Queue>,
    wake: Notify,
    stop: CancellationToken,
    ended: CancellationToken,
    abort: OnceLock<AbortHandle>,
    /// The last number that was handled.
    handled: watch::Sender<i64>,
}

impl Subscription {
    /// A subscriber of the events after the announced one.
    pub(crate) fn new(
        subscriber: SubscriberId,
        callback_id: &str,
        limits: QueueLimits,
        announced: i64,
        stop: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            subscriber,
            callback_id: callback_id.to_owned(),
            queue: Mutex::new(Queue::new(limits)),
            wake: Notify::new(),
            stop,
            ended: CancellationToken::new(),
            abort: OnceLock::new(),
            handled: watch::Sender::new(announced),
        })
    }

    pub(crate) fn callback_id(&self) -> &str {
        &self.callback_id
    }

    /// Says what ends the task by force.
    pub(crate) fn started(&self, task: AbortHandle) {
        // It is called once.
        let _ = self.abort.set(task);
    }

    /// Gives it an event. Never waits.
    pub(crate) fn announce(&self, id: i64, event: &Arc<Event>, size: usize) {
        self.queue().push(id, event, size);
        self.wake.notify_one();
    }

    /// Lets no callback begin any more.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until no callback runs any more; drops one that takes longer than the limit.
    pub(crate) async fn ended(&self, limit: Duration) {
        if tokio::time::timeout(limit, self.ended.cancelled()).await.is_err() {
            let (subscriber, callback_id) = (self.subscriber, &self.callback_id);
            tracing::warn!(%subscriber, callback_id, "a callback that does not end is dropped");
            if let Some(task) = self.abort.get() {
                task.abort();
            }
        }
    }

    /// Waits until the event with this number is handled, or never will be.
    pub(crate) async fn handled(&self, id: i64) {
        let mut handled = self.handled.subscribe();
        tokio::select! {
            // The sender lives as long as `self`.
            _ = handled.wait_for(|handled| *handled >= id) => {}
            () = self.ended.cancelled() => {}
        }
    }

    /// Calls the handler until the subscription is stopped.
    pub(crate) async fn run(self: Arc<Self>, stream: u64, handler: Arc<dyn Subscriber>, history: EventStore) {
        let _ended = self.ended.clone().drop_guard();
        while !self.stop.is_cancelled() {
            let next = self.queue().pop();
            match next {
                Some(Next::Event(id, event)) => {
                    self.call(stream, &*handler, event).await;
                    self.handled.send_replace(id);
                }
                Some(Next::Missed(first, last)) => {
                    self.catch_up(stream, &*handler, &history, first, last).await;
                    self.handled.send_replace(last);
                }
                None => tokio::select! {
                    () = self.wake.notified() => {}
                    () = self.stop.cancelled() => {}
                },
            }
        }
    }

    /// Reads events back from the store, and handles them.
    async fn catch_up(&self, stream: u64, handler: &dyn Subscriber, history: &EventStore, first: i64, last: i64) {
        let mut events = history.search(Search { start: first, end: Some(last), ..Search::default() });
        let mut pause = RETRY.0;
        while !self.stop.is_cancelled() {
            match events.next().await {
                Ok(Some(event)) => {
                    pause = RETRY.0;
                    self.call(stream, handler, Arc::new(event)).await;
                }
                Ok(None) => return,
                // The search goes on where it is.
                Err(error) => {
                    let (subscriber, callback_id) = (self.subscriber, &self.callback_id);
                    tracing::warn!(%subscriber, callback_id, "events wait to be handled: {error}");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.stop.cancelled() => {}
                    }
                    pause = (pause * 2).min(RETRY.1);
                }
            }
        }
    }

    async fn call(&self, stream: u64, handler: &dyn Subscriber, event: Arc<Event>) {
        let callback = STREAM.scope(stream, async move { handler.on_event(event).await });
        let text = match AssertUnwindSafe(callback).catch_unwind().await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("it panicked: {}", panic_text(&*panic)),
        };
        tracing::error!("Error in event callback {} for subscriber {}: {text}", self.callback_id, self.subscriber);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // What is behind it is whole whenever it is unlocked.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a panic says.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

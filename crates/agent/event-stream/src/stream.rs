//! The history of a conversation, for those who add to it (event-stream 4).

use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, atomic::AtomicI64},
};

use gloveport_protocol::{Event, EventSource, Secret};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{AddEventError, HistoryError, SubscribeError},
    history::EventStore,
    log::{JournalLimits, Log},
    mask::{MaskStream, Masker},
    store::{FileStore, LocalStore},
    subscribers::{QueueLimits, Registry, Subscriber, SubscriberId},
    writer::{Command, Pending, WAITING, Writer},
};

/// The history of a conversation that is being written. Clones are the same stream.
///
/// An event is durable before anybody is told of it. The stream ends with [`close`](Self::close), or when the last
/// clone is dropped; as a subscriber often has a clone itself, `close` is the way.
#[derive(Clone)]
pub struct EventStream {
    shared: Arc<Shared>,
}

struct Shared {
    history: EventStore,
    masker: RwLock<Masker>,
    commands: mpsc::Sender<Command>,
    registry: Arc<Registry>,
    /// Cancelled when the writer has ended.
    ended: CancellationToken,
}

/// What grows, and how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamLimits {
    pub(crate) queue: QueueLimits,
    pub(crate) journal: JournalLimits,
}

impl EventStream {
    /// Opens the history of a conversation to write it.
    ///
    /// In a store that is a directory of this machine ([`FileStore::directory`]), events go through a journal there;
    /// the conversation can be open once in all processes, and what a crash has left is repaired. In other stores each
    /// event is a write, and nothing keeps a second process out.
    pub async fn open(store: Arc<dyn FileStore>, sid: &str, user_id: Option<&str>) -> Result<Self, HistoryError> {
        Self::open_with(store, sid, user_id, StreamLimits::default()).await
    }

    /// Opens the history of a conversation in a directory of this machine, which is created. A `~` at the start of
    /// `root` is `home`.
    pub async fn open_local(
        root: &Path,
        home: Option<&Path>,
        sid: &str,
        user_id: Option<&str>,
    ) -> Result<Self, HistoryError> {
        Self::open(Arc::new(LocalStore::new(root, home)?), sid, user_id).await
    }

    pub(crate) async fn open_with(
        store: Arc<dyn FileStore>,
        sid: &str,
        user_id: Option<&str>,
        limits: StreamLimits,
    ) -> Result<Self, HistoryError> {
        let reader = EventStore::new(Arc::clone(&store), sid, user_id);
        let (log, first) = Log::open(Arc::clone(&store), reader, limits.journal).await?;
        let next = Arc::new(AtomicI64::new(first));
        let history = EventStore::build(store, sid, user_id, Some(Arc::clone(&next)));
        let registry = Arc::new(Registry::new(history.clone(), limits.queue, first));
        let (sender, commands) = mpsc::channel(WAITING);
        let ended = CancellationToken::new();
        let writer = Writer {
            log,
            commands,
            next,
            registry: Arc::clone(&registry),
            stop: registry.stop().clone().drop_guard(),
            ended: ended.clone().drop_guard(),
        };
        // It ends with the last sender, which is part of what is shared here.
        tokio::spawn(writer.run());
        let masker = RwLock::new(Masker::default());
        Ok(Self { shared: Arc::new(Shared { history, masker, commands: sender, registry, ended }) })
    }

    /// The events, for reading.
    pub fn store(&self) -> &EventStore {
        &self.shared.history
    }

    /// Adds an event, and gives it as it is stored: with its number, its time and its source, and without secrets.
    ///
    /// The event is durable, and announced, when this is done. If the future is dropped before, the event may be added
    /// or not.
    pub async fn add(&self, event: impl Into<Event>, source: EventSource) -> Result<Arc<Event>, AddEventError> {
        self.add_with(event, source, |_| {}).await
    }

    /// Like [`add`](Self::add); `assigned` is called with the number of the event when it is stored and before anybody
    /// is told of it. It is not called for an event that cannot be stored. Everybody waits for it, so it must be quick.
    pub async fn add_with(
        &self,
        event: impl Into<Event>,
        source: EventSource,
        assigned: impl FnOnce(i64) + Send + 'static,
    ) -> Result<Arc<Event>, AddEventError> {
        let event = self.masked(&event.into())?;
        let (reply, answer) = oneshot::channel();
        let pending = Pending { event, source, assigned: Box::new(assigned), reply };
        let command = Command::Add(Box::new(pending));
        self.shared.commands.send(command).await.map_err(|_| AddEventError::Closed)?;
        answer.await.unwrap_or(Err(AddEventError::Closed))
    }

    /// The event as it may be seen: made again from its JSON form without the secrets, so that what is derived from it,
    /// such as its message, has none either.
    fn masked(&self, event: &Event) -> Result<Event, AddEventError> {
        if let Some(id) = event.id().filter(|id| *id != -1) {
            return Err(AddEventError::HasId { id });
        }
        let mut value = event.to_value();
        self.shared.masker.read().unwrap_or_else(PoisonError::into_inner).mask_value(&mut value);
        Event::from_value(value).map_err(|error| AddEventError::Masked { source: Box::new(error) })
    }

    /// Tells somebody of all events that are announced from now on, in a task of its own.
    ///
    /// A subscriber that is slow misses nothing: what does not fit into its queue (1,024 events or 16 MiB of text) is
    /// read back from the store when it is ready.
    pub fn subscribe(
        &self,
        subscriber: SubscriberId,
        callback_id: &str,
        handler: Arc<dyn Subscriber>,
    ) -> Result<(), SubscribeError> {
        self.shared.registry.subscribe(subscriber, callback_id, handler)
    }

    /// Tells somebody no more. An unknown name is a warning.
    ///
    /// When this is done, the callback does not run any more: a running one is waited for, and dropped after ten
    /// seconds; events that it was not told of yet are dropped. Within a callback of this stream nothing is waited
    /// for, since callbacks could wait for each other: then the callback that runs goes on to its end.
    pub async fn unsubscribe(&self, subscriber: SubscriberId, callback_id: &str) {
        self.shared.registry.unsubscribe(subscriber, callback_id).await;
    }

    /// Waits until every subscriber has handled the events that are announced now. Within a callback of this stream
    /// nothing is waited for.
    pub async fn delivered(&self) {
        self.shared.registry.delivered().await;
    }

    /// Waits until what was added before is announced, also by those who did not wait for it ([`add`](Self::add)), and every
    /// subscriber has handled it. Within a callback of this stream the subscribers are not waited for.
    pub async fn settled(&self) {
        let (told, announced) = oneshot::channel();
        if self.shared.commands.send(Command::Tell(told)).await.is_ok() {
            // It fails if the writer has ended, which has stored all before.
            let _ = announced.await;
        }
        self.delivered().await;
    }

    /// Replaces the secrets that are hidden in events from now on: names and values.
    pub fn set_secrets(&self, secrets: BTreeMap<String, Secret>) {
        self.masker().set(secrets);
    }

    /// Adds secrets that are hidden in events from now on, or replaces those of the same name.
    pub fn update_secrets(&self, secrets: BTreeMap<String, Secret>) {
        self.masker().update(secrets);
    }

    /// Hides the secrets of now in output that arrives in chunks.
    pub fn mask_stream(&self) -> MaskStream {
        self.shared.masker.read().unwrap_or_else(PoisonError::into_inner).stream()
    }

    fn masker(&self) -> RwLockWriteGuard<'_, Masker> {
        self.shared.masker.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the stream: what was added before is stored, the conversation can be opened by others, and no callback runs
    /// any more. Events that subscribers were not told of yet are dropped; [`delivered`](Self::delivered) waits for
    /// them. Within a callback of this stream, the callbacks that run are not waited for.
    pub async fn close(&self) {
        // It fails if the writer has ended, or is about to.
        let _ = self.shared.commands.send(Command::Close).await;
        self.shared.ended.cancelled().await;
        self.shared.registry.close().await;
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventStream").field("history", &self.shared.history).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

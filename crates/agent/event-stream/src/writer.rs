//! The task that gives events their numbers, has them stored, and announces them.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use gloveport_protocol::{Event, EventSource, python::json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::DropGuard;

use crate::{
    clock,
    error::AddEventError,
    log::{Entry, Log, Outcome},
    subscribers::Registry,
};

/// How many events can wait for the writer; who adds another waits.
pub(crate) const WAITING: usize = 256;
/// Most events that are stored together.
const BATCH: usize = 128;
/// Bytes after which no event is added to a batch.
const BATCH_BYTES: usize = 1 << 20;
/// Length of an event's text above which a warning is logged (event-stream 4.1).
const LARGE: usize = 1_000_000;

/// What the writer is told.
pub(crate) enum Command {
    /// Store this event.
    Add(Box<Pending>),
    /// Store what came before, announce it, and tell so.
    Tell(oneshot::Sender<()>),
    /// Store what came before, and end.
    Close,
}

/// Is called with the number of a stored event before anybody is told of it.
pub(crate) type Assigned = Box<dyn FnOnce(i64) + Send>;

/// An event that is to be stored.
pub(crate) struct Pending {
    pub(crate) event: Event,
    pub(crate) source: EventSource,
    pub(crate) assigned: Assigned,
    pub(crate) reply: oneshot::Sender<Result<Arc<Event>, AddEventError>>,
}

/// The one that writes a history.
pub(crate) struct Writer {
    pub(crate) log: Log,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) next: Arc<AtomicI64>,
    pub(crate) registry: Arc<Registry>,
    /// Ends the subscriptions with the writer, however that ends.
    pub(crate) stop: DropGuard,
    /// Tells that the writer has ended.
    pub(crate) ended: DropGuard,
}

impl Writer {
    /// Writes until it is told to close, or nobody can add an event any more.
    pub(crate) async fn run(mut self) {
        let mut is_open = true;
        while is_open {
            let (mut batch, mut waits) = (VecDeque::new(), None);
            match self.commands.recv().await {
                Some(Command::Add(pending)) => batch.push_back(*pending),
                Some(Command::Tell(told)) => waits = Some(told),
                Some(Command::Close) | None => break,
            }
            while is_open && waits.is_none() && batch.len() < BATCH {
                match self.commands.try_recv() {
                    Ok(Command::Add(pending)) => batch.push_back(*pending),
                    Ok(Command::Tell(told)) => waits = Some(told),
                    Ok(Command::Close) => is_open = false,
                    Err(_) => break,
                }
            }
            self.store(batch).await;
            if let Some(told) = waits {
                // Who asked may not wait any more.
                let _ = told.send(());
            }
        }
        // Who added an event behind this is told that the stream is closed.
        self.commands.close();
        let Self { log, stop, ended, .. } = self;
        drop(stop);
        log.close().await;
        drop(ended);
    }

    /// Stores and announces events, in order.
    async fn store(&mut self, mut batch: VecDeque<Pending>) {
        let mut most = BATCH;
        while !batch.is_empty() {
            let entries = self.place(&mut batch, most);
            let sizes: Vec<_> = entries.iter().map(|entry| (entry.id, entry.text.len())).collect();
            match self.log.append(entries).await {
                Outcome::Prefix(stored, error) => {
                    for (id, size) in sizes.iter().take(stored) {
                        self.stored(batch.pop_front(), *id, *size);
                    }
                    match error {
                        None => {}
                        // One by one, it turns out which events cannot be stored.
                        Some(_) if sizes.len() - stored > 1 => most = 1,
                        Some(error) => refuse(batch.pop_front(), error),
                    }
                }
                Outcome::Taken(stored, next) => {
                    for (id, size) in sizes.iter().take(stored) {
                        self.stored(batch.pop_front(), *id, *size);
                    }
                    self.next.store(next, Ordering::Release);
                }
                Outcome::Each(results) => {
                    for ((id, size), result) in sizes.iter().zip(results) {
                        match result {
                            Ok(()) => self.stored(batch.pop_front(), *id, *size),
                            Err(error) => refuse(batch.pop_front(), error),
                        }
                    }
                }
            }
        }
    }

    /// Gives the first events their numbers and the time, and renders them.
    fn place(&self, batch: &mut VecDeque<Pending>, most: usize) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut size = 0;
        for (id, pending) in (self.next.load(Ordering::Acquire)..).zip(batch).take(most) {
            pending.event.place(id, clock::now(), pending.source);
            let text = json::line(&pending.event.to_value());
            if text.len() > LARGE {
                tracing::warn!(id, size = text.len(), "an event of more than 1 MB is stored");
            }
            size += text.len();
            entries.push(Entry { id, text: Bytes::from(text) });
            if size >= BATCH_BYTES {
                break;
            }
        }
        entries
    }

    /// Announces an event that is stored.
    fn stored(&self, pending: Option<Pending>, id: i64, size: usize) {
        let Some(Pending { event, assigned, reply, .. }) = pending else { return };
        if catch_unwind(AssertUnwindSafe(|| assigned(id))).is_err() {
            tracing::error!(id, "the function that is told the number of an event panicked");
        }
        self.next.store(id + 1, Ordering::Release);
        let event = Arc::new(event);
        self.registry.announce(id, &event, size);
        // Who added it may not wait any more.
        let _ = reply.send(Ok(event));
    }
}

fn refuse(pending: Option<Pending>, error: AddEventError) {
    if let Some(pending) = pending {
        tracing::warn!("{error}");
        // Who added it may not wait any more.
        let _ = pending.reply.send(Err(error));
    }
}

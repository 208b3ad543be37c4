//! A history that several processes write in turns.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_protocol::{Event, EventSource, Secret};
use tokio::time::sleep;

use crate::{AddEventError, EventStore, EventStream, FileStore, HistoryError, StoreError, session_exists};

/// How long a history that somebody else writes is waited for. Whoever takes turns holds it for milliseconds.
const LOCKED: Duration = Duration::from_secs(5);
/// The wait between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Why an event was not added to a shared history.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedError {
    /// The history cannot be opened.
    #[error(transparent)]
    Open(#[from] HistoryError),
    /// The event cannot be added.
    #[error(transparent)]
    Add(#[from] AddEventError),
}

/// The history of a conversation that nobody keeps open. It is locked for each event alone, so that the commands of a
/// session, each a process of its own, can take turns; what belongs together is told by the cause of an observation.
#[derive(Clone)]
pub struct SharedHistory {
    store: Arc<dyn FileStore>,
    sid: String,
}

impl SharedHistory {
    /// The history of this conversation. Nothing is made before the first event.
    pub fn new(store: Arc<dyn FileStore>, sid: impl Into<String>) -> Self {
        Self { store, sid: sid.into() }
    }

    /// The conversation.
    pub fn sid(&self) -> &str {
        &self.sid
    }

    /// Where it is kept.
    pub const fn store(&self) -> &Arc<dyn FileStore> {
        &self.store
    }

    /// For reading, also while others write.
    pub fn events(&self) -> EventStore {
        EventStore::new(Arc::clone(&self.store), &self.sid, None)
    }

    /// Whether there is any.
    pub async fn exists(&self) -> Result<bool, StoreError> {
        session_exists(&*self.store, &self.sid, None).await
    }

    /// Adds an event without these secrets, and gives its number.
    pub async fn add(
        &self,
        event: impl Into<Event>,
        source: EventSource,
        secrets: BTreeMap<String, Secret>,
    ) -> Result<Option<i64>, SharedError> {
        let stream = self.open().await?;
        stream.set_secrets(secrets);
        let added = stream.add(event, source).await;
        stream.close().await;
        self.store.flush().await;
        Ok(added?.id())
    }

    /// Opens it for writing, when those who write it have done so. Whoever does not close it keeps all others out.
    pub async fn open(&self) -> Result<EventStream, HistoryError> {
        let began = Instant::now();
        loop {
            match EventStream::open(Arc::clone(&self.store), &self.sid, None).await {
                Err(HistoryError::Locked { .. }) if began.elapsed() < LOCKED => sleep(PAUSE).await,
                opened => return opened,
            }
        }
    }
}

impl fmt::Debug for SharedHistory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedHistory").field("sid", &self.sid).finish_non_exhaustive()
    }
}

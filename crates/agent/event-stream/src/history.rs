//! The history of a conversation, for readers (event-stream 3).

mod filter;
pub(crate) mod number;
mod page;
mod search;

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use gloveport_protocol::{Event, EventSource};
use serde_json::Value;

use crate::{
    error::HistoryError,
    layout::ConversationPaths,
    store::{BoxFuture, FileStore, StoreError},
};

pub use filter::{EventFilter, EventType};
pub(crate) use page::{FullPage, PAGE_SIZE, PageBuilder, is_event, page_start};
pub(crate) use search::StoredEvents;
pub use search::{Events, Search};

/// Most events that [`History::matching`] gives.
const MATCHING_LIMIT: usize = 100;

/// Something that has the events of a conversation.
pub trait History: Send + Sync {
    /// The events that a search finds. Nothing is read before the first is asked for.
    fn search(&self, search: Search) -> Events;

    /// One event.
    fn event(&self, id: i64) -> BoxFuture<'_, Result<Event, HistoryError>>;

    /// The event with the highest number.
    fn latest_event(&self) -> BoxFuture<'_, Result<Event, HistoryError>>;

    /// The first events that a search finds: as many as its limit says, which is from 1 to 100 and is 100 if it says
    /// nothing.
    fn matching(&self, search: Search) -> BoxFuture<'_, Result<Vec<Event>, HistoryError>> {
        let limit = search.limit.unwrap_or(MATCHING_LIMIT);
        Box::pin(async move {
            if !(1..=MATCHING_LIMIT).contains(&limit) {
                return Err(HistoryError::Limit);
            }
            // The limit is counted here, as those who serve events do not know it.
            self.search(search).collect(limit).await
        })
    }
}

/// The stored events of a conversation. Clones are cheap.
///
/// It reads what is there when it is asked, whoever wrote it; it may be used beside a writer in this or another
/// process, since no event can be seen before it is whole.
#[derive(Clone)]
pub struct EventStore {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn FileStore>,
    sid: String,
    paths: ConversationPaths,
    /// The next number, if the writer is here and says it.
    next: Option<Arc<AtomicI64>>,
}

impl EventStore {
    /// The events of a conversation in a store. Nothing is read yet.
    pub fn new(store: Arc<dyn FileStore>, sid: &str, user_id: Option<&str>) -> Self {
        Self::build(store, sid, user_id, None)
    }

    /// The events of a conversation whose writer says what the next number is.
    pub(crate) fn build(
        store: Arc<dyn FileStore>,
        sid: &str,
        user_id: Option<&str>,
        next: Option<Arc<AtomicI64>>,
    ) -> Self {
        let paths = ConversationPaths::new(sid, user_id);
        Self { shared: Arc::new(Shared { store, sid: sid.to_owned(), paths, next }) }
    }

    /// The number that the next event gets: one more than the highest that is stored.
    pub async fn next_id(&self) -> Result<i64, HistoryError> {
        if let Some(next) = &self.shared.next {
            return Ok(next.load(Ordering::Acquire));
        }
        if let Some(root) = self.files().directory() {
            let directory = self.paths().below(root)?.join("events");
            let path = directory.clone();
            let found = tokio::task::spawn_blocking(move || number::highest_in(&directory)).await;
            return match found.unwrap_or_else(|error| Err(error.into())) {
                Ok(last) => Ok(last.map_or(0, |last| last.saturating_add(1))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
                Err(source) => Err(StoreError::Io { operation: "list", path, source }.into()),
            };
        }
        let names = match self.files().list(&self.paths().events()).await {
            Ok(names) => names,
            Err(StoreError::NotFound { .. }) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let last = names.iter().filter_map(|path| number::of_path(path)).max();
        Ok(last.map_or(0, |last| last.saturating_add(1)))
    }

    /// One event, from its own file; the pages are not looked at.
    pub async fn event(&self, id: i64) -> Result<Event, HistoryError> {
        let path = self.paths().event(id);
        let content = match self.files().read(&path).await {
            Ok(content) => content,
            Err(StoreError::NotFound { .. }) => {
                return Err(HistoryError::NoEvent { id, sid: self.shared.sid.clone() });
            }
            Err(error) => return Err(error.into()),
        };
        parse(&content).map_err(|reason| HistoryError::Corrupt { path, reason })
    }

    /// The number of the last event; -1 if there is none.
    pub async fn latest_id(&self) -> Result<i64, HistoryError> {
        Ok(self.next_id().await? - 1)
    }

    /// The last event.
    pub async fn latest_event(&self) -> Result<Event, HistoryError> {
        self.event(self.latest_id().await?).await
    }

    /// The events that a search finds. Nothing is read before the first is asked for.
    pub fn search(&self, search: Search) -> Events {
        Events::stored(StoredEvents::new(self.clone(), search))
    }

    /// All events from one source.
    pub fn by_source(&self, source: EventSource) -> Events {
        let filter = EventFilter { source: Some(source), ..EventFilter::default() };
        self.search(Search { filter, ..Search::default() })
    }

    /// The first events that a search finds, see [`History::matching`].
    pub async fn matching(&self, search: Search) -> Result<Vec<Event>, HistoryError> {
        History::matching(self, search).await
    }

    /// Where the parts of the conversation are in the store.
    pub fn paths(&self) -> &ConversationPaths {
        &self.shared.paths
    }

    /// The store.
    pub fn files(&self) -> &dyn FileStore {
        &*self.shared.store
    }
}

impl History for EventStore {
    fn search(&self, search: Search) -> Events {
        self.search(search)
    }

    fn event(&self, id: i64) -> BoxFuture<'_, Result<Event, HistoryError>> {
        Box::pin(self.event(id))
    }

    fn latest_event(&self) -> BoxFuture<'_, Result<Event, HistoryError>> {
        Box::pin(self.latest_event())
    }
}

impl fmt::Debug for EventStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventStore").field("paths", &self.shared.paths).finish_non_exhaustive()
    }
}

/// Whether there is anything of a conversation in a store (event-stream 2). Stores without directories, such as
/// buckets, say so of every conversation.
pub async fn session_exists(store: &dyn FileStore, sid: &str, user_id: Option<&str>) -> Result<bool, StoreError> {
    match store.list(ConversationPaths::new(sid, user_id).directory()).await {
        Ok(_) => Ok(true),
        Err(StoreError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn parse(content: &[u8]) -> Result<Event, String> {
    let value: Value = serde_json::from_slice(content).map_err(|error| match content {
        [] => "it is empty".to_owned(),
        _ => format!("it is not JSON: {error}"),
    })?;
    Event::from_value(value).map_err(|error| error.to_string())
}

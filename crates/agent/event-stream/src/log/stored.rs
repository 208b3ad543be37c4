//! The durable log in a store that says of each write when it is durable.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::Entry;
use crate::{
    error::HistoryError,
    history::{EventStore, PageBuilder, is_event, page_start},
    store::{FileStore, StoreError},
};

/// How many writes are under way at a time.
const CONCURRENT_WRITES: usize = 8;

/// The log of one conversation in any store.
///
/// Nothing keeps a second process from writing the same conversation: stores know no locks.
pub(crate) struct StoredLog {
    store: Arc<dyn FileStore>,
    history: EventStore,
    page: PageBuilder,
}

impl StoredLog {
    /// Opens the log of a conversation. Gives the next number.
    pub(crate) async fn open(store: Arc<dyn FileStore>, history: EventStore) -> Result<(Self, i64), HistoryError> {
        let next = history.next_id().await?;
        let mut log = Self { store, history, page: PageBuilder::default() };
        log.resume_page(next).await;
        Ok((log, next))
    }

    /// Stores events. Each has its own result: one that fails leaves a gap among the others, which readers pass over.
    pub(crate) async fn append(&mut self, entries: &[Entry]) -> Vec<Result<(), StoreError>> {
        let writes = entries.iter().map(|entry| {
            let (store, path) = (Arc::clone(&self.store), self.history.paths().event(entry.id));
            let text = entry.text.clone();
            async move { store.write(&path, text).await }
        });
        // Collected first: a stream over something borrowed cannot be sent to another thread.
        let writes: Vec<_> = writes.collect();
        let results: Vec<_> = stream::iter(writes).buffered(CONCURRENT_WRITES).collect().await;
        for (entry, result) in entries.iter().zip(&results) {
            if result.is_ok()
                && let Some(page) = self.page.push(entry.id, &entry.text)
            {
                let path = self.history.paths().page(page.start, page.start + crate::history::PAGE_SIZE);
                if let Err(error) = self.store.write(&path, page.content).await {
                    tracing::warn!("{error}; the events are there without the page");
                }
            }
        }
        results
    }

    /// Takes up the page that the next event belongs to. Without all of its events there will be no page.
    async fn resume_page(&mut self, next: i64) {
        let ids = page_start(next)..next;
        let reads = ids.clone().map(|id| {
            let (store, path) = (Arc::clone(&self.store), self.history.paths().event(id));
            async move { store.read(&path).await }
        });
        let reads: Vec<_> = reads.collect();
        let texts: Vec<Result<Bytes, StoreError>> = stream::iter(reads).buffered(CONCURRENT_WRITES).collect().await;
        for (id, text) in ids.zip(texts) {
            match text {
                Ok(text) if is_event(&text, id) => drop(self.page.push(id, &text)),
                _ => return,
            }
        }
    }
}

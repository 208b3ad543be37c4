//! Where the events of an open stream are made durable.

mod files;
mod journal;
mod local;
mod record;
mod stored;

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    error::{AddEventError, HistoryError, LogError},
    history::EventStore,
    store::FileStore,
};

use local::AppendError;
pub(crate) use local::{JournalLimits, LocalLog};
use stored::StoredLog;

/// An event with its number, as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) text: Bytes,
}

/// The log of a conversation.
pub(crate) enum Log {
    /// In a directory of this machine. Taken out while it works, and not put back if it panics.
    Local(Option<Box<LocalLog>>),
    /// In any store.
    Stored(StoredLog),
}

/// What became of some events.
pub(crate) enum Outcome {
    /// The first ones are stored, the others are not. There may be a reason for the first that is not.
    Prefix(usize, Option<AddEventError>),
    /// The first ones are stored; the number of the next one is taken, and this one is free.
    Taken(usize, i64),
    /// Each has its own result.
    Each(Vec<Result<(), AddEventError>>),
}

impl Log {
    /// Opens the log of a conversation in the way that fits the store. Gives the next number.
    pub(crate) async fn open(
        store: Arc<dyn FileStore>,
        history: EventStore,
        limits: JournalLimits,
    ) -> Result<(Self, i64), HistoryError> {
        let Some(root) = store.directory() else {
            let (log, next) = StoredLog::open(store, history).await?;
            return Ok((Self::Stored(log), next));
        };
        let conversation = history.paths().below(root)?;
        let path = conversation.clone();
        let opened = tokio::task::spawn_blocking(move || LocalLog::open(&conversation, limits)).await;
        let (log, next) =
            opened.unwrap_or_else(|error| Err(LogError { operation: "open", path, source: error.into() }.into()))?;
        Ok((Self::Local(Some(Box::new(log))), next))
    }

    /// Makes events durable, and visible to readers.
    pub(crate) async fn append(&mut self, entries: Vec<Entry>) -> Outcome {
        match self {
            Self::Local(slot) => {
                let Some(mut log) = slot.take() else { return Outcome::Prefix(0, Some(AddEventError::Closed)) };
                let work = move || {
                    let (count, error) = log.append(&entries);
                    (log, count, error)
                };
                match tokio::task::spawn_blocking(work).await {
                    Ok((log, count, error)) => {
                        *slot = Some(log);
                        match error {
                            None => Outcome::Prefix(count, None),
                            Some(AppendError::Failed(error)) => Outcome::Prefix(count, Some(error.into())),
                            Some(AppendError::Taken { next }) => Outcome::Taken(count, next),
                        }
                    }
                    Err(error) => {
                        tracing::error!(%error, "the event log is lost; no more events are stored");
                        Outcome::Prefix(0, Some(AddEventError::Closed))
                    }
                }
            }
            Self::Stored(log) => {
                let results = log.append(&entries).await;
                Outcome::Each(results.into_iter().map(|result| result.map_err(AddEventError::from)).collect())
            }
        }
    }

    /// Ends the log. A log that cannot be closed well is opened well later.
    pub(crate) async fn close(self) {
        if let Self::Local(Some(log)) = self {
            match tokio::task::spawn_blocking(move || log.close()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!("{error}; the journal stays for the next time"),
                Err(error) => tracing::warn!(%error, "the journal stays for the next time"),
            }
        }
    }
}

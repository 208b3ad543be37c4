//! What can go wrong with a history.

use std::{io, path::PathBuf};

use gloveport_protocol::ParseEventError;

use crate::{store::StoreError, subscribers::SubscriberId};

/// Why a history could not be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The history has no event with this number.
    #[error("there is no event {id} in the conversation '{sid}'")]
    NoEvent {
        /// The number; -1 if the last event of an empty history was asked for.
        id: i64,
        /// The conversation.
        sid: String,
    },
    /// The content of an event is no event.
    #[error("the event in '{path}' cannot be read: {reason}")]
    Corrupt {
        /// Where it is stored.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody else writes this history.
    #[error(
        "the conversation in '{}' is open for writing already, by another process or another part of this one; \
         close it there first", directory.display()
    )]
    Locked {
        /// The directory of the conversation.
        directory: PathBuf,
    },
    /// A file of the durable log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// More, or less, was asked for than is given at once (event-stream 3).
    #[error("Limit must be between 1 and 100")]
    Limit,
}

/// Why a file of the durable log could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} '{}': {source}", path.display())]
pub struct LogError {
    /// What was to be done: "write".
    pub operation: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

/// Why an event was not added. It was not announced to anybody, and the next event can get its number.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddEventError {
    /// The event has its place in a history (event-stream 4.1).
    #[error(
        "Event already has an ID:{id}. It was probably added back to the EventStream from inside a handler, \
         triggering a loop."
    )]
    HasId {
        /// The number it has.
        id: i64,
    },
    /// Hiding the secrets took away what makes it an event, as when a secret is the name of an enumeration's value.
    #[error("the event cannot be stored: without the secrets in it, it is not an event: {source}")]
    Masked {
        /// What is wrong with it.
        source: Box<ParseEventError>,
    },
    /// The event could not be made durable.
    #[error("the event cannot be stored: {0}")]
    Log(#[from] LogError),
    /// The store failed.
    #[error("the event cannot be stored: {0}")]
    Store(#[from] StoreError),
    /// The stream is closed.
    #[error("the event cannot be stored: the event stream is closed")]
    Closed,
}

/// Why nobody was subscribed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The name is taken (event-stream 4.2).
    #[error("Callback ID on subscriber {subscriber} already exists: {callback_id}")]
    Exists {
        /// The part of the backend.
        subscriber: SubscriberId,
        /// The name.
        callback_id: String,
    },
    /// The stream is closed.
    #[error("the event stream is closed and takes no subscribers")]
    Closed,
}

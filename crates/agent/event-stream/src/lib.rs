//! The ordered, durable history of a conversation, and who is told of it.
//!
//! | module | idea |
//! |---|---|
//! | [`EventStream`] | adds events: numbered, without secrets, durable, then announced |
//! | [`EventStore`] | reads the events of a conversation |
//! | [`SharedHistory`] | a history that several processes write in turns |
//! | [`trajectory`] | a history as one file, and how it is played again |
//! | [`store`] | named contents somewhere: a directory, memory, a bucket |
//! | [`mask`] | secrets hidden in what is written down or shown |
//! | [`layout`] | where the parts of a conversation stand in a store |
//! | `log`, `writer`, `subscribers` | the journal, the task that writes it, the tasks that tell subscribers |

mod clock;
mod error;
mod history;
pub mod layout;
mod log;
pub mod mask;
mod shared;
pub mod store;
mod stream;
mod subscribers;
pub mod trajectory;
mod writer;

pub use error::{AddEventError, HistoryError, LogError, SubscribeError};
pub use history::{EventFilter, EventStore, EventType, Events, History, Search, session_exists};
pub use layout::ConversationPaths;
pub use mask::{MaskStream, Masker};
pub use shared::{SharedError, SharedHistory};
pub use store::{BoxFuture, FileStore, LocalStore, StoreError};
pub use stream::EventStream;
pub use subscribers::{Subscriber, SubscriberError, SubscriberId};

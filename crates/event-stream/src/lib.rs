//! The ordered, durable history of a conversation, and who is told of it.
//!
//! | module | idea |
//! |---|---|
//! | [`store`] | named contents somewhere: a directory, memory, a bucket |
//! | [`mask`] | secrets hidden in what is written down or shown |
//! | [`layout`] | where the parts of a conversation stand in a store |

pub mod layout;
pub mod mask;
pub mod store;

pub use layout::ConversationPaths;
pub use mask::{MaskStream, Masker};
pub use store::{BoxFuture, FileStore, StoreError};

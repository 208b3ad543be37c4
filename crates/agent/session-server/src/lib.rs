//! Sessions over HTTP: what [`Runtime`](gloveport_runtime::Runtime) does for a backend in Rust, for one in any language.
//!
//! The history of a session is its memory. Whoever serves it keeps the history open, which keeps all others out, also in
//! other processes; when a server dies, the next one that is asked goes on. What was being done then is never done again:
//! its action is answered with what is known of it. Readers and followers read the history itself, from any server.
//!
//! | module | idea |
//! |---|---|
//! | [`SessionServer`] | the whole, and what it does by itself |
//! | [`SessionOptions`] | what can be set on it |
//! | [`Owner`] | who asks, and whose sandboxes |
//! | [`Refusal`] | what an answer that is an error was made of |
//! | [`document`] | the requests for an `OpenAPI` document |
//! | `api`, `acts`, `events` | the requests: sessions, what is done in them, their histories |
//! | `ask` | what all requests are read with |
//! | `sessions` | which sessions this process serves, takes up and lets go |
//! | `request` | what a session is asked to be |
//! | `record` | what is kept of a session beside its history |
//! | `live` | a session that is served here |
//! | `rise` | a session gets its sandbox |
//! | `ledger` | what of a history is unanswered |
//! | `tracker` | the ledger of a history that grows, and who waits for it |
//! | `fault` | answers that are errors |

mod acts;
mod api;
mod ask;
mod events;
mod fault;
mod ledger;
mod live;
mod openapi;
mod options;
mod owner;
mod record;
mod request;
mod rise;
mod server;
mod sessions;
mod tracker;

pub use fault::Refusal;
pub use openapi::document;
pub use options::SessionOptions;
pub use owner::Owner;
pub use server::{SessionServer, SessionServerError};

//! A reverse proxy for the services of plugins, and who is let in to them.
//!
//! | module | idea |
//! |---|---|
//! | [`forward`](mod@forward) | one request, its answer, and what it is upgraded to |
//! | [`mount`] | the path that a service is under, and what of its answers must say so |
//! | [`admission`] | who is let in: a token that becomes a cookie, and pages of other origins that are not |
//! | [`service`] | all of that for the service of one plugin, which is started by its first request |
//! | [`origin`] | which page, person or program caused a request, and by which name it asked |
//! | [`listener`] | a small HTTP listener of its own for one service |
//! | `stall` | connections of clients, which end when a client takes nothing for too long |
//! | [`limits`] | what is waited for, and for how long |
//! | [`answer`] | bodies of requests and answers |
//!
//! Nothing is collected: bodies of any size travel both ways as fast as the slower end takes them.

pub mod admission;
pub mod answer;
mod connect;
mod error;
pub mod forward;
mod headers;
pub mod limits;
pub mod listener;
pub mod mount;
pub mod origin;
mod page;
mod progress;
pub mod service;
mod stall;
mod tunnel;

pub use admission::{Admission, Trust};
pub use answer::{Answer, RequestBody};
pub use error::ForwardError;
pub use forward::{Forwarding, forward};
pub use limits::ProxyLimits;
pub use listener::serve;
pub use mount::Mount;
pub use page::error_page;
pub use service::ServiceProxy;
pub use stall::{Stall, prepare};

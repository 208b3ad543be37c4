//! Any provider as the Remote Runtime API of OpenHands (`spec/remote-runtime-api.md`), and the way to its sandboxes.
//!
//! The engine is the only database: a gateway that is started anew, or beside another one, knows the same sandboxes. They
//! outlive it.
//!
//! | module | idea |
//! |---|---|
//! | [`Gateway`] | the whole |
//! | [`GatewayOptions`] | what can be set on it |
//! | [`TlsFiles`] | the certificate, and how it is renewed |
//! | `listen` | connections by HTTP/1.1 and HTTP/2, how many, and how they end |
//! | `entry` | what is done for every request |
//! | `caller` | who asks and how, and which proxies are believed |
//! | `shared` | what all requests share |
//! | `api` | the requests of the interface |
//! | `start` | from a request to the spec of a sandbox |
//! | `command` | commands that mean our own server |
//! | `view` | a sandbox as the interface tells it |
//! | `public` | the URLs of sandboxes, as they are told |
//! | `known` | where sandboxes are, remembered for a moment |
//! | `path` | which sandbox a path means, and what in it |
//! | `domain` | which sandbox a host means |
//! | `way` | a request on its way to a sandbox, and its answer |
//! | `heads` | what of the head of a message is passed on |
//! | `wake` | paused sandboxes that go on because somebody asks for them |
//! | `fault` | answers that are errors |
//! | `engine` | whether the engine answers, and what it has |
//! | `metrics` | what is counted |
//! | `operations` | what operators ask |

mod api;
mod caller;
mod command;
mod domain;
mod engine;
mod entry;
mod fault;
mod gateway;
mod heads;
mod known;
mod listen;
mod metrics;
mod operations;
mod options;
mod path;
mod public;
mod shared;
mod start;
mod tls;
mod view;
mod wake;
mod way;

pub use gateway::{Gateway, GatewayError};
pub use options::GatewayOptions;
pub use tls::{TlsError, TlsFiles};

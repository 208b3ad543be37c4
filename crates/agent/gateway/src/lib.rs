//! Any provider as the Remote Runtime API of OpenHands (`spec/remote-runtime-api.md`), and the way to its sandboxes.
//!
//! The engine is the database of sandboxes: a gateway that is started anew, or beside another one, knows the same ones. They
//! outlive it. Tenants, keys and quotas are in a database of their own, where there is one.
//!
//! | module | idea |
//! |---|---|
//! | [`Gateway`] | the whole |
//! | [`GatewayOptions`] | what can be set on it |
//! | `shared` | what all requests share |
//! | `identity` | who asks, and what is whose |
//! | `tenancy` | tenants of a gateway with a database, and the places of their sandboxes |
//! | `policy` | what a tenant may ask for |
//! | `reconcile` | the database is compared with the engine |
//! | `audit` | the audit log on its way to the database |
//! | `api` | the requests of the interface |
//! | `start` | from a request to the spec of a sandbox |
//! | `command` | commands that mean our own server |
//! | `view` | a sandbox as the interface tells it |
//! | `known` | where sandboxes are, remembered for a moment |
//! | `path` | which sandbox a path means, and what in it |
//! | `way` | a request on its way to a sandbox, and its answer |
//! | `heads` | what of the head of a message is passed on |
//! | `fault` | answers that are errors |
//! | `listen` | connections, how many, and how they end |

mod api;
mod audit;
mod command;
mod fault;
mod gateway;
mod heads;
mod identity;
mod known;
mod listen;
mod options;
mod path;
mod policy;
mod reconcile;
mod shared;
mod start;
mod tenancy;
mod view;
mod way;

pub use gateway::{Gateway, GatewayError};
pub use options::{GatewayOptions, Size};

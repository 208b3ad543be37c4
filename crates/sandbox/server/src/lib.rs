//! The HTTP face of an executor: one port, and groups of routes that only translate.
//!
//! | module | idea |
//! |---|---|
//! | `serve` | connections: accepting, time limits, the bound, the drain |
//! | `claim` | a server that waits until somebody says what it is for |
//! | `router`, `route` | what every request passes: key, bounds, containment of panics, counting |
//! | `auth` | who may ask, with a key and without one |
//! | `policy` | what browsers may do with answers |
//! | `pages` | which pages of other origins may use the native API |
//! | `transfer` | files on their way: bounded, with a turn for each, on threads that may wait |
//! | `v0` | the OpenHands 0.62 API (`action-execution-api` §2) |
//! | `v1` | the native API: streamed commands that survive a lost connection |
//! | `swerex` | the API of SWE-ReX, in place of all others |
//! | `agent_server` | the API of the agent-server of OpenHands' SDK 1.x, in place of all others |
//! | `form` | forms with files, in bounded memory |
//! | [`viewer`] | pages that show files to a browser on the same machine |
//! | `occupancy` | when the server was used last |
//! | `plugins`, `passage` | the way to the services of plugins under `/plugins/NAME/` |
//! | `ports` | any port of a program in the sandbox under `/v1/ports/PORT/` |
//! | `mcp` | the MCP servers of the sandbox, as one, and the sandbox as one |
//! | `computer` | the sandbox itself as an MCP server uses it |
//! | `health` | `/ready` and `/metrics` |
//! | `docs` | `/openapi.json` and `/docs` |
//!
//! A listener is handed over only when its executor is ready, so every answer comes from a ready server.

mod agent_server;
mod answer;
mod app;
mod auth;
mod body;
mod claim;
mod computer;
mod docs;
mod error;
mod form;
mod health;
mod key;
mod mcp;
mod metrics;
mod occupancy;
mod options;
mod pages;
mod passage;
mod plugins;
mod policy;
mod ports;
mod route;
mod router;
mod serve;
mod swerex;
mod transfer;
mod usage;
mod v0;
mod v1;
pub mod viewer;
mod views;

pub use agent_server::options::{
    AgentServerOptions, Deferred, DeferredSettings, EditorPlace, HostedAgent, SettleError, Settled,
};
pub use claim::{Claim, wait_for_claim};
pub use error::ServerError;
pub use gloveport_origins::{OriginError, Origins};
pub use gloveport_proxy::origin::{NameError, Names};
pub use key::SessionKey;
pub use occupancy::{Occupancy, Occupied};
pub use options::{PauseListener, ServerLimits, ServerOptions, StrangeNames, Wire};
pub use router::router;
pub use serve::{DrainEnd, serve};

//! Sandboxes as processes of this machine: our server as a child process, without any isolation (`local-and-cli-runtime`
//! part A).
//!
//! What is known about a sandbox is in a directory of its own, and the rest is asked of the operating system:
//!
//! ```text
//! STATE/new/BACKEND.N/     a server that has no session yet: waiting, or being made
//! STATE/sandboxes/ID/      a sandbox; its directory comes here by one rename, complete
//!         sandbox.json     what it is: session, key, URLs, process, lifetime
//!         lock             locked as long as anything of the sandbox runs: by the server, its guard and its owners
//!         log, log.1       what the server wrote last
//!         holders/BACKEND  which backends use it, if it was to be kept
//!         paused, ended    made by the server: it is paused; it has ended, and why
//! STATE/old/…              being removed
//! STATE/backends/BACKEND   locked by a backend for its life
//! STATE/keeper/            where the keeper of waiting servers listens, if there is one
//! ```
//!
//! No step needs another one to follow it: whoever is killed, at whatever moment, its locks are free at once, and the next
//! one sees what is left.
//!
//! | module | idea |
//! |---|---|
//! | [`Local`] | the provider |
//! | [`LocalOptions`] | where things are, what sandboxes get, who is told the steps |
//! | [`keeper`] | servers that wait although whoever wanted them has ended |
//! | `gloveport_contract::local` | how a backend and the server of a sandbox talk, and what is in its directory |
//! | `state`, `lock`, `record`, `backend`, `server` | the directory, its locks, `sandbox.json`, who lives |
//! | `owners` | owners of files beside the user |
//! | `ports` | who listens on the ports of a sandbox |
//! | `launch`, `pool`, `create`, `delete`, `garbage`, `view`, `logs` | one call of the trait each |

mod audit;
mod backend;
mod confine;
mod create;
mod delete;
mod edge;
mod fault;
mod garbage;
mod gate;
mod image;
pub mod keeper;
mod launch;
mod lock;
mod logs;
mod options;
mod owners;
mod pool;
mod ports;
mod provider;
mod record;
mod server;
mod state;
mod steps;
mod urls;
mod view;

pub use confine::runsc;
pub use options::LocalOptions;
pub use owners::owners;
pub use provider::Local;
pub use steps::{Observer, Step};
pub use view::sessions;

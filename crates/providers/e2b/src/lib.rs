//! Sandboxes of E2B (`spec/hosted-apis.md` 2): virtual machines of a hosted service, or of a gateway that speaks its API.
//!
//! A sandbox is made from a template by the *control plane*. Our program is then uploaded and started through the *agent* that
//! runs in every sandbox, and its port is reached through the service's proxy.
//!
//! | module | idea |
//! |---|---|
//! | [`E2b`] | the provider |
//! | [`E2bOptions`] | which service, with which key, and how sandboxes are made |
//! | `names` | labels, ports, words |
//! | `wire`, `control` | the control plane: its JSON, its calls |
//! | `connect`, `agent` | the agent of a sandbox: envelopes of its streams, its calls |
//! | `inner` | what a backend has of the service and of its sandboxes |
//! | `view` | a sandbox as it is told, and whether its server lives |
//! | `launch` | our program in a sandbox |
//! | `create`, `life`, `logs`, `garbage`, `keeper` | what is done with sandboxes |

mod agent;
mod capabilities;
mod connect;
mod control;
mod create;
mod garbage;
mod inner;
mod keeper;
mod launch;
mod life;
mod logs;
mod names;
mod options;
mod provider;
mod view;
mod wire;

pub use options::{E2bOptions, Traffic};
pub use provider::E2b;

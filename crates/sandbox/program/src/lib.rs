//! What a provider puts into a sandbox, as commands of a program.
//!
//! Two programs have these commands: `gloveport-sandbox`, which has nothing else, and `gloveport`, which has everything.
//!
//! | module | idea |
//! |---|---|
//! | [`Command`], [`run()`] | the commands, and what each needs before its first thread |
//! | [`argv`] | command lines by which callers of OpenHands start its server |
//! | `openhands` | `action-execution-server` |
//! | `agent_server` | `agent-server`, also by the name `openhands-agent-server` |
//! | `swerex` | `swerex`, also by the name `swerex-remote` |
//! | `wire` | what the servers of both have in common |
//! | `local`, `container` | the server of a sandbox of the runtimes `local` and `docker` |
//! | `relayed` | the server of a sandbox that only its `agent-server` can reach |
//! | `audit` | what happens is recorded before it happens, by somebody whom the sandbox does not reach |
//! | `gate` | the only way out of a closed network and into it |
//! | [`trial`] | whether this machine can make containers |
//! | [`tools`], [`plugins`] | what the tools of a server are made from |
//! | [`owner`] | who owns the processes that are started |

mod agent_server;
pub mod argv;
mod audit;
mod command;
mod container;
mod gate;
mod hosted_agent;
mod local;
mod logging;
mod openhands;
pub mod owner;
pub mod plugins;
mod relayed;
mod swerex;
pub mod tools;
mod wire;

pub use command::{Command, run};
pub use local::trial;
pub use owner::Owner;

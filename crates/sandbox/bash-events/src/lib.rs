//! Commands that are a process each, and the events that they leave (`agent-server-workspace-api` §4).
//!
//! | module | idea |
//! |---|---|
//! | [`event`] | what is told: a command, a piece of its output |
//! | [`log`] | all events, a file each: kept within bounds, found, cleared |
//! | [`search`] | which of them somebody wants to see, in pages |
//! | [`bash`] | commands: started, stopped, waited for, ended with the sandbox |
//! | `run` | the task that owns one of them |
//! | `text` | output as text, in chunks of a fixed length |

pub mod bash;
pub mod event;
pub mod log;
mod run;
pub mod search;
mod text;

pub use bash::{Bash, BashError, BashOptions, Request};
pub use log::Log;
pub use search::{Page, Search};

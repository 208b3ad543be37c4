//! Maps actions to tools, and what the tools answer to observations.
//!
//! | module | idea |
//! |---|---|
//! | [`Executor`] | the tools of one sandbox behind the `ActionExecutor` trait |
//! | [`exec`] | native commands: streamed output, a caller-chosen id, nothing runs twice |
//! | [`terminals`] | terminals for people: attached to and left again, known by an id |
//! | [`processes`] | programs with pipes: followed and left again, known by an id |
//! | [`files`] | the file actions, and the native file operations |
//! | `git` | changes and differences of repositories, as a backend asks for them |
//! | [`account`] | the user that the tools work as, made where it is missing |
//! | [`memory`] | the memory limit of a sandbox, and who is ended when it is reached |
//! | `pause` | all processes stopped where they are, and going on |
//! | [`kernels`] | IPython kernels by name |
//! | [`cell`] | a cell as an agent asks for it, and as it reads what came of it |
//! | [`plugins`] | what a sandbox has beside its shell and its files |
//! | [`parts`] | what is ready, what is starting, what failed |
//!
//! Actions that share state queue on their tool: commands on their shell, and nothing waits for anything else.

pub mod account;
pub mod cell;
mod error;
pub mod exec;
mod executor;
pub mod files;
mod git;
pub mod kernels;
pub mod memory;
pub mod parts;
mod pause;
pub mod plugins;
pub mod processes;
pub mod run;
pub mod terminals;

#[cfg(fuzzing)]
pub use git::fuzz_changes;

pub use gloveport_browser as browser;

pub use error::{ExecError, ExecutorError, PauseError, ProcessesError, TerminalsError};
pub use exec::Execution;
pub use executor::{Executor, ExecutorOptions};
pub use kernels::{Kernels, KernelsError};
pub use parts::{Part, PartState};
pub use plugins::{PluginOptions, Plugins};
pub use processes::{Process, Processes};
pub use terminals::{Attachment, NamedTerminal, Terminals};

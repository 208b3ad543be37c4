//! A session: one sandbox, its history, and all that a backend does around an action.
//!
//! [`Runtime`] connects to a sandbox, executes the actions of an event stream and adds the observations to it, sets up
//! the environment and the repository, finds microagents, and asks before something risky.
//!
//! | module | idea |
//! |---|---|
//! | [`Runtime`], `life` | the session; how it begins and ends |
//! | [`connection`](SandboxConnection) | what a session needs of a sandbox, and who gives it |
//! | `dispatch` | from the stream to the sandbox and back |
//! | `decide`, `execution` | what becomes of one action |
//! | `operation`, `exec`, `gate` | what somebody does in a sandbox with the output as it comes: rated, asked about and written down |
//! | `environment`, `variables`, `setup`, `repository` | what is set up before work begins |
//! | `git`, `tasks`, `mcp`, `knowledge` | what else a backend asks of a session |
//! | [`microagents`], [`git_providers`], [`llm_edit`] | texts of repositories, hosts of repositories, edits by a model |
//! | `hosting` | pause, resume, delete, and the addresses of a sandbox that a provider hosts |
//! | `taken_over` | questions of a session before this one |
//! | `exit` | ends the sessions of a process that ends |

mod connection;
mod decide;
mod dispatch;
mod editing;
mod environment;
mod error;
mod exec;
mod execution;
mod exit;
mod gate;
mod git;
pub mod git_providers;
mod hosting;
mod http_answer;
mod knowledge;
mod life;
pub mod llm_edit;
mod mcp;
pub mod microagents;
mod operation;
mod options;
mod quote;
mod repository;
mod runtime;
mod setup;
mod status;
mod taken_over;
mod tasks;
mod variables;

pub use connection::{
    BroughtTools, ConnectRequest, Connector, FromConfig, Hosted, HostedOptions, McpHost, SandboxConnection, ServerAt,
    ShellStream, WarmPool, delete,
};
#[cfg(all(feature = "in-process", target_os = "linux"))]
pub use connection::{Cli, InProcess};
pub use dispatch::Submitted;
pub use environment::{EnvironmentPlace, InitialEnvironment};
pub use error::{Cause, RuntimeError};
pub use exec::Executed;
pub use exit::close_all;
pub use gate::{gate, gate_of_operations};
pub use git::{ChangeStatus, GitChange, GitDiff};
pub use mcp::{default_mcp_servers, microagent_mcp_servers};
pub use operation::{
    Answer, Approver, Begun, CellOutput, CellSeen, Journal, NoJournal, Nobody, Operation, Operations, Question,
    Refused, RefusedBy, RunEnd, RunOutput, attached_terminal, attaching, had_terminal, observed,
};
pub use options::RuntimeOptions;
pub use repository::SelectedRepository;
pub use runtime::Runtime;
pub use status::{RuntimeStatus, StatusCallback, StatusLevel, StatusReporter};

/// Runs what blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(work).await?
}

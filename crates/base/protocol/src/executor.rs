//! The boundary between who receives actions and who executes them.

use std::{pin::Pin, time::Duration};

use crate::event::ActionEvent;
use crate::observation::Observation;
use crate::python;

/// A future on the heap, so that a trait with asynchronous functions can be used behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Executes actions.
pub trait ActionExecutor: Send + Sync {
    /// Executes one action and gives what came of it.
    ///
    /// Everything the handlers foresee (a missing file, a command that fails) is an observation, not an error.
    ///
    /// Dropping the future means that the client is gone. The action itself goes on, and its output stays readable
    /// with a later action (action-execution-api 2.3).
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>>;
}

/// Why an action gave no observation.
///
/// The text is what follows `Internal server error: ` in the answer (action-execution-api 2.4). The variants about a
/// connection come only from an executor that is reached over one (action-execution-client 2 and 4).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecuteError {
    /// The action is known but nothing here executes its kind.
    #[error("'ActionExecutor' object has no attribute '{kind}'")]
    NotRunnable {
        /// Name of the action on the wire.
        kind: &'static str,
    },
    /// The action needs a plugin that was not asked for at the start; holds the whole text.
    #[error("{0}")]
    PluginMissing(String),
    /// A command that nothing would end: it blocks, and no time limit is set.
    #[error("Blocking command with no timeout set")]
    BlockingWithoutTimeout,
    /// There was no answer within the time limit of the action and some seconds more.
    #[error(
        "Runtime failed to return execute_action before the requested timeout of {}s",
        python::float_text(limit.as_secs_f64())
    )]
    Timeout {
        /// The time limit of the action.
        limit: Duration,
    },
    /// The server answered with a status that is no success.
    #[error("{text}")]
    Status {
        /// The status.
        status: u16,
        /// What the server says is wrong.
        detail: Option<String>,
        /// The whole text.
        text: String,
    },
    /// Every attempt has failed.
    #[error("gave up after {attempts} attempts: {last}")]
    RetriesExhausted {
        /// How many requests were sent.
        attempts: u32,
        /// How the last one failed.
        last: Box<ExecuteError>,
    },
    /// No connection could be made; holds the whole text.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke before there was a whole answer; holds the whole text. The action may have been executed.
    #[error("{0}")]
    ConnectionLost(String),
    /// The sandbox is gone or cannot be used for now; holds the whole text.
    #[error("{0}")]
    Disconnected(String),
    /// Anything else; holds the whole text, which may be empty.
    #[error("{0}")]
    Failed(String),
}

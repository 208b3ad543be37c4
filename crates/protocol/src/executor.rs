//! The boundary between who receives actions and who executes them.

use std::pin::Pin;

use crate::event::ActionEvent;
use crate::observation::Observation;

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
/// The text is what follows `Internal server error: ` in the answer (action-execution-api 2.4).
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
    /// Anything else; holds the whole text, which may be empty.
    #[error("{0}")]
    Failed(String),
}

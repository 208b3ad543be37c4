//! What came of an action, and how one is executed with the tools of a sandbox.

use gloveport_protocol::{ActionEvent, ErrorObservation, ExecuteError, Observation};
use serde_json::Value;

use crate::SandboxConnection;

/// What came of an action.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) observation: Observation,
    /// What models have cost for it.
    pub(crate) llm_metrics: Option<Value>,
}

impl Outcome {
    pub(crate) const fn of(observation: Observation) -> Self {
        Self { observation, llm_metrics: None }
    }
}

/// Executes an action with the tools of a sandbox, which may not have the one that it needs.
pub(crate) async fn execute_in(
    sandbox: &dyn SandboxConnection,
    event: &ActionEvent,
) -> Result<Observation, ExecuteError> {
    match sandbox.execute(event).await {
        Err(ExecuteError::NotRunnable { kind }) => Ok(unsupported(kind)),
        executed => executed,
    }
}

/// What is told about an action that the sandbox has no tool for.
fn unsupported(kind: &str) -> Observation {
    Observation::Error(ErrorObservation {
        error_id: "AGENT_ERROR$BAD_ACTION".to_owned(),
        ..ErrorObservation::new(format!("Action {kind} is not supported in the current runtime."))
    })
}

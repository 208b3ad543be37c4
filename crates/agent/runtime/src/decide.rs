//! What becomes of an action: the decision table (runtime-interface 7).

use gloveport_protocol::{
    Action, ActionEvent, ConfirmationState, ErrorObservation, ExecuteError, FileEditSource, Observation,
    ThinkObservation,
};
use serde_json::Value;

use crate::{Runtime, RuntimeError, SandboxConnection, tasks};

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

impl Runtime {
    /// Executes one action and gives what came of it. It goes past the stream and the security gate; what the user
    /// has refused, or has not yet let pass, is still not executed.
    ///
    /// [`Observation::Null`] means that there is nothing to tell.
    pub async fn run_action(&self, event: &ActionEvent) -> Result<Observation, RuntimeError> {
        Ok(self.outcome(event).await?.observation)
    }

    pub(crate) async fn outcome(&self, event: &ActionEvent) -> Result<Outcome, RuntimeError> {
        let action = &event.action;
        match action {
            Action::Think(_) => {
                return Ok(Outcome::of(Observation::Think(ThinkObservation::new("Your thought has been logged."))));
            }
            Action::TaskTracking(tracking) => return Ok(Outcome::of(tasks::track(&self.session, tracking).await)),
            other if !other.is_runnable() => return Ok(Outcome::of(Observation::Null)),
            _ => {}
        }
        match event.confirmation() {
            ConfirmationState::AwaitingConfirmation => return Ok(Outcome::of(Observation::Null)),
            ConfirmationState::Rejected => return Ok(Outcome::of(gloveport_security::rejection(None))),
            ConfirmationState::Confirmed => {}
        }
        match action {
            Action::CallToolMcp(_) if !self.connection()?.answers_mcp() => Ok(Outcome::of(unsupported(action.kind()))),
            Action::Edit(edit) if edit.impl_source == FileEditSource::LlmBasedEdit => self.edit_with_model(edit).await,
            _ => self.execute(event).await.map(Outcome::of),
        }
    }

    /// Executes an action in the sandbox.
    pub(crate) async fn execute(&self, event: &ActionEvent) -> Result<Observation, RuntimeError> {
        let connection = self.connection()?;
        let executed = tokio::select! {
            executed = execute_in(&**connection, event) => executed,
            () = self.session.stop.cancelled() => return Err(RuntimeError::Closed),
        };
        Ok(executed?)
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

fn unsupported(kind: &str) -> Observation {
    Observation::Error(ErrorObservation {
        error_id: "AGENT_ERROR$BAD_ACTION".to_owned(),
        ..ErrorObservation::new(format!("Action {kind} is not supported in the current runtime."))
    })
}

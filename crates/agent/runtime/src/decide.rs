//! What becomes of an action: the decision table (runtime-interface 7).

use gloveport_protocol::{Action, ActionEvent, ConfirmationState, FileEditSource, Observation, ThinkObservation};

use crate::{
    Runtime, RuntimeError,
    execution::{Outcome, execute_in},
    tasks,
};

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
            Action::CallToolMcp(call) if !self.connection()?.answers_mcp() => {
                // Every other action would carry its room along.
                Box::pin(self.call_tool_mcp(call, event.timeout)).await.map(Outcome::of)
            }
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

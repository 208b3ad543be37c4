//! Actions (`action-execution-client` 4).

use std::time::Duration;

use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor, BoxFuture, ConfirmationState, ErrorObservation, ExecuteError, FileEditSource,
    Observation, ObservationEvent, ThinkObservation, UserRejectedObservation,
};
use serde_json::{Value, json};

use crate::{ActionExecutionClient, ClientError, call::Call};

const PATH: &str = "execute_action";
/// `error_id` of an action that this half cannot have executed.
const BAD_ACTION: &str = "AGENT_ERROR$BAD_ACTION";

impl ActionExecutionClient {
    /// Has an action executed and gives the event that came of it, whose cause is the action.
    ///
    /// An action without a time limit gets that of the sandbox. What cannot be executed, waits for a confirmation or
    /// was rejected is answered here, as the reference answers it.
    pub async fn send_action(&self, event: &ActionEvent) -> Result<ObservationEvent, ClientError> {
        if let Action::Edit(edit) = &event.action
            && edit.impl_source == FileEditSource::LlmBasedEdit
        {
            return Err(ClientError::ModelEdit);
        }
        let event = self.with_limit(event)?;
        // The semaphore is never closed.
        let _in_flight = self.shared.in_flight.acquire().await;
        let mut observation = if let Some(observation) = answered_here(&event.action) {
            ObservationEvent::from(observation)
        } else {
            let result = self.post(&event).await;
            self.stamp();
            result?
        };
        observation.cause = event.id;
        Ok(observation)
    }

    /// Sends an action as it is, one time, and gives the answer as it is. No limit is added: without one, the answer
    /// is waited for for ever.
    pub async fn post_action(&self, event: &ActionEvent, limit: Option<Duration>) -> Result<Value, ClientError> {
        self.session().once_json(&Call::post(PATH, &json!({ "action": event.to_value() }), limit)?).await
    }

    fn with_limit(&self, event: &ActionEvent) -> Result<ActionEvent, ClientError> {
        let mut event = event.clone();
        if event.timeout.is_none() {
            if let Action::Run(run) = &mut event.action
                && std::mem::take(&mut run.blocking)
            {
                return Err(ClientError::BlockingWithoutTimeout);
            }
            event.timeout = Some(self.shared.sandbox_timeout.as_secs_f64());
        }
        Ok(event)
    }

    async fn post(&self, event: &ActionEvent) -> Result<ObservationEvent, ClientError> {
        let beyond = |seconds: f64| if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
        let timeout = event
            .timeout
            .map_or(Duration::ZERO, |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_else(|_| beyond(seconds)));
        // No clock counts further than this.
        let limit = timeout.saturating_add(self.session().limits.action_margin).min(Duration::from_hours(24 * 365));
        let call = Call::post(PATH, &json!({ "action": event.to_value() }), Some(limit))?;
        let body = self.session().request(&call).await.map_err(|error| match error {
            ClientError::Silent { .. } => ClientError::ActionTimeout(timeout),
            other => other,
        })?;
        let mut value: Value = self.session().parse(PATH, &body)?;
        // Only this kind has the key; the others could not be read with it.
        if event.action.hidden()
            && value.get("observation").and_then(Value::as_str) == Some("run")
            && let Some(extras) = value.get_mut("extras").and_then(Value::as_object_mut)
        {
            extras.insert("hidden".to_owned(), Value::Bool(true));
        }
        ObservationEvent::from_value(value).map_err(|error| self.session().bad_answer(PATH, error.to_string()))
    }
}

/// What is answered without asking the server: rows a, b, c, e and f of the table. Row d, an unknown type, cannot be
/// expressed with our types.
fn answered_here(action: &Action) -> Option<Observation> {
    if let Action::Think(_) = action {
        let content = "Your thought has been logged.".to_owned();
        return Some(Observation::Think(ThinkObservation { content }));
    }
    if !action.is_runnable() {
        return Some(Observation::Null);
    }
    let confirmation = match action {
        Action::Run(run) => run.confirmation_state,
        Action::RunIpython(cell) => cell.confirmation_state,
        _ => ConfirmationState::Confirmed,
    };
    match (confirmation, action) {
        (ConfirmationState::AwaitingConfirmation, _) => Some(Observation::Null),
        // The caller speaks to MCP servers itself.
        (_, Action::CallToolMcp(_)) => Some(Observation::Error(ErrorObservation {
            content: format!("Action {} is not supported in the current runtime.", action.kind()),
            error_id: BAD_ACTION.to_owned(),
        })),
        (ConfirmationState::Rejected, _) => Some(Observation::UserRejected(UserRejectedObservation {
            content: "Action has been rejected by the user! Waiting for further user input.".to_owned(),
        })),
        (ConfirmationState::Confirmed, _) => None,
    }
}

impl ActionExecutor for ActionExecutionClient {
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        Box::pin(async { Ok(self.send_action(event).await?.observation) })
    }
}

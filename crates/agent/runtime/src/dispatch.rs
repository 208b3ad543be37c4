//! From the stream to the sandbox and back (runtime-interface 5, security 4).

use std::sync::{Arc, Weak};

use gloveport_event_stream::{BoxFuture, Subscriber, SubscriberError};
use gloveport_protocol::{
    Action, ActionEvent, AgentState, ConfirmationState, Event, EventSource, Observation, ObservationEvent,
};
use gloveport_security::{Assessment, Verdict};

use crate::{
    Runtime, RuntimeError, RuntimeStatus, StatusLevel,
    error::{is_network, type_name},
    execution::Outcome,
    operation::{LookBack, question},
    runtime::{Handling, Session},
};

/// What became of a submitted action.
#[derive(Debug)]
pub enum Submitted {
    /// It is executed; the observation follows in the stream.
    Accepted {
        /// Its number in the stream.
        id: i64,
    },
    /// The user has to let it pass or refuse it.
    Awaiting {
        /// Its number in the stream, for [`Runtime::confirm`] and [`Runtime::reject`].
        id: i64,
        /// Why.
        assessment: Assessment,
    },
    /// It is not executed; the reason follows in the stream.
    Refused {
        /// Its number in the stream.
        id: i64,
        /// Why.
        assessment: Assessment,
    },
}

/// Hands the actions of the stream to the session, one at a time.
pub(crate) struct Dispatcher {
    session: Weak<Session>,
}

impl Dispatcher {
    pub(crate) fn new(session: &Arc<Session>) -> Self {
        Self { session: Arc::downgrade(session) }
    }
}

impl Subscriber for Dispatcher {
    fn on_event(&self, event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>> {
        Box::pin(async move {
            let (Event::Action(action), Some(session)) = (&*event, self.session.upgrade()) else { return Ok(()) };
            let stop = session.stop.clone();
            let runtime = Runtime { session };
            tokio::select! {
                () = runtime.on_action(action.clone()) => {}
                () = stop.cancelled() => {}
            }
            Ok(())
        })
    }
}

impl Runtime {
    /// Adds an agent's action to the stream after the security gate has looked at it.
    ///
    /// An action that reaches the stream another way is looked at when its turn comes.
    pub async fn submit(&self, action: impl Into<ActionEvent>, source: EventSource) -> Result<Submitted, RuntimeError> {
        let mut action = action.into();
        let stream = self.stream("submitting an action")?;
        let verdict = if source == EventSource::Agent {
            self.session.gate.evaluate(&mut action, &LookBack(Some(stream.store().clone()))).await
        } else {
            Verdict::Proceed
        };
        if matches!(verdict, Verdict::Refuse { .. }) {
            // No replay of the history may execute it either.
            action.set_confirmation(ConfirmationState::Rejected);
        }
        let handling = if matches!(verdict, Verdict::Proceed) { Handling::Cleared } else { Handling::Done };
        let added = stream.add_with(action, source, self.expecting(handling)).await?;
        let id = added.id().unwrap_or(-1);
        let Event::Action(stored) = &*added else { return Ok(Submitted::Accepted { id }) };
        match verdict {
            Verdict::Proceed => Ok(Submitted::Accepted { id }),
            Verdict::Confirm { assessment } => {
                self.hold(stored.clone(), assessment.clone()).await?;
                Ok(Submitted::Awaiting { id, assessment })
            }
            Verdict::Refuse { assessment } => {
                self.publish(stored, Outcome::of(gloveport_security::refusal(&assessment))).await?;
                Ok(Submitted::Refused { id, assessment })
            }
        }
    }

    /// Lets an action pass that waits for the user: it is added once more, and executed.
    pub async fn confirm(&self, id: i64) -> Result<(), RuntimeError> {
        let action = self.session.gate.confirm(id)?;
        let stream = self.stream("a decision of the user")?;
        stream.add_with(action, EventSource::Agent, self.expecting(Handling::Cleared)).await?;
        Ok(())
    }

    /// Refuses an action that waits for the user: it is added once more, and answered as rejected, with the rules that
    /// were the reason to ask.
    pub async fn reject(&self, id: i64) -> Result<(), RuntimeError> {
        let (action, assessment) = self.session.gate.reject(id)?;
        let stream = self.stream("a decision of the user")?;
        let added = stream.add_with(action, EventSource::Agent, self.expecting(Handling::Done)).await?;
        let Event::Action(stored) = &*added else { return Ok(()) };
        self.publish(stored, Outcome::of(gloveport_security::rejection(Some(&assessment)))).await
    }

    /// Adds an action to the stream, executes it exactly once, and adds what came of it.
    pub async fn perform(
        &self,
        action: impl Into<ActionEvent>,
        source: EventSource,
    ) -> Result<Observation, RuntimeError> {
        let stream = self.stream("performing an action")?;
        let added = stream.add_with(action.into(), source, self.expecting(Handling::Done)).await?;
        let Event::Action(stored) = &*added else { return Ok(Observation::Null) };
        let action = self.with_limit(stored.clone());
        let outcome = self.outcome(&action).await?;
        let observation = outcome.observation.clone();
        self.publish(stored, outcome).await?;
        Ok(observation)
    }

    /// Remembers what to do about an event before anybody can see it.
    fn expecting(&self, handling: Handling) -> impl FnOnce(i64) + Send + 'static {
        let session = Arc::clone(&self.session);
        move |id| session.expect_event(id, handling)
    }

    /// The action with a time limit: those without get the configured one, and do not block (runtime-interface 5).
    pub(crate) fn with_limit(&self, mut action: ActionEvent) -> ActionEvent {
        if action.timeout.is_none() {
            #[expect(clippy::cast_precision_loss, reason = "a number of seconds")]
            let limit = self.session.config.sandbox.timeout as f64;
            action.timeout = Some(limit);
            if let Action::Run(run) = &mut action.action {
                run.blocking = false;
            }
        }
        action
    }

    async fn on_action(&self, action: ActionEvent) {
        let handling = action.id.and_then(|id| self.session.take_expected(id));
        if handling == Some(Handling::Done) {
            return;
        }
        if let Action::ChangeAgentState(change) = &action.action {
            self.on_state_change(action.source, &change.agent_state).await;
        }
        if !action.action.is_runnable() && !matches!(action.action, Action::Think(_) | Action::TaskTracking(_)) {
            return;
        }
        let mut action = self.with_limit(action);
        if handling != Some(Handling::Cleared) && !self.passes_gate(&mut action).await {
            return;
        }
        self.session.ready.cancelled().await;
        self.refresh_tokens(&action.action).await;
        let result = self.outcome(&action).await;
        if let Err(error) = self.settle(&action, result).await {
            tracing::error!(sid = self.sid(), %error, "the observation of an action is lost");
            self.session.status.set(StatusLevel::Error, RuntimeStatus::Error, &format!("RuntimeError: {error}"));
        }
    }

    /// Whether the action may be executed now. One that may not is held or answered.
    async fn passes_gate(&self, action: &mut ActionEvent) -> bool {
        let Some(stream) = self.session.stream.as_ref().filter(|_| action.source == Some(EventSource::Agent)) else {
            return true;
        };
        let stored = action.clone();
        let handled = match self.session.gate.evaluate(action, &LookBack(Some(stream.store().clone()))).await {
            Verdict::Proceed => return true,
            Verdict::Confirm { assessment } => self.hold(action.clone(), assessment).await,
            Verdict::Refuse { assessment } => {
                self.publish(&stored, Outcome::of(gloveport_security::refusal(&assessment))).await
            }
        };
        if let Err(error) = handled {
            tracing::error!(sid = self.sid(), %error, "an action that must not be executed could not be answered");
        }
        false
    }

    /// Keeps the action until the user decides, and says so in the stream.
    async fn hold(&self, action: ActionEvent, assessment: Assessment) -> Result<(), RuntimeError> {
        let event = question(&action, &assessment);
        self.session.gate.hold(action, assessment)?;
        self.stream("asking the user")?.add(event, EventSource::Environment).await?;
        Ok(())
    }

    /// The user's decision, as user interfaces send it. Nobody else's counts.
    async fn on_state_change(&self, source: Option<EventSource>, state: &str) {
        let pending = self.session.gate.pending();
        let Some(id) = pending.last().map(|waiting| waiting.id).filter(|_| source == Some(EventSource::User)) else {
            return;
        };
        let decided = match AgentState::parse(state) {
            Some(AgentState::UserConfirmed) => self.confirm(id).await,
            Some(AgentState::UserRejected) => self.reject(id).await,
            _ => return,
        };
        if let Err(error) = decided {
            tracing::error!(sid = self.sid(), id, %error, "the user's decision has no effect");
        }
    }

    /// What follows from the result of a dispatched action (runtime-interface 5).
    async fn settle(&self, action: &ActionEvent, result: Result<Outcome, RuntimeError>) -> Result<(), RuntimeError> {
        let error = match result {
            Ok(outcome) => return self.publish(action, outcome).await,
            Err(RuntimeError::Closed) => return Ok(()),
            Err(error) => error,
        };
        tracing::error!(sid = self.sid(), action = action.action.kind(), %error, "an action gave no observation");
        let (status, text) = match &error {
            RuntimeError::Execute(error) if is_network(error) => {
                (RuntimeStatus::ErrorRuntimeDisconnected, format!("{}: {error}", type_name(error)))
            }
            RuntimeError::Execute(error) => (RuntimeStatus::Error, format!("{}: {error}", type_name(error))),
            RuntimeError::McpTool(error) => (RuntimeStatus::Error, format!("ValueError: {error}")),
            other => (RuntimeStatus::Error, format!("RuntimeError: {other}")),
        };
        self.session.status.set(StatusLevel::Error, status, &text);
        Ok(())
    }

    /// Adds what came of an action to the stream.
    async fn publish(&self, action: &ActionEvent, outcome: Outcome) -> Result<(), RuntimeError> {
        if outcome.observation == Observation::Null {
            return Ok(());
        }
        let mut event = ObservationEvent::from(outcome.observation);
        event.cause = action.id;
        event.llm_metrics = outcome.llm_metrics;
        event.tool_call_metadata.clone_from(&action.tool_call_metadata);
        let source = action.source.unwrap_or(EventSource::Agent);
        self.stream("an observation")?.add(event, source).await?;
        Ok(())
    }

    pub(crate) fn stream(&self, what: &'static str) -> Result<&gloveport_event_stream::EventStream, RuntimeError> {
        self.session.stream.as_ref().ok_or(RuntimeError::NoStream(what))
    }
}

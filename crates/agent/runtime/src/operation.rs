//! One thing that is done in a sandbox, by whoever does it: rated, asked about, written down, and then what came of it.
//!
//! An operation is a command, a terminal, a cell, or a file that is read, written or edited. It is executed by its
//! caller, through whichever connection and with its output as it comes; what is the same for all of them is here.
//!
//! | step | what | where it is seen |
//! |---|---|---|
//! | 1 | the gate rates the action ([`Operations::begin`]) | |
//! | 2 | an action that has to be confirmed is added as it waits, and the question behind it | `agent_state_changed` |
//! | 3 | the [`Approver`] answers | the action once more, confirmed or rejected |
//! | 4 | the caller executes what may be executed | |
//! | 5 | what came of it is added, with the number of its action ([`Operation::finish`]) | the observation |
//!
//! Each event is in the history, without secrets, before the next step begins.

mod approver;
mod cell;
mod journal;
mod output;

use std::sync::Arc;

use gloveport_protocol::{
    ActionEvent, AgentState, AgentStateChangedObservation, ConfirmationState, Event, EventSource, Observation,
    ObservationEvent,
};
use gloveport_security::{Assessment, Gate, Verdict};

pub use approver::{Answer, Approver, Nobody, Question};
pub use cell::{CellOutput, CellSeen};
pub(crate) use journal::LookBack;
pub use journal::{Journal, NoJournal};
pub use output::{RunEnd, RunOutput, attached_terminal, attaching, had_terminal, observed};

use crate::RuntimeError;

/// What the operations of a session have in common: who rates them, who answers questions, and where they are written
/// down. Clones are the same.
#[derive(Clone)]
pub struct Operations {
    gate: Option<Arc<Gate>>,
    approver: Arc<dyn Approver>,
    journal: Arc<dyn Journal>,
}

/// Whether an operation may go on.
#[derive(Debug)]
pub enum Begun {
    /// It is executed by the caller, who says what came of it.
    Allowed(Box<Operation>),
    /// It must not be executed. The history says so already.
    Refused(Box<Refused>),
}

/// An operation that must not be executed.
#[derive(Debug)]
pub struct Refused {
    /// Who refused it.
    pub by: RefusedBy,
    /// Why it was stopped.
    pub assessment: Assessment,
    /// What the history says of it.
    pub observation: ObservationEvent,
}

/// Who refused an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// Whoever was asked.
    Approver,
    /// The gate would have asked, and there is nobody.
    NobodyToAsk,
    /// The gate, which asks nobody: confirmation mode is off.
    Gate,
}

/// An operation that goes on.
#[derive(Debug)]
pub struct Operation {
    journal: Arc<dyn Journal>,
    action: ActionEvent,
    source: EventSource,
}

impl Operations {
    /// Operations that this gate rates; without one nothing is rated or asked.
    pub fn new(gate: Option<Arc<Gate>>, approver: Arc<dyn Approver>, journal: Arc<dyn Journal>) -> Self {
        Self { gate, approver, journal }
    }

    /// Rates an action, asks about it if that is to be done, and writes it down. The source is whose action it is; it is
    /// rated whoever that is.
    pub async fn begin(&self, action: impl Into<ActionEvent>, source: EventSource) -> Result<Begun, RuntimeError> {
        let mut action = action.into();
        let verdict = match &self.gate {
            Some(gate) => gate.evaluate(&mut action, &LookBack(self.journal.events())).await,
            None => Verdict::Proceed,
        };
        match verdict {
            Verdict::Proceed => Ok(Begun::Allowed(Box::new(self.write_down(action, source).await?))),
            Verdict::Refuse { assessment } => self.refuse(action, source, assessment, RefusedBy::Gate).await,
            Verdict::Confirm { assessment } if !self.approver.attends() => {
                self.refuse(action, source, assessment, RefusedBy::NobodyToAsk).await
            }
            Verdict::Confirm { assessment } => self.ask(action, source, assessment).await,
        }
    }

    /// Asks about an action, and writes both question and answer down.
    async fn ask(
        &self,
        action: ActionEvent,
        source: EventSource,
        assessment: Assessment,
    ) -> Result<Begun, RuntimeError> {
        let waiting = self.write_down(action, source).await?;
        waiting.add(question(&waiting.action, &assessment), EventSource::Environment).await?;
        let answer = self.approver.ask(Question { action: &waiting.action, assessment: &assessment }).await;
        let state = match answer {
            Answer::Confirm => ConfirmationState::Confirmed,
            Answer::Reject => ConfirmationState::Rejected,
        };
        // A history that could not take the question does not get the answer.
        let decided = match waiting.action.id {
            None => waiting.with(gloveport_security::decided(waiting.action.clone(), state)),
            Some(_) => {
                self.write_down(gloveport_security::decided(waiting.action.clone(), state), waiting.source).await?
            }
        };
        match answer {
            Answer::Confirm => Ok(Begun::Allowed(Box::new(decided))),
            Answer::Reject => {
                let observation = decided.finish(gloveport_security::rejection(Some(&assessment))).await?;
                Ok(Begun::Refused(Box::new(Refused { by: RefusedBy::Approver, assessment, observation })))
            }
        }
    }

    /// Writes down that an action is not executed, in a form that no replay executes.
    async fn refuse(
        &self,
        mut action: ActionEvent,
        source: EventSource,
        assessment: Assessment,
        by: RefusedBy,
    ) -> Result<Begun, RuntimeError> {
        action.set_confirmation(ConfirmationState::Rejected);
        let refused = self.write_down(action, source).await?;
        let observation = refused.finish(gloveport_security::refusal(&assessment)).await?;
        Ok(Begun::Refused(Box::new(Refused { by, assessment, observation })))
    }

    async fn write_down(&self, mut action: ActionEvent, source: EventSource) -> Result<Operation, RuntimeError> {
        action.id = self.journal.add(action.clone().into(), source).await?;
        Ok(Operation { journal: Arc::clone(&self.journal), action, source })
    }
}

impl Operation {
    /// The action, with its number if it is written down.
    pub const fn action(&self) -> &ActionEvent {
        &self.action
    }

    /// Takes what a command writes, for its observation.
    pub fn output(&self) -> RunOutput {
        RunOutput::new(self.journal.mask())
    }

    /// Takes what a cell shows, for its observation.
    pub fn cell_output(&self) -> CellOutput {
        CellOutput::new(self.journal.mask())
    }

    /// Adds what came of it, and gives the event.
    pub async fn finish(self, observation: impl Into<ObservationEvent>) -> Result<ObservationEvent, RuntimeError> {
        let mut event = observation.into();
        event.cause = self.action.id;
        event.source = self.action.id.map(|_| self.source);
        event.tool_call_metadata.clone_from(&self.action.tool_call_metadata);
        self.add(event.clone(), self.source).await?;
        Ok(event)
    }

    /// Adds an event that belongs to the action. An action that is not written down has none.
    async fn add(&self, event: ObservationEvent, source: EventSource) -> Result<(), RuntimeError> {
        if self.action.id.is_some() {
            self.journal.add(Event::from(event), source).await?;
        }
        Ok(())
    }

    fn with(&self, action: ActionEvent) -> Self {
        Self { journal: Arc::clone(&self.journal), action, source: self.source }
    }
}

/// The question whether an action may be executed, as the history has it.
pub(crate) fn question(action: &ActionEvent, assessment: &Assessment) -> ObservationEvent {
    let reasons = assessment.rules.iter().map(|found| format!("{}: {}", found.rule, found.explanation));
    let state = AgentStateChangedObservation {
        reason: reasons.collect::<Vec<_>>().join("\n"),
        ..AgentStateChangedObservation::new("", AgentState::AwaitingUserConfirmation.as_str())
    };
    let mut event = ObservationEvent::from(Observation::AgentStateChanged(state));
    event.cause = action.id;
    event.tool_call_metadata.clone_from(&action.tool_call_metadata);
    event
}

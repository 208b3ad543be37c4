//! What a rating leads to, and the actions that wait for the user (security 4).

mod observation;
mod pending;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use gloveport_protocol::{Action, ActionEvent, ConfirmationState, SecurityRisk};
use tokio::time::timeout;

pub use observation::{refusal, rejection};
pub use pending::{MAX_PENDING, PendingAction, decided};

use crate::{
    analyzer::{Assessment, History, SecurityAnalyzer, Unattended},
    gate::pending::Pending,
};

/// Longest time for one rating. Analyzers have smaller limits of their own; this one is for those that do not keep
/// theirs.
const RATING_LIMIT: Duration = Duration::from_mins(5);

/// How a session is guarded.
#[derive(Clone, Default)]
pub struct GateOptions {
    /// The user wants to be asked (`security.confirmation_mode`).
    pub confirmation_mode: bool,
    /// The caller asks by its own rules and wants to be told of every action (the agent's `cli_mode`).
    pub cli_mode: bool,
    /// Who rates the actions.
    pub analyzer: Option<Arc<dyn SecurityAnalyzer>>,
}

/// Decides which actions go on.
///
/// The gate of a session is asked once for each action that the agent wants, before it is published. An action that
/// [`Gate::confirm`] gives back has been decided on and is not shown to the gate again.
pub struct Gate {
    options: GateOptions,
    pending: Pending,
}

impl fmt::Debug for Gate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Gate")
            .field("confirmation_mode", &self.options.confirmation_mode)
            .field("cli_mode", &self.options.cli_mode)
            .field("analyzer", &self.options.analyzer.as_ref().map(|analyzer| analyzer.name()))
            .field("pending", &self.pending.len())
            .finish()
    }
}

/// What happens to an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is executed.
    Proceed,
    /// The user decides. The action is in the state `awaiting_confirmation`: it is published, then given to
    /// [`Gate::hold`].
    Confirm {
        /// Why the user is asked.
        assessment: Assessment,
    },
    /// It is not executed; [`refusal`] gives the observation.
    Refuse {
        /// Why.
        assessment: Assessment,
    },
}

/// Why an action cannot wait, or cannot be decided on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The action has no number by which the user could decide on it.
    #[error("an action without an id cannot wait for the user: publish it first")]
    WithoutId,
    /// An action with this number waits already.
    #[error("the action {id} waits for the user already")]
    AlreadyPending {
        /// The number.
        id: i64,
    },
    /// Too many actions wait.
    #[error("{limit} actions wait for the user already: decide on one of them first")]
    TooMany {
        /// How many may wait.
        limit: usize,
    },
    /// No such action waits.
    #[error("no action {id} waits for the user: it was decided on already, or was never asked about")]
    NotPending {
        /// The number.
        id: i64,
    },
}

impl Gate {
    /// A gate through which nothing has gone yet.
    pub fn new(options: GateOptions) -> Self {
        Self { options, pending: Pending::default() }
    }

    /// Decides on an action, and notes risk and confirmation state on it (security 4, steps 1 to 3).
    ///
    /// | mode | kinds | what happens |
    /// |---|---|---|
    /// | confirmation mode | run, run_ipython, browse_interactive, edit, read | rated; then the table of security 4 |
    /// | confirmation mode, analyzer that refuses (`rules`) | the other kinds that can be executed | rated; HIGH asks |
    /// | otherwise, analyzer that refuses (`rules`) | all that can be executed | rated; HIGH is refused |
    /// | otherwise | all | goes on, unchanged |
    ///
    /// An action that was rejected or waits already goes on: whoever executes actions answers it by its state. A
    /// failing analyzer means an unknown risk.
    pub async fn evaluate(&self, event: &mut ActionEvent, history: &dyn History) -> Verdict {
        if !event.action.is_runnable() || event.confirmation() != ConfirmationState::Confirmed {
            return Verdict::Proceed;
        }
        let refuses = self.options.analyzer.as_ref().is_some_and(|one| one.unattended() == Unattended::Refuse);
        let reason_to_ask = match (self.options.confirmation_mode, asks_about(&event.action)) {
            (true, true) => Ask::AsConfigured,
            (true, false) if refuses => Ask::AboutHigh,
            (false, _) if refuses => Ask::Nobody,
            _ => return Verdict::Proceed,
        };
        let assessment = self.assess(event, history).await;
        event.action.set_security_risk(assessment.risk);
        let high = assessment.risk == SecurityRisk::High;
        match reason_to_ask {
            Ask::AsConfigured if self.wants_to_ask(assessment.risk) => confirm(event, assessment),
            Ask::AboutHigh if high => confirm(event, assessment),
            Ask::Nobody if high => Verdict::Refuse { assessment },
            _ => Verdict::Proceed,
        }
    }

    /// The table of security 4, step 2.
    const fn wants_to_ask(&self, risk: SecurityRisk) -> bool {
        match risk {
            _ if self.options.cli_mode => true,
            SecurityRisk::High => true,
            SecurityRisk::Unknown => self.options.analyzer.is_none(),
            SecurityRisk::Low | SecurityRisk::Medium => false,
        }
    }

    async fn assess(&self, event: &ActionEvent, history: &dyn History) -> Assessment {
        let unknown = Assessment::of(SecurityRisk::Unknown);
        let Some(analyzer) = &self.options.analyzer else { return unknown };
        match timeout(RATING_LIMIT, analyzer.assess(event, history)).await {
            Ok(Ok(assessment)) => assessment,
            Ok(Err(error)) => {
                tracing::warn!(analyzer = analyzer.name(), %error, "an action could not be rated; its risk is unknown");
                unknown
            }
            Err(_elapsed) => {
                tracing::warn!(analyzer = analyzer.name(), "an action was not rated in time; its risk is unknown");
                unknown
            }
        }
    }

    /// Keeps a published action until the user decides.
    ///
    /// At most [`MAX_PENDING`] can wait; one more is an error, and those that wait stay.
    pub fn hold(&self, action: ActionEvent, assessment: Assessment) -> Result<(), GateError> {
        self.pending.hold(action, assessment)
    }

    /// Lets an action pass. What comes back is published again, with source `agent`, and executed.
    pub fn confirm(&self, id: i64) -> Result<ActionEvent, GateError> {
        self.pending.decide(id, ConfirmationState::Confirmed).map(|(action, _)| action)
    }

    /// Refuses an action for the user. What comes back is published again, with source `agent`; [`rejection`] gives
    /// the observation, for which the reason to ask comes back, too.
    pub fn reject(&self, id: i64) -> Result<(ActionEvent, Assessment), GateError> {
        self.pending.decide(id, ConfirmationState::Rejected)
    }

    /// Forgets an action that nobody will decide on any more, as when the agent is stopped.
    pub fn discard(&self, id: i64) -> Option<PendingAction> {
        self.pending.discard(id)
    }

    /// The actions that wait, oldest first.
    pub fn pending(&self) -> Vec<PendingAction> {
        self.pending.all()
    }

    /// Who rates the actions.
    pub const fn analyzer(&self) -> Option<&Arc<dyn SecurityAnalyzer>> {
        self.options.analyzer.as_ref()
    }

    /// Frees what the analyzer holds, and forgets what waits.
    pub async fn close(&self) {
        self.pending.clear();
        if let Some(analyzer) = &self.options.analyzer {
            analyzer.close().await;
        }
    }
}

/// When the user is asked about an action.
enum Ask {
    /// By the table of the specification.
    AsConfigured,
    /// Only when the risk is high.
    AboutHigh,
    /// Never: there is nobody.
    Nobody,
}

/// The kinds of action that OpenHands 0.62 asks about.
const fn asks_about(action: &Action) -> bool {
    matches!(
        action,
        Action::Run(_) | Action::RunIpython(_) | Action::BrowseInteractive(_) | Action::Edit(_) | Action::Read(_)
    )
}

fn confirm(event: &mut ActionEvent, assessment: Assessment) -> Verdict {
    event.set_confirmation(ConfirmationState::AwaitingConfirmation);
    Verdict::Confirm { assessment }
}

//! What an analyzer is (security 2).

use gloveport_protocol::{ActionEvent, BoxFuture, Event, SecurityRisk};

use crate::error::AnalyzerError;

/// Rates actions. It only rates: what follows from a rating is the business of the [`Gate`](crate::Gate).
pub trait SecurityAnalyzer: Send + Sync {
    /// Its name in the configuration (`security.security_analyzer`).
    fn name(&self) -> &'static str;

    /// Makes everything ready that rating needs, so that a failure shows at the start of a session and not with its
    /// first action. Without this call the first rating does it.
    fn start(&self) -> BoxFuture<'_, Result<(), AnalyzerError>> {
        Box::pin(async { Ok(()) })
    }

    /// Rates an action. It ends within a limit that the analyzer sets itself.
    fn assess<'a>(
        &'a self,
        action: &'a ActionEvent,
        history: &'a dyn History,
    ) -> BoxFuture<'a, Result<Assessment, AnalyzerError>>;

    /// Frees what it holds. A second call does nothing.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// What the gate does about an action of risk HIGH when there is nobody to ask.
    fn unattended(&self) -> Unattended {
        Unattended::Proceed
    }
}

/// What the gate does about an action of risk HIGH without confirmation mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unattended {
    /// It goes on, as with OpenHands 0.62. The analyzer is not asked at all.
    Proceed,
    /// It is refused.
    Refuse,
}

/// The events of a conversation, as far as analyzers may look back.
pub trait History: Send + Sync {
    /// At most this many events from the end of what the agent remembers of the conversation, oldest first.
    fn latest(&self, count: usize) -> BoxFuture<'_, Vec<Event>>;
}

/// A conversation without events, for callers that have none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHistory;

impl History for NoHistory {
    fn latest(&self, _count: usize) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async { Vec::new() })
    }
}

/// What an analyzer thinks of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// How dangerous it is.
    pub risk: SecurityRisk,
    /// Why, if the analyzer says so: the worst first.
    pub rules: Vec<RuleMatch>,
}

impl Assessment {
    /// A rating without reasons.
    pub const fn of(risk: SecurityRisk) -> Self {
        Self { risk, rules: Vec::new() }
    }
}

/// A rule that applies to an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleMatch {
    /// Name of the rule.
    pub rule: &'static str,
    /// How dangerous what it describes is.
    pub risk: SecurityRisk,
    /// What was seen and what to do instead: one or two sentences for the agent and the user. Quotes the action.
    pub explanation: String,
}

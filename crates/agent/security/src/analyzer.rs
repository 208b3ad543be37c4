//! What an analyzer is, and which one a name means (security 2).

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use gloveport_protocol::{ActionEvent, BoxFuture, Event, Secret, SecurityRisk};
use serde_json::Value;

use crate::{
    analyzers::{GraySwan, Invariant, InvariantOptions, Llm, Rules, UnknownAnalyzer},
    error::AnalyzerError,
};

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

    /// Answers a request to `/api/conversations/{id}/security/{path}`.
    fn handle_api_request(&self, request: ApiRequest) -> BoxFuture<'_, Result<Value, AnalyzerError>>;

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

/// A request to an analyzer.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiRequest {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: String,
    /// What stands behind `security/` in the path.
    pub path: String,
    /// The body; null if there is none.
    pub body: Value,
}

impl ApiRequest {
    /// A request without a body.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET".to_owned(), path: path.into(), body: Value::Null }
    }
}

/// What analyzers are told at their start.
#[derive(Clone, Default)]
pub struct AnalyzerOptions {
    /// Where in the sandbox the agent works, for `rules`.
    pub workspace: PathBuf,
    /// The environment variables of the backend that begin with `GRAYSWAN_`.
    pub environment: BTreeMap<String, Secret>,
    /// The server of `invariant`.
    pub invariant: InvariantOptions,
    /// URL of the monitor of `grayswan`, if it is not the hosted one.
    pub grayswan_endpoint: Option<String>,
    /// Connections to use; without, an analyzer makes its own.
    pub http: Option<reqwest::Client>,
}

impl AnalyzerOptions {
    /// Options for a workspace, with the environment of this process.
    pub fn from_environment(workspace: impl Into<PathBuf>) -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("GRAYSWAN_"))
            .map(|(name, value)| (name, Secret::new(value)))
            .collect();
        Self { workspace: workspace.into(), environment, ..Self::default() }
    }
}

impl fmt::Debug for AnalyzerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnalyzerOptions").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// The analyzer with this name in the configuration.
///
/// The empty name means none. A failure is one that the start of a session must end with: `grayswan` without a key. An unknown name gives an analyzer that fails for every action, so that each has an
/// unknown risk, as with OpenHands 0.62; a warning in the log names the known ones.
pub fn analyzer(name: &str, options: &AnalyzerOptions) -> Result<Option<Arc<dyn SecurityAnalyzer>>, AnalyzerError> {
    Ok(Some(match name {
        "" => return Ok(None),
        "llm" => Arc::new(Llm),
        "invariant" => Arc::new(Invariant::new(options)?),
        "grayswan" => Arc::new(GraySwan::new(options)?),
        "rules" => Arc::new(Rules::new(&options.workspace)),
        unknown => {
            tracing::warn!(name = unknown, "there is no such security analyzer; every action has an unknown risk");
            Arc::new(UnknownAnalyzer::new(unknown))
        }
    }))
}

/// Whether the analyzer of this name stops actions also where nobody is asked, so that a session without confirmation
/// mode needs it ([`Unattended::Refuse`]).
pub fn refuses_unattended(name: &str) -> bool {
    name == "rules"
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::{Action, RunAction};

    use super::*;

    #[test]
    fn the_empty_name_means_no_analyzer() {
        assert!(analyzer("", &AnalyzerOptions::default()).unwrap().is_none());
    }

    #[test]
    fn each_name_gives_its_analyzer() {
        let environment = BTreeMap::from([("GRAYSWAN_API_KEY".to_owned(), Secret::new("key"))]);
        let options = AnalyzerOptions { environment, ..AnalyzerOptions::default() };
        for name in ["llm", "invariant", "grayswan", "rules"] {
            let analyzer = analyzer(name, &options).unwrap().unwrap();
            assert_eq!(analyzer.name(), name);
            assert_eq!(refuses_unattended(name), analyzer.unattended() == Unattended::Refuse, "{name}");
        }
    }

    #[test]
    fn grayswan_without_a_key_fails_at_once() {
        let error = analyzer("grayswan", &AnalyzerOptions::default()).err().unwrap();
        assert_eq!(error.to_string(), "GRAYSWAN_API_KEY environment variable is required");
    }

    #[tokio::test]
    async fn an_unknown_name_gives_an_analyzer_that_fails() {
        let analyzer = analyzer("Llm", &AnalyzerOptions::default()).unwrap().unwrap();
        let action = ActionEvent::from(Action::Run(RunAction::new("true")));
        let error = analyzer.assess(&action, &NoHistory).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no security analyzer `Llm`; known are: invariant, llm, grayswan, rules"
        );
        assert!(analyzer.handle_api_request(ApiRequest::get("settings")).await.is_err());
    }
}

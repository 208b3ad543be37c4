//! Which analyzer a name means (security 2).

use std::sync::Arc;

use crate::{
    analyzer::SecurityAnalyzer,
    analyzers::{GraySwan, Invariant, Llm, Rules, UnknownAnalyzer},
    error::AnalyzerError,
    options::AnalyzerOptions,
};

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
    use std::collections::BTreeMap;

    use gloveport_protocol::{Action, ActionEvent, RunAction, Secret};

    use super::*;
    use crate::analyzer::{NoHistory, Unattended};

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
            "there is no security analyzer `Llm`; choose one of invariant, llm, grayswan, rules"
        );
    }
}

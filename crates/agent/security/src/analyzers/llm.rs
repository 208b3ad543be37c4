//! `llm`: takes the word of the agent's own model (security 3.1).

use gloveport_protocol::{ActionEvent, BoxFuture, SecurityRisk};

use crate::{
    analyzer::{Assessment, History, SecurityAnalyzer},
    error::AnalyzerError,
};

/// Rates an action as the model that wants it did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Llm;

impl SecurityAnalyzer for Llm {
    fn name(&self) -> &'static str {
        "llm"
    }

    fn assess<'a>(
        &'a self,
        event: &'a ActionEvent,
        _history: &'a dyn History,
    ) -> BoxFuture<'a, Result<Assessment, AnalyzerError>> {
        let risk = event.action.security_risk().unwrap_or_else(|| {
            tracing::warn!(action = event.action.kind(), "an action of this kind has no risk; it counts as unknown");
            SecurityRisk::Unknown
        });
        Box::pin(async move { Ok(Assessment::of(risk)) })
    }
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::{Action, RunAction};

    use super::*;
    use crate::analyzer::NoHistory;

    #[tokio::test]
    async fn the_risk_is_the_one_that_the_action_has() {
        for risk in [SecurityRisk::Unknown, SecurityRisk::Low, SecurityRisk::Medium, SecurityRisk::High] {
            let mut action = Action::Run(RunAction::new("true"));
            action.set_security_risk(risk);
            assert_eq!(Llm.assess(&action.into(), &NoHistory).await.unwrap(), Assessment::of(risk));
        }
        let without = Llm.assess(&Action::Null.into(), &NoHistory).await.unwrap();
        assert_eq!(without, Assessment::of(SecurityRisk::Unknown));
    }
}

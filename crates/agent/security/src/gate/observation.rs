//! What the agent is told about an action that is not executed.

use gloveport_protocol::{ErrorObservation, Observation, UserRejectedObservation};

use crate::analyzer::Assessment;

/// The text of the reference (security 4, step 5).
const REJECTED: &str = "Action has been rejected by the user! Waiting for further user input.";

/// Answers an action that was refused: an error observation that names each rule, what it saw and what to do instead.
pub fn refusal(assessment: &Assessment) -> Observation {
    let mut text = "The action was not executed: its risk is high, and there is no one to confirm it.".to_owned();
    for found in &assessment.rules {
        text.push_str("\n- ");
        text.push_str(found.rule);
        text.push_str(": ");
        text.push_str(&found.explanation);
    }
    text.push_str("\nFind another way, or ask the user to do this.");
    Observation::Error(ErrorObservation::new(text))
}

/// Answers an action that the user rejected, with the text of the reference.
///
/// When named rules were the reason to ask, a second line names them. No other analyzer names rules, so with those the
/// text is exactly the one of the reference.
pub fn rejection(assessment: Option<&Assessment>) -> Observation {
    let rules: Vec<_> = assessment.into_iter().flat_map(|one| &one.rules).map(|found| found.rule).collect();
    let text = match rules.as_slice() {
        [] => REJECTED.to_owned(),
        rules => format!("{REJECTED}\nThe user was asked because of: {}.", rules.join(", ")),
    };
    Observation::UserRejected(UserRejectedObservation::new(text))
}

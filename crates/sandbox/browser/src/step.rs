//! One step: actions, their effects, and what is to be seen then (spec/browser.md 2).

use gloveport_browsergym::{ActionError, operation::Operation, parse_script};
use tokio::time::Instant;

use crate::{
    act,
    live::Live,
    observe::{self, Observation},
    script::ScriptError,
    settle::{self, After},
};

/// What a step led to.
#[derive(Debug, Clone)]
pub struct Step {
    /// What the active page is like.
    pub observation: Observation,
    /// Why an action failed; those behind it were not tried.
    pub error: Option<ActionError>,
}

/// Performs the actions of a text, one after the other, and looks at the page.
pub(crate) async fn step(live: &Live, text: &str) -> Result<Step, ScriptError> {
    let since = Instant::now();
    live.begin();
    let mut after = After::Input;
    let error = run(live, text, &mut after).await.err();
    settle::settle(live, since, after).await?;
    let observation = observe::observe(live).await?;
    Ok(Step { observation, error })
}

/// Performs the actions, and notes what was done last, also by one that failed.
async fn run(live: &Live, text: &str, after: &mut After) -> Result<(), ActionError> {
    for call in parse_script(text)? {
        let operation = call.bind()?;
        let then = match operation {
            Operation::Goto { .. } | Operation::GoBack | Operation::GoForward => After::Arrival,
            Operation::Noop { .. } | Operation::SendMessageToUser { .. } | Operation::ReportInfeasible { .. } => *after,
            _ => After::Input,
        };
        *after = After::Input;
        act::perform(live, operation).await?;
        *after = then;
    }
    Ok(())
}

//! One step: actions, their effects, and what is to be seen then (spec/browser.md 2).

use gloveport_browsergym::{ActionError, parse_script};
use tokio::time::Instant;

use crate::{
    act,
    live::Live,
    observe::{self, Observation},
    script::ScriptError,
    settle,
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
    let error = run(live, text).await.err();
    settle::settle(live, since).await?;
    let observation = observe::observe(live).await?;
    Ok(Step { observation, error })
}

async fn run(live: &Live, text: &str) -> Result<(), ActionError> {
    for call in parse_script(text)? {
        act::perform(live, call.bind()?).await?;
    }
    Ok(())
}

//! Who commits, as git is told.

use gloveport_protocol::{Action, Observation, RunAction};

use crate::{SandboxConnection, execution::execute_in, quote};

/// Tells git who commits. What fails is only a warning (runtime-interface 9.3).
pub(crate) async fn set_git_user(sandbox: &dyn SandboxConnection, name: &str, address: &str) {
    let command = format!(
        "git config --global user.name {} && git config --global user.email {}",
        quote::bash_value(name),
        quote::bash_value(address)
    );
    let run = RunAction { hidden: true, ..RunAction::new(command) };
    match execute_in(sandbox, &Action::Run(run).into()).await {
        Ok(Observation::Run(run)) if run.metadata.exit_code == 0 => {}
        Ok(other) => tracing::warn!(reason = other.content(), "git does not know who commits"),
        Err(error) => tracing::warn!(%error, "git does not know who commits"),
    }
}

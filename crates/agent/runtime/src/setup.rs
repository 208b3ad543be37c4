//! What a repository wants to be done before work begins: its set-up script and its hooks (runtime-interface 9).

use gloveport_protocol::{
    Action, ActionEvent, EventSource, Observation, ReadAction, RunAction, RunObservation, WriteAction,
};

use crate::{Runtime, RuntimeError, RuntimeStatus, StatusLevel};

/// The set-up script, from where the tools are.
const SETUP_SCRIPT: &str = ".openhands/setup.sh";
/// Seconds that the set-up script may take.
const SETUP_LIMIT: f64 = 600.0;
/// The repository's own hook, which ours calls.
const PRE_COMMIT_SCRIPT: &str = ".openhands/pre-commit.sh";
/// Where git looks for it.
const PRE_COMMIT_HOOK: &str = ".git/hooks/pre-commit";
/// How an installed hook is known.
const HOOK_MARK: &str = "This hook was installed by OpenHands";

impl Runtime {
    /// Runs `.openhands/setup.sh` where there is one: once, in the shell, with ten minutes of time. It is shown in the
    /// stream. How it ends is not looked at.
    pub async fn maybe_run_setup_script(&self) -> Result<(), RuntimeError> {
        if self.read_text(SETUP_SCRIPT).await?.is_none() {
            return Ok(());
        }
        self.session.status.tell(StatusLevel::Info, RuntimeStatus::SettingUpWorkspace, "Setting up workspace...");
        let run = RunAction {
            blocking: true,
            hidden: true,
            ..RunAction::new(format!("chmod +x {SETUP_SCRIPT} && source {SETUP_SCRIPT}"))
        };
        let action = ActionEvent { timeout: Some(SETUP_LIMIT), ..Action::Run(run).into() };
        if self.session.stream.is_some() {
            self.perform(action, EventSource::Environment).await?;
        } else {
            self.run_action(&action).await?;
        }
        Ok(())
    }

    /// Makes git run the repository's `.openhands/pre-commit.sh` before each commit, where there is one. A hook of
    /// somebody else is kept as `pre-commit.local`.
    pub async fn maybe_set_up_git_hooks(&self) -> Result<(), RuntimeError> {
        if self.read_text(PRE_COMMIT_SCRIPT).await?.is_none() {
            return Ok(());
        }
        self.session.status.tell(StatusLevel::Info, RuntimeStatus::SettingUpGitHooks, "Setting up git hooks...");
        if let Err(failure) = self.install_hook().await? {
            tracing::error!(sid = self.sid(), "{failure}");
        } else {
            tracing::info!(sid = self.sid(), "Git pre-commit hook installed successfully");
        }
        Ok(())
    }

    /// Every step, or the text about the one that failed.
    async fn install_hook(&self) -> Result<Result<(), String>, RuntimeError> {
        let steps = [
            ("mkdir -p .git/hooks".to_owned(), "Failed to create git hooks directory"),
            (format!("chmod +x {PRE_COMMIT_SCRIPT}"), "Failed to make pre-commit script executable"),
        ];
        if let Some(failure) = self.failing(steps).await? {
            return Ok(Err(failure));
        }
        let existing = self.read_text(PRE_COMMIT_HOOK).await?;
        if existing.is_some_and(|hook| !hook.contains(HOOK_MARK)) {
            tracing::info!(sid = self.sid(), "Preserving existing pre-commit hook");
            let steps = [
                (
                    format!("mv {PRE_COMMIT_HOOK} {PRE_COMMIT_HOOK}.local"),
                    "Failed to preserve existing pre-commit hook",
                ),
                (format!("chmod +x {PRE_COMMIT_HOOK}.local"), "Failed to make preserved hook executable"),
            ];
            if let Some(failure) = self.failing(steps).await? {
                return Ok(Err(failure));
            }
        }
        let write = Action::Write(WriteAction::new(PRE_COMMIT_HOOK, hook()));
        if let Observation::Error(error) = self.run_action(&write.into()).await? {
            return Ok(Err(format!("Failed to write pre-commit hook: {}", error.content)));
        }
        let steps = [(format!("chmod +x {PRE_COMMIT_HOOK}"), "Failed to make pre-commit hook executable")];
        Ok(self.failing(steps).await?.map_or(Ok(()), Err))
    }

    /// Runs commands until one fails, and gives its text.
    async fn failing<const N: usize>(&self, steps: [(String, &str); N]) -> Result<Option<String>, RuntimeError> {
        for (command, failure) in steps {
            let observation = self.run_action(&Action::Run(RunAction::new(command)).into()).await?;
            match observation {
                Observation::Run(run) if run.metadata.exit_code == 0 => {}
                other => return Ok(Some(format!("{failure}: {}", other.content()))),
            }
        }
        Ok(None)
    }

    /// The text of a file in the sandbox; none if it cannot be read.
    pub(crate) async fn read_text(&self, path: &str) -> Result<Option<String>, RuntimeError> {
        let read = Action::Read(ReadAction::new(path));
        Ok(match self.run_action(&read.into()).await? {
            Observation::Read(read) => Some(read.content),
            _ => None,
        })
    }

    /// Runs a command and gives its observation, where the sandbox has a shell.
    pub(crate) async fn command(&self, run: RunAction) -> Result<Result<RunObservation, String>, RuntimeError> {
        Ok(match self.run_action(&Action::Run(run).into()).await? {
            Observation::Run(run) => Ok(run),
            other => Err(other.content().to_owned()),
        })
    }
}

/// The hook that calls the repository's script.
fn hook() -> String {
    format!(
        "#!/bin/bash\n\
         # {HOOK_MARK}\n\
         script={PRE_COMMIT_SCRIPT}\n\
         if [ -x \"$script\" ]; then\n    \
             source \"$script\"\n    \
             exit $?\n\
         fi\n\
         echo \"warning: $script is missing or not executable; nothing is checked before this commit\" >&2\n\
         exit 0\n"
    )
}

//! A runtime in a workspace of its own, and short ways to ask it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use gloveport_cli_runtime::{CliOptions, CliRuntime};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, CommandMetadata, Observation, ReadAction, RunAction, RunObservation,
};

pub(crate) struct Fixture {
    pub(crate) runtime: Arc<CliRuntime>,
    /// The workspace, without links in its path.
    pub(crate) root: PathBuf,
    /// Holds the workspace and whatever is beside it.
    pub(crate) directory: tempfile::TempDir,
}

impl Fixture {
    /// A workspace `ws` in a directory of its own.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(directory.path()).unwrap().join("ws");
        let mut options = CliOptions::new(&root);
        options.environment.retain(|(name, _)| name != "HOME" && name != "BASH_ENV");
        options.environment.push(("HOME".into(), directory.path().into()));
        options.patience = Duration::from_millis(300);
        Self { runtime: CliRuntime::open(options).unwrap(), root, directory }
    }

    pub(crate) async fn act(&self, action: Action) -> Observation {
        self.runtime.execute(&action.into()).await.unwrap()
    }

    pub(crate) async fn act_within(&self, action: Action, seconds: f64) -> Observation {
        self.runtime.execute(&ActionEvent { timeout: Some(seconds), ..action.into() }).await.unwrap()
    }

    pub(crate) async fn run(&self, command: &str) -> RunObservation {
        as_run(self.act(Action::Run(RunAction::new(command))).await)
    }

    pub(crate) async fn input(&self, text: &str) -> RunObservation {
        as_run(self.act(Action::Run(RunAction { is_input: true, ..RunAction::new(text) })).await)
    }

    pub(crate) async fn read(&self, path: &str) -> Observation {
        self.act(Action::Read(ReadAction::new(path))).await
    }

    /// The metadata of a command: nothing but these.
    pub(crate) fn metadata(&self, exit_code: i64, prefix: &str, suffix: &str) -> CommandMetadata {
        CommandMetadata {
            exit_code,
            working_dir: Some(self.root.display().to_string()),
            prefix: prefix.into(),
            suffix: suffix.into(),
            ..CommandMetadata::default()
        }
    }
}

pub(crate) fn as_run(observation: Observation) -> RunObservation {
    match observation {
        Observation::Run(run) => run,
        other => panic!("no run observation: {other:?}"),
    }
}

/// The text of an error observation.
pub(crate) fn error_of(observation: &Observation) -> String {
    match observation {
        Observation::Error(error) => error.content.clone(),
        other => panic!("no error: {other:?}"),
    }
}

//! What has changed in a repository of the sandbox (runtime-interface 12).
//!
//! Our own server knows these commands and answers without Python. For a server that does not have the scripts either,
//! they are uploaded once.

mod scripts;

use gloveport_protocol::{Observation, RunAction, WriteAction};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use scripts::Scripts;

use crate::{Runtime, RuntimeError};

const CHANGES_SCRIPT: &str = "/openhands/code/openhands/runtime/utils/git_changes.py";
const DIFF_SCRIPT: &str = "/openhands/code/openhands/runtime/utils/git_diff.py";
const OUR_CHANGES_SCRIPT: &str = include_str!("git_scripts/git_changes.py");
const OUR_DIFF_SCRIPT: &str = include_str!("git_scripts/git_diff.py");

/// How a file of a repository has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ChangeStatus {
    /// Its content is another.
    #[serde(rename = "M")]
    Modified,
    /// It is new.
    #[serde(rename = "A")]
    Added,
    /// It is gone.
    #[serde(rename = "D")]
    Deleted,
    /// It has conflicts.
    #[serde(rename = "U")]
    Unmerged,
}

/// A file that has changed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GitChange {
    /// How.
    pub status: ChangeStatus,
    /// Its path, from the directory that was asked about.
    pub path: String,
}

/// A file before and after.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GitDiff {
    /// Now; empty if it is gone.
    pub modified: String,
    /// In the reference revision; empty if it was not there.
    pub original: String,
}

impl Runtime {
    /// The files of the repositories in a directory that differ from what their origin has, sorted by path. None where
    /// that cannot be told.
    pub async fn git_changes(&self, directory: &str) -> Result<Option<Vec<GitChange>>, RuntimeError> {
        let output = match self.git_script(directory, &format!("python3 {CHANGES_SCRIPT}")).await? {
            Some(output) => Some(output),
            None => match self.uploaded_scripts().await? {
                Some(scripts) => self.git_script(directory, &format!("python3 {}", scripts.changes)).await?,
                None => None,
            },
        };
        let Some(output) = output else { return Ok(None) };
        match serde_json::from_str::<Value>(&output).and_then(serde_json::from_value) {
            Ok(changes) => Ok(Some(changes)),
            Err(error) => {
                tracing::warn!(sid = self.sid(), %error, "the answer about changes is no list of them");
                Ok(None)
            }
        }
    }

    /// A file in its reference revision and now.
    pub async fn git_diff(&self, file: &str, directory: &str) -> Result<GitDiff, RuntimeError> {
        let quoted = double_quoted(file);
        let mut output = self.git_script(directory, &format!("python3 {DIFF_SCRIPT} {quoted}")).await?;
        if output.is_none()
            && let Some(scripts) = self.uploaded_scripts().await?
        {
            output = self.git_script(directory, &format!("python3 {} {quoted}", scripts.diff)).await?;
        }
        let output = output.ok_or_else(|| RuntimeError::GitDiff(file.to_owned()))?;
        serde_json::from_str(&output).map_err(|error| RuntimeError::GitDiff(format!("{file}: {error}")))
    }

    /// The branch that is checked out in a directory of the workspace; none if there is none.
    pub async fn workspace_branch(&self, repository: Option<&str>) -> Result<Option<String>, RuntimeError> {
        let root = self.workspace_root();
        let directory = repository.map_or_else(
            || root.to_owned(),
            |name| format!("{}/{}", root.trim_end_matches('/'), crate::repository::last_part(name)),
        );
        let output = self.git_script(&directory, "git branch --show-current").await?;
        Ok(output.map(|output| output.trim().to_owned()).filter(|branch| !branch.is_empty()))
    }

    /// The output of a command that ends with status 0.
    async fn git_script(&self, directory: &str, command: &str) -> Result<Option<String>, RuntimeError> {
        let run =
            RunAction { is_static: true, hidden: true, cwd: Some(directory.to_owned()), ..RunAction::new(command) };
        Ok(self.command(run).await?.ok().filter(|run| run.metadata.exit_code == 0).map(|run| run.content))
    }

    /// Puts the scripts into the sandbox, once.
    async fn uploaded_scripts(&self) -> Result<Option<&Scripts>, RuntimeError> {
        let upload = async || -> Result<Scripts, Option<RuntimeError>> {
            let made = RunAction { is_static: true, hidden: true, ..RunAction::new("mktemp -d") };
            let made = self.command(made).await?.ok().filter(|run| run.metadata.exit_code == 0).ok_or(None)?;
            let directory = made.content.trim();
            let scripts =
                Scripts { changes: format!("{directory}/git_changes.py"), diff: format!("{directory}/git_diff.py") };
            for (path, text) in [(&scripts.changes, OUR_CHANGES_SCRIPT), (&scripts.diff, OUR_DIFF_SCRIPT)] {
                let write = WriteAction::new(path.as_str(), text);
                let written = self.run_action(&gloveport_protocol::Action::Write(write).into()).await?;
                if matches!(written, Observation::Error(_)) {
                    return Err(None);
                }
                let executable =
                    RunAction { is_static: true, hidden: true, ..RunAction::new(format!("chmod +x \"{path}\"")) };
                let _not_needed_to_read_it = self.command(executable).await?;
            }
            Ok(scripts)
        };
        match self.session.git_scripts.get_or_try_init(upload).await {
            Ok(scripts) => Ok(Some(scripts)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }
}

/// A name in double quotes, as the interface quotes it, in which nothing is expanded.
fn double_quoted(name: &str) -> String {
    let mut word = String::from("\"");
    for c in name.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            word.push('\\');
        }
        word.push(c);
    }
    word.push('"');
    word
}

//! What has changed in a repository of the sandbox (runtime-interface 12).
//!
//! The scripts are those of a sandbox that has OpenHands in it.

use gloveport_protocol::RunAction;
use serde::Deserialize;
use serde_json::Value;

use crate::{Runtime, RuntimeError};

const CHANGES_SCRIPT: &str = "/openhands/code/openhands/runtime/utils/git_changes.py";
const DIFF_SCRIPT: &str = "/openhands/code/openhands/runtime/utils/git_diff.py";

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
        let output = self.git_script(directory, &format!("python3 {CHANGES_SCRIPT}")).await?;
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
        let output = self.git_script(directory, &format!("python3 {DIFF_SCRIPT} {quoted}")).await?;
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

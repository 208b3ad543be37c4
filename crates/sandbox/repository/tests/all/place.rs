//! Repositories made by git itself.

use std::{fs, path::PathBuf, process::Command};

use gloveport_repository::{Status, changes, diff};
use gloveport_sys::Surroundings;
use tempfile::TempDir;

/// A directory for repositories, and what git needs there.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    pub(crate) fn git(&self, below: &str, words: &[&str]) -> String {
        let settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let output = Command::new("git")
            .args(settings)
            .args(words)
            .current_dir(self.0.path().join(below))
            .env("HOME", self.0.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A repository with one commit.
    pub(crate) fn repository(&self, below: &str) {
        for (name, text) in [("kept", "1\n"), ("changed", "one\ntwo\n"), ("gone", "x\n"), (".gitignore", "ignored\n")] {
            self.write(&format!("{below}/{name}"), text);
        }
        self.git(below, &["init", "-q"]);
        self.commit(below, "the first");
    }

    pub(crate) fn commit(&self, below: &str, subject: &str) {
        self.git(below, &["add", "-A"]);
        self.git(below, &["commit", "-q", "-m", subject]);
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        let mut surroundings = Surroundings::inherited(self.0.path().to_owned());
        surroundings.set("HOME", self.0.path());
        surroundings
    }

    pub(crate) async fn changes(&self, below: &str, reference: Option<&str>) -> Vec<String> {
        let found = changes(&self.surroundings(), &self.0.path().join(below), reference).await.unwrap();
        let letter = |status| match status {
            Status::Added => 'A',
            Status::Updated => 'U',
            Status::Deleted => 'D',
        };
        found.into_iter().map(|change| format!("{} {}", letter(change.status), change.path)).collect()
    }

    pub(crate) async fn diff(&self, below: &str) -> Result<(Option<String>, Option<String>), String> {
        let found = diff(&self.surroundings(), &self.0.path().join(below), None, None).await;
        found.map(|diff| (diff.original, diff.modified)).map_err(|error| error.to_string())
    }
}

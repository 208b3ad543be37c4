//! What has changed, in repositories made by git itself.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{fs, path::Path, process::Command};

use gloveport_repository::{Status, changes, commit_changes, commits, diff};
use gloveport_sys::Surroundings;
use tempfile::TempDir;

/// A directory for repositories, and what git needs there.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn git(&self, below: &str, words: &[&str]) -> String {
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

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A repository with one commit.
    fn repository(&self, below: &str) {
        for (name, text) in [("kept", "1\n"), ("changed", "one\ntwo\n"), ("gone", "x\n"), (".gitignore", "ignored\n")] {
            self.write(&format!("{below}/{name}"), text);
        }
        self.git(below, &["init", "-q"]);
        self.commit(below, "the first");
    }

    fn commit(&self, below: &str, subject: &str) {
        self.git(below, &["add", "-A"]);
        self.git(below, &["commit", "-q", "-m", subject]);
    }

    fn surroundings(&self) -> Surroundings {
        let mut surroundings = Surroundings::inherited(self.0.path().to_owned());
        surroundings.set("HOME", self.0.path());
        surroundings
    }

    async fn changes(&self, below: &str, reference: Option<&str>) -> Vec<String> {
        let found = changes(&self.surroundings(), &self.0.path().join(below), reference).await.unwrap();
        let letter = |status| match status {
            Status::Added => 'A',
            Status::Updated => 'U',
            Status::Deleted => 'D',
        };
        found.into_iter().map(|change| format!("{} {}", letter(change.status), change.path)).collect()
    }

    async fn diff(&self, below: &str) -> Result<(Option<String>, Option<String>), String> {
        let found = diff(&self.surroundings(), &self.0.path().join(below), None, None).await;
        found.map(|diff| (diff.original, diff.modified)).map_err(|error| error.to_string())
    }
}

#[tokio::test]
async fn changes_are_those_of_tracked_files_and_new_ones_whatever_their_names() {
    let place = Place::new();
    place.repository("r");
    assert_eq!(place.changes("r", None).await, Vec::<String>::new());
    place.write("r/changed", "three\n");
    place.write("r/ignored", "");
    place.write("r/deep/a b é", "");
    fs::remove_file(place.0.path().join("r/gone")).unwrap();
    place.git("r", &["mv", "kept", "elsewhere \"x\""]);
    let all = ["U changed", "A deep/a b é", "A elsewhere \"x\"", "D gone", "D kept"];
    assert_eq!(place.changes("r", None).await, all);
    assert_eq!(place.changes("r", Some("HEAD")).await, all);
    assert_eq!(place.changes("r/deep", None).await, ["A a b é"]);
    for wrong in ["nowhere", "-x", "--output=/tmp/x"] {
        let refused = changes(&place.surroundings(), &place.0.path().join("r"), Some(wrong)).await.unwrap_err();
        assert!(refused.to_string().starts_with("Git command failed"), "{refused}");
    }
    place.write("plain/file", "");
    assert_eq!(place.changes("plain", None).await, Vec::<String>::new());
    assert_eq!(place.changes("nothing", None).await, Vec::<String>::new());
}

#[tokio::test]
async fn without_a_commit_everything_is_new() {
    let place = Place::new();
    place.write("r/file", "");
    place.git("r", &["init", "-q"]);
    assert_eq!(place.changes("r", None).await, ["A file"]);
    assert_eq!(place.changes("r", Some("HEAD")).await, ["A file"]);
    let none = commits(&place.surroundings(), &place.0.path().join("r"), 50).await.unwrap();
    assert!(none.commits.is_empty() && !none.has_more);
}

#[tokio::test]
async fn a_branch_is_compared_with_what_it_began_from() {
    let place = Place::new();
    place.repository("r");
    place.git("r", &["checkout", "-q", "-b", "work"]);
    place.write("r/on-work", "");
    place.commit("r", "work");
    // The main branch here; then what is published of this one; then, when all of it is, what the default branch has.
    assert_eq!(place.changes("r", None).await, ["A on-work"]);
    fs::create_dir(place.0.path().join("bare")).unwrap();
    place.git("bare", &["init", "-q", "--bare"]);
    place.git("r", &["remote", "add", "origin", "../bare"]);
    place.git("r", &["push", "-q", "origin", "main", "work"]);
    assert_eq!(place.changes("r", None).await, ["A on-work"]);
    place.write("r/kept", "2\n");
    assert_eq!(place.changes("r", None).await, ["U kept"]);
    place.commit("r", "more work");
    assert_eq!(place.changes("r", None).await, ["U kept"]);
    // A machine that does not answer is none with a default branch.
    place.git("r", &["remote", "set-url", "origin", "/nothing/here"]);
    place.git("r", &["push", "-q", "../bare", "work"]);
    place.git("r", &["update-ref", "refs/remotes/origin/work", "HEAD"]);
    assert_eq!(place.changes("r", None).await, ["U kept", "A on-work"]);
}

#[tokio::test]
async fn repositories_in_directories_are_their_own() {
    let place = Place::new();
    place.repository("r");
    place.repository("r/inner");
    place.write("r/inner/kept", "2\n");
    place.write("r/innermost", "");
    assert_eq!(place.changes("r", None).await, ["U inner/kept", "A innermost"]);
    place.repository("outside/a");
    place.write("outside/a/new", "");
    place.write("outside/broken/.git", "nonsense");
    assert_eq!(place.changes("outside", None).await, ["A a/new"]);
}

#[tokio::test]
async fn texts_are_compared_without_the_form_of_their_line_ends() {
    let place = Place::new();
    place.repository("r");
    place.write("r/changed", "one\r\nthree\r\n\r\n");
    place.write("r/new", "new");
    place.write("r/binary", b"\xff\x00");
    fs::remove_file(place.0.path().join("r/gone")).unwrap();
    let some = |text: &str| Some(text.to_owned());
    for (name, original, modified) in [
        ("kept", "1", "1"),
        ("changed", "one\ntwo", "one\nthree\n"),
        ("new", "", "new"),
        ("gone", "x", ""),
        ("binary", "", ""),
    ] {
        assert_eq!(place.diff(&format!("r/{name}")).await, Ok((some(original), some(modified))), "{name}");
    }
    assert!(place.diff("r/deep/nothing").await.unwrap_err().starts_with("File does not exist: "));
    place.write("r/large", vec![b'x'; 1_048_577]);
    let large = place.diff("r/large").await.unwrap_err();
    assert_eq!(large, "File too large for git diff: 1048577 bytes (max: 1048576 bytes)");
    place.write("plain/file", "");
    assert_eq!(place.diff("plain/file").await, Ok((None, None)));
    let head = place.git("r", &["rev-parse", "HEAD"]);
    let path = place.0.path().join("r/kept");
    let first = diff(&place.surroundings(), &path, None, Some(&head)).await.unwrap();
    assert_eq!((first.original, first.modified), (some(""), some("1")));
}

#[tokio::test]
async fn commits_are_told_with_what_each_changed() {
    let place = Place::new();
    place.repository("r");
    place.write("r/kept", "2\n");
    place.commit("r", "the second\u{1f}é\n\nwith more");
    let (surroundings, path) = (place.surroundings(), place.0.path().join("r"));
    let both = commits(&surroundings, &path, 2).await.unwrap();
    let subjects: Vec<&str> = both.commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!((subjects, both.has_more), (vec!["the second\u{1f}é", "the first"], false));
    assert_eq!(both.commits[0].author, "A");
    let one = commits(&surroundings, &path, 1).await.unwrap();
    assert!(one.commits.len() == 1 && one.has_more);
    let second = commit_changes(&surroundings, &path, &both.commits[0].short_sha).await.unwrap();
    assert_eq!(serde_json::to_string(&second).unwrap(), r#"[{"status":"UPDATED","path":"kept"}]"#);
    let first = commit_changes(&surroundings, &path, &both.commits[1].sha).await.unwrap();
    assert_eq!(first.len(), 4);
    assert!(commit_changes(&surroundings, &path, "0123456").await.is_err());
}

#[tokio::test]
async fn a_repository_has_no_program_run() {
    let place = Place::new();
    place.repository("r");
    let mark = place.0.path().join("mark");
    let touch = format!("touch {}", mark.display());
    place.write("r/.gitattributes", "* diff=evil\n");
    for name in
        ["core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command", "gpg.program", "core.pager"]
    {
        place.git("r", &["config", name, &touch]);
    }
    place.git("r", &["config", "log.showSignature", "true"]);
    let hook = place.0.path().join("r/.git/hooks/post-index-change");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).unwrap();
    make_executable(&hook);
    place.write("r/changed", "three\n");
    assert_eq!(place.changes("r", None).await, ["A .gitattributes", "U changed"]);
    assert!(place.diff("r/changed").await.is_ok());
    let path = place.0.path().join("r");
    assert_eq!(commits(&place.surroundings(), &path, 5).await.unwrap().commits.len(), 1);
    assert!(commit_changes(&place.surroundings(), &path, "HEAD").await.is_ok());
    assert!(!mark.exists());
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

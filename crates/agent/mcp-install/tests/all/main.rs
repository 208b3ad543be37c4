//! Files of clients, before and after.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

mod apply;
mod hostile;
mod json;
mod programs;
mod properties;
mod toml;

use std::{fs, path::PathBuf};

use gloveport_mcp_install::{Change, Entry, InstallError, Program, install, uninstall};

/// A server with everything that an entry can have.
fn entry() -> Entry {
    Entry {
        name: "tools".to_owned(),
        command: "/usr/bin/tools".to_owned(),
        args: vec!["serve".to_owned(), "--fast".to_owned()],
        env: [("KEY".to_owned(), "secret".to_owned())].into(),
    }
}

/// A server without variables and arguments.
fn small() -> Entry {
    Entry { name: "tools".to_owned(), command: "t".to_owned(), ..Entry::default() }
}

/// A file that is gone after the test.
struct File {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl File {
    fn missing() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { path: directory.path().join("config"), _directory: directory }
    }

    fn of(text: impl AsRef<[u8]>) -> Self {
        let file = Self::missing();
        fs::write(&file.path, text).unwrap();
        file
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }
}

fn try_install(program: Program, text: &str, entry: &Entry) -> Result<Change, InstallError> {
    install(program, &File::of(text).path, entry)
}

fn installed(program: Program, text: &str, entry: &Entry) -> String {
    let change = try_install(program, text, entry);
    assert!(change.is_ok(), "{text:?}: {}", change.unwrap_err());
    let after = change.unwrap().after;
    let again = try_install(program, &after, entry);
    assert!(again.is_ok(), "{after:?}: {}", again.unwrap_err());
    assert!(again.unwrap().is_empty(), "installed twice: {after:?}");
    after
}

fn uninstalled(program: Program, text: &str) -> String {
    let change = uninstall(program, &File::of(text).path, "tools");
    assert!(change.is_ok(), "{text:?}: {}", change.unwrap_err());
    change.unwrap().after
}

/// The problem, without the path of the file.
fn problem(program: Program, text: &str) -> String {
    match try_install(program, text, &entry()) {
        Err(InstallError::Content { problem, .. }) => problem.to_string(),
        other => panic!("{text:?}: {other:?}"),
    }
}

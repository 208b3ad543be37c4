//! What it understands, and what is left to the large one.

use std::{
    path::Path,
    process::{Command, Output},
};

use gloveport_build_id::BUILD;
use gloveport_provider::program::Beside;

use crate::PROGRAM;

fn run(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).output().unwrap()
}

#[test]
fn its_build_is_read_from_its_file() {
    let beside = Path::new(PROGRAM).with_file_name("gloveport");
    assert!(matches!(Beside::of(&beside, BUILD), Beside::Same(path) if path == Path::new(PROGRAM)));
    let other = BUILD.chars().rev().collect::<String>();
    assert!(matches!(Beside::of(&beside, &other), Beside::Other(_)));
}

#[test]
fn it_has_what_runs_in_a_sandbox_and_nothing_for_people() {
    for command in [
        "action-execution-server",
        "sandbox-server",
        "container-server",
        "container-health",
        "container-install",
        "gate",
    ] {
        let output = run(&[command, "--help"]);
        assert!(output.status.success(), "{command}: {output:?}");
    }
    for command in ["run", "serve", "session", "doctor"] {
        let output = run(&[command]);
        assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
    }
    let version = String::from_utf8(run(&["--version"]).stdout).unwrap();
    assert_eq!(version, format!("gloveport-sandbox {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_server_of_a_sandbox_without_its_provider_says_who_starts_it() {
    let output = run(&["sandbox-server", "--state", "/nowhere"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("is started by the runtime `local`"), "{text}");
}

#[test]
fn it_copies_itself_to_where_another_container_starts_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gloveport");
    let installed = run(&["container-install", file.to_str().unwrap()]);
    assert!(installed.status.success(), "{installed:?}");
    let version = Command::new(&file).arg("--version").output().unwrap();
    assert!(version.status.success(), "{version:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let nowhere = directory.path().join("missing/gloveport");
    let failed = run(&["container-install", nowhere.to_str().unwrap()]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(String::from_utf8_lossy(&failed.stderr).contains("cannot copy"), "{failed:?}");
}

#[test]
fn it_reads_documents_as_a_process_apart() {
    let output = run(&["read-document"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("read-document is started by"), "{output:?}");
}

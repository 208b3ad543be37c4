//! What it understands, and what is left to the large one.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
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
        "owners-work",
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

#[test]
fn a_gate_ends_with_words_if_what_it_is_to_put_into_requests_cannot_be_used() {
    let with = |input: &str| {
        let words = ["gate", "--proxy", "127.0.0.1:0", "--edge-on-input", "--secret-host", "a.test:443"];
        let mut gate = Command::new(PROGRAM);
        let gate = gate.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut gate = gate.spawn().unwrap();
        gate.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        gate.wait_with_output().unwrap()
    };
    for (input, words) in [
        ("{\"secrets\": []}\n", "cannot understand what is put into requests"),
        ("{\"secrets\": [", "it ended before the end of the line"),
    ] {
        let output = with(input);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && text.contains(words), "{input}: {output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    let output = run(&["gate", "--proxy", "127.0.0.1:0", "--edge-on-input"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

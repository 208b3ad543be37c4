//! `gloveport provider` as a user meets it, and both example programs through the whole suite.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::support::{gloveport, text};
use serde_json::Value;

fn example(name: &str) -> String {
    format!("exec:{}", root().join("examples/providers").join(name).display())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The system's own programs first: what people put before them (version managers) may start slowly.
fn path() -> String {
    format!("/usr/bin:/bin:{}", std::env::var("PATH").unwrap())
}

fn provider(home: &Path, arguments: &[&str]) -> Output {
    gloveport(home)
        .env("PATH", path())
        .env("XDG_STATE_HOME", home)
        .env_remove("XDG_RUNTIME_DIR")
        .arg("provider")
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs a part of the suite with an example, which leaves neither processes nor files.
#[track_caller]
fn passes(program: &str, groups: &[&str], skipped: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let junit = home.path().join("junit.xml");
    let name = example(program);
    let mut arguments = vec!["conformance", &name, "--json", "--junit", junit.to_str().unwrap()];
    arguments.extend(groups.iter().flat_map(|group| ["--only", group]));
    let output = provider(home.path(), &arguments);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let checks = report["checks"].as_array().unwrap();
    let failed: Vec<&Value> = checks.iter().filter(|check| check["verdict"] == "fail").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let of = |verdict: &str| -> Vec<&str> {
        checks.iter().filter(|check| check["verdict"] == verdict).filter_map(|check| check["id"].as_str()).collect()
    };
    assert_eq!((of("skip"), output.status.code()), (skipped.to_vec(), Some(0)), "{checks:#?}");
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(of("pass").iter().all(|id| xml.contains(&format!("name=\"{}\"", id.split_once('/').unwrap().1))), "{xml}");

    let state = home.path().join(format!("gloveport-provider-{}", program.split_once('.').unwrap().0));
    let left: Vec<_> = std::fs::read_dir(state).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [".lock"]);
    let backends = std::fs::read_dir(home.path().join("gloveport/backends")).unwrap().count();
    assert_eq!(backends, 0, "files of backends");
    assert_eq!(processes_in(home.path()), Vec::<String>::new());
}

/// The command lines of processes that were started in this home.
fn processes_in(home: &Path) -> Vec<String> {
    let home = home.display().to_string();
    let all = gloveport_sys::process::all().into_iter();
    all.filter_map(gloveport_sys::process::command_line).filter(|line| line.contains(&home)).collect()
}

#[test]
fn the_provider_of_this_machine_passes_the_suite_and_leaves_nothing() {
    passes_here(&[]);
}

#[test]
fn the_provider_of_this_machine_passes_the_suite_when_it_keeps_sandboxes_apart() {
    passes_here(&["--isolation", "files"]);
}

#[test]
fn the_provider_of_this_machine_passes_the_suite_when_sandboxes_are_containers() {
    if crate::sandboxes::has_containers() {
        passes_here(&["--isolation", "container"]);
    }
}

/// The whole suite passes for the provider of this machine, and nothing is left.
fn passes_here(flags: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let output = provider(home.path(), &[&["conformance", "local", "--json"], flags].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let checks = report["checks"].as_array().unwrap().iter();
    let failed: Vec<&Value> = checks.filter(|check| check["verdict"] == "fail").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(report["passed"].as_u64() > Some(40), "{report:#}");
    let state = home.path().join("gloveport/local/sandboxes");
    assert_eq!(std::fs::read_dir(state).unwrap().count(), 0, "directories of sandboxes");
    assert_eq!(processes_in(home.path()), Vec::<String>::new());
}

#[test]
fn sandboxes_of_the_python_provider_live_and_are_found() {
    passes("process.py", &["life/", "found/", "specs/"], &[]);
}

#[test]
fn sandboxes_of_the_python_provider_end_and_are_waited_for() {
    passes("process.py", &["ends/", "waits/"], &[]);
}

#[test]
fn the_python_provider_does_what_it_declares_and_removes_garbage() {
    let skipped = ["optional/processes", "optional/ports", "optional/fork", "optional/warm", "garbage/idle-stop"];
    passes("process.py", &["optional/", "garbage/"], &skipped);
}

#[test]
fn sandboxes_of_the_shell_provider_live_and_are_found() {
    passes("shell.sh", &["life/", "found/", "specs/"], &[]);
}

#[test]
fn sandboxes_of_the_shell_provider_end_and_are_waited_for() {
    passes("shell.sh", &["ends/", "waits/"], &[]);
}

#[test]
fn the_shell_provider_does_what_it_declares_and_removes_garbage() {
    let skipped = [
        "optional/pause",
        "optional/memory",
        "optional/processes",
        "optional/ports",
        "optional/fork",
        "optional/warm",
        "garbage/orphan",
        "garbage/backend-died",
        "garbage/time-to-live",
        "garbage/idle-stop",
    ];
    passes("shell.sh", &["optional/", "garbage/"], &skipped);
}

#[test]
fn sandboxes_of_the_python_provider_end_with_a_backend_that_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let name = example("process.py");
    // The suite is the backend; it is killed while a sandbox lives.
    let mut backend = gloveport(home.path())
        .env("PATH", path())
        .env("XDG_STATE_HOME", home.path())
        .env_remove("XDG_RUNTIME_DIR")
        .args(["provider", "conformance", &name, "--only", "waits/not-yet", "--only", "life/"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let state = home.path().join("gloveport-provider-process");
    let sandboxes =
        || std::fs::read_dir(&state).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()).count();
    let served = || {
        let lines = gloveport_sys::process::all().into_iter().filter_map(gloveport_sys::process::command_line);
        let state = state.display().to_string();
        lines.filter(|line| line.contains(" serve ") && line.contains(&state)).count()
    };
    crate::support::until("a sandbox runs", || served() > 0);
    backend.kill().unwrap();
    backend.wait().unwrap();
    // Whatever its program was doing: what it had made is ended by its watcher or told as garbage.
    crate::support::until("nothing is left", || {
        sandboxes() == 0 || {
            collect(&state, &home.path().join("gloveport/backends"));
            false
        }
    });
    crate::support::until("no server runs", || served() == 0);
}

/// Lets the program collect its garbage, as another backend would.
fn collect(state: &Path, backends: &Path) {
    let program = root().join("examples/providers/process.py");
    let request = serde_json::json!({"protocol": 1, "verb": "collect-garbage", "all": false, "dry_run": false,
        "backend": {"id": "x", "pid": 1, "lock": backends.join("x")}});
    let mut child = Command::new(program)
        .arg("collect-garbage")
        .env("PATH", path())
        .env("GLOVEPORT_PROVIDER_PROCESS_STATE", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), &request).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_checks_are_listed_and_one_that_nobody_has_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let output = provider(home.path(), &["conformance", "--list"]);
    let printed = text(&output.stdout);
    assert!(printed.starts_with("life/first-action ") && printed.lines().count() > 40, "{printed}");
    let output = provider(home.path(), &["conformance", &example("shell.sh"), "--only", "nothing/"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no check has an id that begins so"), "{}", text(&output.stderr));
    let output = provider(home.path(), &["conformance", "nobody"]);
    assert!(text(&output.stderr).contains("there is no runtime `nobody`"), "{}", text(&output.stderr));
}

#[test]
fn a_provider_that_breaks_its_promise_fails_with_what_was_expected() {
    let home = tempfile::tempdir().unwrap();
    // It says that it can label sandboxes and loses the labels.
    let program = home.path().join("gloveport-provider-forgetful");
    let real = root().join("examples/providers/shell.sh");
    let script =
        format!("#!/bin/sh\nexec sh '{}' \"$@\" | sed 's/\"labels\": {{[^}}]*}}/\"labels\": {{}}/'\n", real.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let path = format!("{}:{}", home.path().display(), path());
    let output = gloveport(home.path())
        .env("XDG_STATE_HOME", home.path())
        .env("PATH", &path)
        .args(["provider", "conformance", "forgetful", "--only", "found/labels"])
        .output()
        .unwrap();
    let printed = text(&output.stdout);
    assert!(printed.contains("FAILED  found/labels") && printed.contains("gp-team"), "{printed}");
    assert!(printed.ends_with("0 passed, 1 failed, 0 skipped\n") && output.status.code() == Some(1), "{printed}");
    let output = gloveport(home.path()).env("PATH", &path).args(["provider", "ls"]).output().unwrap();
    assert!(text(&output.stdout).contains("forgetful   works  util-linux"), "{}", text(&output.stdout));
}

#[test]
fn providers_are_listed_with_whether_they_work() {
    let home = tempfile::tempdir().unwrap();
    let name = example("process.py");
    let output = provider(home.path(), &["ls", &name, "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&list[0]["name"], &list[0]["works"]), (&Value::from(name), &Value::from(true)));
    let output = provider(home.path(), &["ls", "exec:/nonexistent"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("fails  cannot run the provider program /nonexistent"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn the_matrix_in_the_documents_is_what_the_providers_declare() {
    const BEGIN: &str = "<!-- matrix -->\n\n";
    let home = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(root().join("docs/providers.md")).unwrap();
    let written = page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once("\n<!-- end -->")).unwrap().0;
    let header = written.lines().next().unwrap();
    let names: Vec<&str> = header.split('`').skip(1).step_by(2).collect();
    let output = gloveport(home.path())
        .current_dir(root())
        .env("XDG_STATE_HOME", home.path())
        .args(["provider", "matrix"])
        .args(&names)
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), written, "copy what `gloveport provider matrix {}` prints", names.join(" "));
    let all = provider(home.path(), &["matrix"]);
    for name in text(&all.stdout).lines().next().unwrap_or_default().split('`').skip(1).step_by(2) {
        assert!(names.contains(&name), "`{name}` is built in and not in the matrix");
    }
}

#[test]
fn a_shell_takes_values_out_of_json() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, input, expected, code) in [
        (&["/a/0"][..], r#"{"a": ["it's"]}"#, "it's\n", 0),
        (&["--quoted", "/a"], r#"{"a": "b\"c"}"#, "\"b\\\"c\"\n", 0),
        (&["/a"], r#"{"a": null}"#, "", 0),
        (&["--export", "/a"], r#"{"a": {"X": "1 '2'"}}"#, "export X='1 '\\''2'\\'''\n", 0),
        (&["/b"], r#"{"a": 1}"#, "", 1),
        (&["/a"], "no json", "", 1),
    ] {
        let mut child = gloveport(home.path())
            .args(["provider", "json"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((text(&output.stdout).as_str(), output.status.code()), (expected, Some(code)), "{arguments:?}");
    }
}

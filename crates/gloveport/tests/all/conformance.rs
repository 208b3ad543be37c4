//! `gloveport conformance` as a user meets it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{net::TcpStream, process::Stdio};

use crate::support::{Server, gloveport, run, text, until};
use serde_json::Value;

/// A server of another protocol, on a free port.
fn other(arguments: &[&str], environment: &[(&str, &str)]) -> Server {
    let home = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = gloveport(home.path());
    command.args(arguments).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    command.env("OH_BASH_EVENTS_DIR", home.path().join("events")).envs(environment.iter().copied());
    command.current_dir(home.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server { child: command.spawn().unwrap(), port, home };
    until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    server
}

fn agent_server(key: Option<&str>) -> Server {
    let environment: Vec<_> = key.into_iter().map(|key| ("OH_SESSION_API_KEYS_0", key)).collect();
    other(&["agent-server"], &environment)
}

fn swerex(token: &str) -> Server {
    other(&["swerex", "--auth-token", token], &[])
}

/// All these checks of a protocol pass, and not by a behaviour that is allowed besides.
#[track_caller]
fn passes(server: &Server, wire: &str, only: &[&str], programs: &[&str]) {
    let url = server.url();
    let mut arguments = vec!["conformance", "--wire", wire, "--url", &url, "--key", "s3cret", "--json"];
    arguments.extend(only.iter().flat_map(|only| ["--only", only]));
    let output = run(&arguments);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() > 20, "only {} checks", checks.len());
    for check in checks {
        // Some checks need a program that this machine may not have.
        let is_missing = |program: &&str| check["reason"] == format!("there is no {program} in the sandbox");
        let is_skipped = check["verdict"] == "skip" && programs.iter().any(is_missing);
        assert!(is_skipped || (check["verdict"] == "pass" && check["deliberate"].is_null()), "{check:#}");
    }
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn our_agent_server_passes_the_checks_of_commands_of_the_sdk() {
    let server = agent_server(Some("s3cret"));
    passes(&server, "sdk", &["{commands,limits,start,stop,chunks}/*"], &[]);
}

#[test]
fn our_agent_server_passes_the_checks_of_files_git_and_hooks_of_the_sdk() {
    let server = agent_server(Some("s3cret"));
    passes(&server, "sdk", &["{upload,download,directories,git,hooks}/*"], &["git"]);
}

#[test]
fn our_agent_server_passes_all_other_checks_of_the_sdk() {
    let server = agent_server(Some("s3cret"));
    let groups = "{details,paths,bodies,keys,origins,sockets,followers,search,events}/*";
    passes(&server, "sdk", &[groups], &[]);
}

#[test]
fn our_server_of_swerex_passes_the_checks_of_sessions() {
    passes(
        &swerex("s3cret"),
        "swerex",
        &["{sessions,commands,exit,syntax,limits,talks,interrupts,close}/*"],
        &["python3"],
    );
}

#[test]
fn our_server_of_swerex_passes_all_other_checks() {
    passes(&swerex("s3cret"), "swerex", &["{info,keys,validation,requests,execute,files,upload}/*"], &[]);
}

#[test]
fn the_groups_of_these_tests_are_all_that_there_are() {
    for (wire, groups) in [
        (
            "sdk",
            "bodies chunks commands details directories download events followers git hooks keys limits origins paths \
             search sockets start stop upload",
        ),
        (
            "swerex",
            "close commands execute exit files info interrupts keys limits requests sessions syntax talks upload validation",
        ),
    ] {
        let output = run(&["conformance", "--wire", wire, "--list"]);
        let printed = text(&output.stdout);
        let mut found: Vec<&str> = printed.lines().map(|line| line.split('/').next().unwrap()).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, groups.split_whitespace().collect::<Vec<_>>(), "{wire}");
    }
}

#[test]
fn a_server_of_another_protocol_is_told_with_the_one_that_it_speaks() {
    let (v0, sdk, rex) = (Server::serve(&[], &[]), agent_server(None), swerex("s3cret"));
    for (server, wire, spoken) in [
        (&v0, "sdk", "v0"),
        (&v0, "swerex", "v0"),
        (&sdk, "v0", "sdk"),
        (&sdk, "swerex", "sdk"),
        (&rex, "sdk", "swerex"),
    ] {
        let output = run(&["conformance", "--wire", wire, "--url", &server.url()]);
        let told = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""), "{wire} {spoken}: {told}");
        assert!(told.contains("does not speak ") && told.ends_with(&format!(": try --wire {spoken}\n")), "{told}");
    }
}

#[test]
fn a_key_that_is_wrong_or_missing_is_told_and_not_shown() {
    let (v0, sdk) = (Server::serve(&[], &[("GLOVEPORT_KEY", "s3cret")]), agent_server(Some("s3cret")));
    let rex = swerex("s3cret");
    for (server, wire, status) in [(&v0, "v0", 403), (&sdk, "sdk", 401), (&rex, "swerex", 401)] {
        let url = server.url();
        let output = run(&["conformance", "--wire", wire, "--url", &url, "--key", "wr0ng"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.ends_with(&format!("{url} refuses the key (status {status})\n")), "{told}");
        assert!(!told.contains("wr0ng"), "{told}");
    }
    let output = run(&["conformance", "--wire", "swerex", "--url", &rex.url()]);
    assert!(text(&output.stderr).contains(" needs a key (status "), "{}", text(&output.stderr));
}

#[test]
fn a_server_without_a_key_fails_where_one_is_promised_and_nothing_is_left_of_a_check() {
    let server = agent_server(None);
    let arguments =
        ["conformance", "--wire", "sdk", "--url", &server.url(), "--key", "x", "--only", "keys/none", "--json"];
    let output = run(&arguments);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report["failed"].as_u64(), output.status.code()), (Some(1), Some(1)));
    assert_eq!(report["checks"][0]["expected"], "status 401");
    // The directory of a run is named as no other is; its name is in the commands that made and removed it.
    let (_, log) = server.request("GET", "/api/bash/bash_events/search?kind__eq=BashCommand", "", "");
    let name = log.split_once("/tmp/gloveport-conformance-").unwrap().1.split(['\'', ' ']).next().unwrap();
    assert_eq!(name.len(), 12, "{log}");
    assert!(!std::path::Path::new("/tmp").join(format!("gloveport-conformance-{name}")).exists(), "{name}");
}

#[test]
fn the_results_are_printed_and_the_exit_code_tells_whether_all_passed() {
    let server = Server::serve(&[], &[("GLOVEPORT_KEY", "s3cret")]);
    let url = server.url();
    let junit = server.home.path().join("junit.xml");
    let file = junit.to_str().unwrap();
    let key = server.home.path().join("key");
    std::fs::write(&key, "s3cret\n").unwrap();
    let key = key.to_str().unwrap();
    let output = run(&["conformance", "--url", &url, "--key-file", key, "--only", "auth/*", "--junit", file]);
    let printed = text(&output.stdout);
    assert!(printed.ends_with("5 passed, 0 failed, 0 skipped\n"), "{printed}{}", text(&output.stderr));
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("<testcase classname=\"auth\" name=\"no-key\" "), "{xml}");

    let open = Server::serve(&[], &[]);
    let output = run(&["conformance", "--url", &open.url(), "--key", "x", "--only", "auth/no-key", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report["failed"].as_u64(), output.status.code()), (Some(1), Some(1)));
    assert_eq!(report["checks"][0]["expected"], "status 403");
}

#[test]
fn the_checks_are_listed_without_a_server() {
    let output = run(&["conformance", "--list", "--only", "auth/*"]);
    let printed = text(&output.stdout);
    assert_eq!((printed.lines().count(), output.status.code()), (5, Some(0)));
    assert!(printed.starts_with("auth/no-key "), "{printed}");
}

#[test]
fn operations_are_saved_and_compared_again() {
    let (one, other) = (Server::serve(&[], &[]), Server::serve(&[], &[]));
    let saved = one.home.path().join("operations.jsonl");
    let (one_url, other_url, file) = (one.url(), other.url(), saved.to_str().unwrap());
    let compare = |words: &[&str]| {
        let arguments: Vec<&str> =
            ["conformance", "--url", &one_url, "--against", &other_url].iter().chain(words).copied().collect();
        run(&arguments)
    };
    let output = compare(&["--random", "40", "--seed", "3", "--save", file]);
    let printed = text(&output.stdout);
    assert!(printed.ends_with("40 passed, 0 failed, 0 skipped\n"), "{printed}{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&saved).unwrap().lines().count(), 40);
    let output = compare(&["--actions", file, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report["same"].as_u64(), report["different"].as_u64()), (Some(40), Some(0)));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn wrong_command_lines_end_with_2_and_a_silent_server_with_1() {
    let url = "http://127.0.0.1:1";
    for arguments in [
        &["conformance"][..],
        &["conformance", "--url", "ftp://x"],
        &["conformance", "--url", url, "--only", "nothing/*"],
        &["conformance", "--url", url, "--only", "[x"],
        &["conformance", "--url", url, "--save", "f"],
        &["conformance", "--url", url, "--against", url, "--actions", "/does/not/exist"],
        &["conformance", "--url", url, "--against", url, "--only", "auth/*"],
        &["conformance", "--wire", "sdk", "--url", url, "--against", url],
        &["conformance", "--wire", "sdk", "--url", url, "--only", "auth/*"],
        &["conformance", "--wire", "v1", "--url", url],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
    }
    let output = run(&["conformance", "--url", url]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).starts_with("gloveport: POST http://127.0.0.1:1/execute_action: "),
        "{}",
        text(&output.stderr)
    );
}

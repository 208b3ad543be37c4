//! `gloveport conformance` as a user meets it.

use crate::support::{Server, run, text};
use serde_json::Value;

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

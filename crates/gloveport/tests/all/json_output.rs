//! Commands print JSON for programs, in one style.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, io::Write as _, path::Path, process::Stdio};

use crate::sessions::Home;
use crate::support::{Server, gloveport, run, text};
use serde_json::{Value, json};

/// The JSON that a command prints, which must succeed, with this input.
#[track_caller]
fn printed(directory: &Path, words: &[&str], input: &str) -> Value {
    let mut command = gloveport(directory);
    command.current_dir(directory).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{words:?} {}", text(&output.stderr));
    let value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(text(&output.stdout), format!("{value:#}\n"), "{words:?}: it is indented for people");
    value
}

#[test]
fn what_was_copied_is_told_as_json() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).display().to_string();
    fs::create_dir_all(home.path().join("tree/inner")).unwrap();
    fs::write(home.path().join("tree/one"), "123").unwrap();
    fs::write(home.path().join("tree/inner/two"), "12345").unwrap();
    fs::create_dir(home.path().join("into")).unwrap();
    let copied = |words: &[&str], input: &str| printed(home.path(), &[&["cp", "--json"], words].concat(), input);
    assert_eq!(copied(&["tree", "copy"], ""), json!({"destination": "copy", "files": 2, "bytes": 8}));
    assert_eq!(copied(&["tree/one", "into"], ""), json!({"destination": "into/one", "files": 1, "bytes": 3}));
    assert_eq!(copied(&["-", "stored"], "text"), json!({"destination": "stored", "files": 1, "bytes": 4}));

    let server = Server::serve(&[], &[]);
    let url = server.url();
    let there = |words: &[&str], input: &str| copied(&[&["--url", url.as_str()], words].concat(), input);
    let inside = |name: &str| server.home.path().join(name).display().to_string();
    assert_eq!(there(&["tree", ":up"], ""), json!({"destination": "up", "files": 2, "bytes": 8}));
    let (file, copy) = (format!(":{}", inside("file")), at("file"));
    assert_eq!(there(&["tree/one", &file], ""), json!({"destination": inside("file"), "files": 1, "bytes": 3}));
    assert_eq!(there(&["-", &file], "1234567"), json!({"destination": inside("file"), "files": 1, "bytes": 7}));
    assert_eq!(there(&[&file, &copy], ""), json!({"destination": copy, "files": 1, "bytes": 7}));
    assert_eq!(there(&[":up", "down"], ""), json!({"destination": "down", "files": 2, "bytes": 8}));

    let home = Home::new();
    home.start("mine");
    fs::write(home.path().join("notes"), "12").unwrap();
    let told: Value = serde_json::from_str(&home.ok(&["cp", "--json", "notes", "mine:notes"])).unwrap();
    assert_eq!(told, json!({"destination": "notes", "files": 1, "bytes": 2}));
    let (code, told) = home.failed(&["cp", "--json", "mine:notes", "-"]);
    assert!(code == 2 && told.contains("both go to standard output"), "{code} {told}");
    home.ok(&["rm", "-f", "mine"]);
}

#[test]
fn a_copy_that_fails_is_no_json_and_streams_are_not_mixed_with_it() {
    let output = run(&["cp", "--json", "/no/such/file", "/tmp/x"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("", Some(1)));
    assert!(text(&output.stderr).contains("/no/such/file"), "{}", text(&output.stderr));
    let output = run(&["cp", "--json", "/etc/hostname", "-"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("", Some(2)));
    assert!(text(&output.stderr).contains("'--json' cannot be used with the destination '-'"));
}

#[test]
fn what_was_written_is_told_as_an_observation() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("new").display().to_string();
    for words in
        [&["write", "--json", "new", "--text", "a\nb\n"][..], &["write", "--json", "new", "-n", "2", "--text", "c"]]
    {
        let observation = printed(home.path(), words, "");
        assert_eq!(observation["observation"], "write", "{words:?}");
        assert_eq!(observation["extras"]["path"], path, "{words:?}");
    }
    assert_eq!(fs::read_to_string(home.path().join("new")).unwrap(), "a\nc\n");
    let server = Server::serve(&[], &[]);
    let there = server.home.path().join("there").display().to_string();
    let observation = printed(home.path(), &["write", "--json", "--url", &server.url(), &there], "text");
    assert_eq!((observation["observation"].as_str(), &observation["extras"]["path"]), (Some("write"), &json!(there)));
}

#[test]
fn logs_are_objects_of_lines() {
    let home = Home::new();
    home.start("mine");
    let sandbox = home.left().into_iter().find(|name| name.starts_with("sandboxes/")).unwrap();
    let mut log =
        fs::OpenOptions::new().append(true).create(true).open(home.state().join(sandbox).join("log")).unwrap();
    log.write_all(b"first\nthe \"second\"\n").unwrap();
    let plain = home.ok(&["logs", "mine"]);
    let lines = home.ok(&["logs", "--json", "mine"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(plain.ends_with("first\nthe \"second\"\n"), "{plain}");
    let expected: Vec<Value> = plain.lines().map(|line| json!({"line": line})).collect();
    assert_eq!(lines, expected);
    home.ok(&["rm", "-f", "mine"]);
}

#[test]
fn the_schema_is_json_with_the_flag_and_without() {
    let [with, without] = [&["config", "schema", "--json"][..], &["config", "schema"]].map(run);
    assert_eq!(with.stdout, without.stdout);
    assert!(serde_json::from_slice::<Value>(&with.stdout).unwrap()["properties"].is_object());
}

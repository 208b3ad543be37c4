//! Risky operations of sessions are asked about at the terminal, and never without one.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    process::{Command, Output},
};

use crate::sessions::{Home, person::Person};
use crate::support::{text, with_home};
use serde_json::Value;

/// Rated as high, and harmless: it never begins.
const RISKY: &str = "false && git push --force; echo ran";
/// Rated as high. It is given only where nothing may run; and where it did, `rm` refuses to delete the root.
const DELETES_ALL: &str = "rm -rf /";

/// A home whose configuration has this section, with a session of this id.
fn home(security: &str, id: &str) -> Home {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), format!("[security]\n{security}\n")).unwrap();
    home.start(id);
    home
}

fn asking(id: &str) -> Home {
    home("confirmation_mode = true\nsecurity_analyzer = \"rules\"", id)
}

/// `gloveport` with these words and without a terminal, wherever the tests are started.
fn without_terminal(home: &Home, words: &[&str]) -> Output {
    let mut command = Command::new("setsid");
    command.args(["--wait", env!("CARGO_BIN_EXE_gloveport")]).args(words);
    with_home(command, home.path()).env_remove("XDG_STATE_HOME").current_dir(home.path()).output().unwrap()
}

/// What each event is: its kind, its state, its cause.
fn told(events: &[Value]) -> Vec<(&str, &str, Option<u64>)> {
    let kind = |event: &Value, name: &str| event[name].as_str().map(|_| ());
    events
        .iter()
        .map(|event| {
            let name = if kind(event, "action").is_some() { "action" } else { "observation" };
            let state = event["args"]["confirmation_state"]
                .as_str()
                .or(event["confirmation_state"].as_str())
                .or(event["extras"]["agent_state"].as_str());
            (event[name].as_str().unwrap(), state.unwrap_or_default(), event["cause"].as_u64())
        })
        .collect()
}

#[tokio::test]
async fn a_risky_command_is_asked_about_at_the_terminal_and_the_history_has_question_and_answer() {
    let home = asking("ask");
    let mut person = Person::calls(&home, &["session", "exec", "ask", "--", RISKY]);
    person.sees("gloveport: this command is risky (risk high):").await;
    person.sees(&format!("    {RISKY}\r\n")).await;
    person.sees("  force-push: `git push --force` overwrites the history of a remote repository").await;
    person.sees("Go on? [y/N] ").await;
    person.types("y\r").await;
    person.sees("\nran\r\n").await;
    person.sees("code 0").await;
    let events = home.events("ask");
    let expected = [
        ("run", "awaiting_confirmation", None),
        ("agent_state_changed", "awaiting_user_confirmation", Some(0)),
        ("run", "confirmed", None),
        ("run", "", Some(2)),
    ];
    assert_eq!(told(&events), expected);
    assert_eq!((&events[2]["source"], &events[3]["content"]), (&"user".into(), &"ran".into()));
    assert!(events[1]["extras"]["reason"].as_str().unwrap().starts_with("force-push: "), "{}", events[1]);
    // What is harmless is not asked about.
    assert_eq!(home.exec("ask", "echo harmless"), (Some(0), "harmless\n".to_owned()));
}

#[tokio::test]
async fn a_no_an_empty_answer_and_c_c_refuse_the_command_which_never_begins() {
    let home = asking("no");
    for answer in ["n\r", "\r", "yesterday\r", "\x04", "\x03"] {
        let before = home.events("no").len();
        let mut person = Person::calls(&home, &["session", "exec", "no", "--", DELETES_ALL]);
        person.sees("delete-root: `rm -rf /` deletes the root of the file system").await;
        person.sees("Go on? [y/N] ").await;
        person.types(answer).await;
        person.sees("gloveport: not done: it was refused\r\n").await;
        person.sees("code 77").await;
        let events = home.events("no").split_off(before);
        let number = |offset: usize| Some(u64::try_from(before + offset).unwrap());
        let expected = [
            ("run", "awaiting_confirmation", None),
            ("agent_state_changed", "awaiting_user_confirmation", number(0)),
            ("run", "rejected", None),
            ("user_rejected", "", number(2)),
        ];
        assert_eq!(told(&events), expected, "{answer:?}");
    }
    assert_eq!(home.ok(&["ps", "--all", "--json", "no"]).trim(), "[]", "a command was started");
}

#[test]
fn without_a_terminal_nothing_is_asked_and_what_would_have_to_be_confirmed_is_refused() {
    let home = asking("none");
    let output = without_terminal(&home, &["session", "exec", "none", "--", DELETES_ALL]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(77), ""));
    let error = text(&output.stderr);
    assert!(error.contains("there is no terminal to ask at") && error.contains("delete-root: "), "{error}");
    assert_eq!(told(&home.events("none")), [("run", "rejected", None), ("error", "", Some(0))]);

    let output = without_terminal(&home, &["session", "exec", "--deny", "none", "--", DELETES_ALL]);
    assert_eq!(output.status.code(), Some(77));
    assert!(text(&output.stderr).contains("not done: it was refused"), "{}", text(&output.stderr));
    assert_eq!(told(&home.events("none"))[4..], [("run", "rejected", None), ("user_rejected", "", Some(4))]);

    let output = without_terminal(&home, &["session", "exec", "--json", "--deny", "none", "--", DELETES_ALL]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &printed["observation"]), (Some(77), &"user_rejected".into()));
    assert_eq!(home.ok(&["ps", "--all", "--json", "none"]).trim(), "[]", "a command was started");

    let output = without_terminal(&home, &["session", "exec", "--yes", "none", "--", RISKY]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "ran\n"));
    let events = home.events("none");
    let last = &told(&events)[events.len() - 2..];
    assert_eq!(last, [("run", "confirmed", None), ("run", "", Some(u64::try_from(events.len()).unwrap() - 2))]);
    assert_eq!(home.failed(&["exec", "--yes", "--deny", "none", "true"]).0, 2);
}

#[test]
fn every_way_to_run_something_is_asked_about() {
    let home = asking("all");
    let deny = |words: &[&str]| {
        let output = without_terminal(&home, words);
        assert_eq!(output.status.code(), Some(77), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("gloveport: not done: "), "{words:?}: {}", text(&output.stderr));
    };
    deny(&["session", "exec", "-d", "all", "--", DELETES_ALL]);
    deny(&["session", "exec", "-t", "all", "--", DELETES_ALL]);
    deny(&["session", "exec", "--cwd", "/", "all", "--", DELETES_ALL]);
    deny(&["session", "exec", "--no-history", "all", "--", DELETES_ALL]);
    deny(&["run", "--runtime", "local", "--", DELETES_ALL]);
    deny(&["run", "--runtime", "local", "--deny", "--", DELETES_ALL]);
    fs::write(home.path().join("key"), "ssh-ed25519 AAAA").unwrap();
    // A file of the system, at a path where there can be none.
    deny(&["session", "cp", "key", "all:/etc/passwd/key"]);
    deny(&["session", "cp", "--deny", "key", "all:/etc/passwd/key"]);
    assert_eq!(home.ok(&["ps", "--all", "--json", "all"]).trim(), "[]", "a command was started");
    // Only what was not to be left out is in the history.
    assert_eq!(home.events("all").iter().filter(|event| event["action"] == "run").count(), 3);
    assert_eq!(home.events("all").iter().filter(|event| event["observation"] == "user_rejected").count(), 1);
    let elsewhere = without_terminal(&home, &["run", "--deny", "true"]);
    assert_eq!(elsewhere.status.code(), Some(2), "{}", text(&elsewhere.stderr));
}

#[test]
fn without_confirmation_mode_the_rules_refuse_and_say_so_and_without_a_section_nothing_is_rated() {
    let home = home("security_analyzer = \"rules\"", "rules");
    let output = without_terminal(&home, &["session", "exec", "--yes", "rules", "--", DELETES_ALL]);
    assert_eq!(output.status.code(), Some(77));
    assert!(text(&output.stderr).contains("`confirmation_mode = true` in [security]"), "{}", text(&output.stderr));
    assert_eq!(told(&home.events("rules")), [("run", "rejected", None), ("error", "", Some(0))]);
    fs::remove_file(home.path().join("config.toml")).unwrap();
    assert_eq!(home.exec("rules", RISKY), (Some(0), "ran\n".to_owned()));
    assert_eq!(home.events("rules")[2]["args"]["security_risk"], -1);
}

#[test]
fn what_is_detached_and_what_is_copied_is_in_the_history_without_what_it_contains() {
    let home = Home::new();
    home.start("kept");
    let id = home.ok(&["exec", "-d", "kept", "true"]);
    fs::write(home.path().join("notes"), "a secret word").unwrap();
    home.ok(&["cp", "notes", "kept:there"]);
    home.ok(&["cp", "kept:there", "back"]);
    assert_eq!(home.failed(&["cp", "kept:missing", "back"]).0, 1);
    home.ok(&["cp", "--no-history", "notes", "kept:other"]);
    let events = home.events("kept");
    let kinds: Vec<_> = told(&events).iter().map(|(kind, _, cause)| (*kind, *cause)).collect();
    let expected = [
        ("run", None),
        ("run", Some(0)),
        ("write", None),
        ("write", Some(2)),
        ("read", None),
        ("read", Some(4)),
        ("read", None),
        ("error", Some(6)),
    ];
    assert_eq!(kinds, expected);
    let started = format!("started as {}", id.trim());
    assert!(events[1]["extras"]["metadata"]["suffix"].as_str().unwrap().contains(&started), "{}", events[1]);
    assert_eq!((&events[2]["args"]["path"], &events[4]["args"]["path"]), (&"there".into(), &"there".into()));
    assert!(!events.iter().any(|event| event.to_string().contains("a secret word")));
    assert_eq!(fs::read_to_string(home.path().join("back")).unwrap(), "a secret word");
}

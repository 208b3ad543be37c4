//! Files of sessions: shown, written and changed as operations, which are rated, asked about and in the history.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use crate::sessions::{Home, person::Person};
use crate::support::{text, with_home};
use serde_json::Value;

/// A home with this section [security], and a session that works in a directory of this machine, which is given, too.
fn home(security: &str, id: &str) -> (Home, PathBuf) {
    let home = Home::new();
    if !security.is_empty() {
        fs::write(home.path().join("config.toml"), format!("[security]\n{security}\n")).unwrap();
    }
    let work = home.path().canonicalize().unwrap().join("work");
    fs::create_dir(&work).unwrap();
    home.ok(&["start", "--id", id, "--workspace", "work"]);
    (home, work)
}

/// `gloveport session` with these words, this input, and no terminal.
fn without_terminal(home: &Home, words: &[&str], input: &str) -> Output {
    let mut command = Command::new("setsid");
    command.args(["--wait", env!("CARGO_BIN_EXE_gloveport"), "session"]).args(words);
    let mut command = with_home(command, home.path());
    command.env_remove("XDG_STATE_HOME").current_dir(home.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that reads nothing closes the pipe.
    let _nobody_reads = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// What each event is: its kind and its cause.
fn kinds(events: &[Value]) -> Vec<(&str, Option<u64>)> {
    let kind = |event: &Value| event["action"].as_str().is_some();
    let name = |event: &Value| if kind(event) { "action" } else { "observation" };
    events.iter().map(|event| (event[name(event)].as_str().unwrap(), event["cause"].as_u64())).collect()
}

#[test]
fn a_file_of_a_session_is_written_shown_and_changed_and_the_history_has_what_an_agent_would_see() {
    let (home, work) = home("", "f");
    let path = work.join("notes/a.txt");
    let name = path.to_str().unwrap();
    assert_eq!(home.ok(&["write", "f", "notes/a.txt", "--text", "one\ntwo\nthree\n"]), "");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    let head = format!("Here's the result of running `cat -n` on {name}:\n");
    assert_eq!(home.ok(&["view", "f", "notes/a.txt", "-n", "2:"]), format!("{head}     2\ttwo\n     3\tthree\n"));
    assert_eq!(home.ok(&["view", "f", name, "--raw", "-n", "2"]), "two\n");
    let change = |hunk: &str| format!("--- {name}\n+++ {name}\n{hunk}\n");
    let replaced = home.ok(&["edit", "f", "replace", "notes/a.txt", "--old", "two", "--new", "TWO"]);
    assert_eq!(replaced, change("@@ -2 +2 @@\n-two\n+TWO"));
    let words = ["edit", "f", "insert", "notes/a.txt", "--line", "0", "--text", "-"];
    assert_eq!(text(&without_terminal(&home, &words, "zero\n").stdout), change("@@ -0,0 +1 @@\n+zero"));
    home.ok(&["edit", "f", "undo", "notes/a.txt"]);
    home.ok(&["edit", "f", "create", "new", "--text", "made"]);
    assert!(without_terminal(&home, &["write", "f", "notes/a.txt", "-n", "3"], "3\n").status.success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\nTWO\n3\n");

    let events = home.events("f");
    let expected = ["write", "read", "read", "edit", "edit", "edit", "edit", "write"];
    assert_eq!(events.len(), 2 * expected.len());
    for (at, kind) in expected.iter().enumerate() {
        let number = u64::try_from(2 * at).unwrap();
        assert_eq!(kinds(&events[2 * at..2 * at + 2]), [(*kind, None), (*kind, Some(number))]);
        assert_eq!((&events[2 * at]["source"], &events[2 * at + 1]["source"]), (&"user".into(), &"user".into()));
        let named = if *kind == "edit" && at == 6 { work.join("new") } else { path.clone() };
        assert_eq!(events[2 * at]["args"]["path"], named.to_str().unwrap(), "{at}");
    }
    assert_eq!(events[0]["args"]["content"], "one\ntwo\nthree");
    assert_eq!(
        (&events[2]["args"]["view_range"], &events[2]["args"]["impl_source"]),
        (&[2, -1].into(), &"oh_aci".into())
    );
    assert_eq!(events[3]["content"], format!("{head}     2\ttwo\n     3\tthree\n"));
    assert_eq!(events[5]["content"], "two\n");
    assert_eq!((&events[6]["args"]["old_str"], &events[6]["args"]["new_str"]), (&"two".into(), &"TWO".into()));
    assert!(events[7]["extras"]["diff"].as_str().unwrap().contains("-two\n+TWO"), "{}", events[7]);
    assert_eq!(events[10]["args"]["command"], "undo_edit");
    assert_eq!((&events[14]["args"]["start"], &events[14]["args"]["end"]), (&2.into(), &3.into()));
}

#[test]
fn json_is_the_observation_with_its_cause_and_no_history_leaves_it_out() {
    let (home, work) = home("", "j");
    let json = |words: &[&str]| serde_json::from_str::<Value>(&home.ok(words)).unwrap();
    let written = json(&["write", "j", "a", "--text", "text\n", "--json"]);
    let path = work.join("a");
    assert_eq!((&written["observation"], &written["cause"]), (&"write".into(), &0.into()));
    assert_eq!(written["extras"]["path"], path.to_str().unwrap());
    let read = json(&["view", "j", "a", "--raw", "--json"]);
    assert_eq!((&read["observation"], &read["content"], &read["cause"]), (&"read".into(), &"text\n".into(), &2.into()));
    let edited = json(&["edit", "j", "replace", "a", "--old", "text", "--new", "new", "--json"]);
    assert_eq!((&edited["observation"], &edited["cause"]), (&"edit".into(), &4.into()));
    assert_eq!(home.events("j").len(), 6);

    for words in [
        &["write", "--no-history", "j", "b", "--text", "x"][..],
        &["view", "--no-history", "j", "b"],
        &["edit", "j", "replace", "b", "--old", "x", "--new", "y", "--no-history"],
    ] {
        home.ok(words);
    }
    let read = json(&["view", "j", "b", "--raw", "--json", "--no-history"]);
    assert_eq!((&read["content"], &read["cause"]), (&"y".into(), &Value::Null));
    assert_eq!(home.events("j").len(), 6);
}

#[test]
fn large_and_binary_contents_are_in_the_history_as_agents_see_them_or_with_a_word() {
    let (home, work) = home("", "l");
    fs::write(home.path().join("binary"), b"\x89PNG\0\xff").unwrap();
    home.ok(&["write", "l", "picture", "--text", "@binary"]);
    assert_eq!(fs::read(work.join("picture")).unwrap(), b"\x89PNG\0\xff");
    let long = "a line of it\n".repeat(10_000);
    fs::write(work.join("long"), &long).unwrap();
    assert_eq!(home.ok(&["view", "l", "long", "--raw"]), long);
    let events = home.events("l");
    let kept = "[6 bytes that are not UTF-8 text; the history does not keep what it contains]";
    assert_eq!(events[0]["args"]["content"], kept);
    let content = events[3]["content"].as_str().unwrap();
    assert!(content.len() < 31_000 && content.contains("truncated due to length"), "{}", content.len());
}

#[test]
fn the_secrets_of_a_session_are_masked_in_what_the_history_has_of_its_files() {
    let home = Home::new();
    let mut start = home.command(&["start", "--id", "s", "--secret", "TOKEN"]);
    assert!(start.env("TOKEN", "hunter2-hunter2").output().unwrap().status.success());
    home.ok(&["write", "s", "a", "--text", "the hunter2-hunter2 word\n"]);
    assert_eq!(home.ok(&["view", "s", "a", "--raw"]), "the hunter2-hunter2 word\n");
    home.ok(&["edit", "s", "replace", "a", "--old", "hunter2-hunter2", "--new", "other"]);
    let events = home.events("s");
    assert_eq!(events.len(), 6);
    assert!(!events.iter().any(|event| event.to_string().contains("hunter2")), "{events:?}");
    assert_eq!(events[0]["args"]["content"], "the <secret_hidden> word");
    assert_eq!(events[3]["content"], "the <secret_hidden> word\n");
    assert_eq!(events[4]["args"]["old_str"], "<secret_hidden>");
}

#[test]
fn what_is_refused_changes_nothing_and_the_history_says_so() {
    let (home, work) = home("confirmation_mode = true", "no");
    fs::write(work.join("a"), "as it was\n").unwrap();
    let edit = ["edit", "no", "replace", "a", "--old", "was", "--new", "is"];
    for (words, reason) in [
        (&edit[..], "there is no terminal to ask at"),
        (&[&edit[..], &["--deny"]].concat(), "it was refused"),
        (&["view", "no", "a"], "there is no terminal to ask at"),
        (&["view", "no", "a", "--deny"], "it was refused"),
    ] {
        let output = without_terminal(&home, words, "");
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(77), ""), "{words:?}");
        let told = text(&output.stderr);
        assert!(told.contains("gloveport: not done: ") && told.contains(reason), "{words:?}: {told}");
    }
    let refused = without_terminal(&home, &[&edit[..], &["--deny", "--json"]].concat(), "");
    let printed: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!((refused.status.code(), &printed["observation"]), (Some(77), &"user_rejected".into()));
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "as it was\n");
    let events = home.events("no");
    assert_eq!(kinds(&events)[..2], [("edit", None), ("error", Some(0))]);
    assert_eq!(events[0]["confirmation_state"], "rejected");
    assert!(!events.iter().any(|event| event["observation"] == "edit" || event["observation"] == "read"));

    let done = without_terminal(&home, &[&edit[..], &["--yes"]].concat(), "");
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "as it is\n");
    assert_eq!(home.events("no").last().unwrap()["observation"], "edit");

    // The rules rate what is written, too: a file of the system, at a path where there can be none.
    let rules = "[security]\nconfirmation_mode = true\nsecurity_analyzer = \"rules\"\n";
    fs::write(home.path().join("config.toml"), rules).unwrap();
    for words in [&["write", "no", "/etc/passwd/x"][..], &["write", "no", "/etc/passwd/x", "-n", "1"]] {
        let output = without_terminal(&home, words, "text");
        assert_eq!(output.status.code(), Some(77), "{words:?}: {}", text(&output.stderr));
    }
    assert!(without_terminal(&home, &["write", "no", "b"], "harmless").status.success());
    assert_eq!(fs::read_to_string(work.join("b")).unwrap(), "harmless");
}

#[tokio::test]
async fn a_change_is_asked_about_at_the_terminal_also_if_its_text_came_from_standard_input() {
    let (home, work) = home("confirmation_mode = true", "ask");
    fs::write(work.join("a"), "one\n").unwrap();
    let script = ["session", "edit", "ask", "replace", "a", "--old", "one", "--new", "two"];
    let mut person = Person::calls(&home, &script);
    person.sees("gloveport: changing this file needs your confirmation").await;
    person.sees(&format!("    {}\r\n", work.join("a").display())).await;
    person.sees("Go on? [y/N] ").await;
    person.types("y\r").await;
    person.sees("+two").await;
    person.sees("code 0").await;
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "two\n");
    let expected = [("edit", None), ("agent_state_changed", Some(0)), ("edit", None), ("edit", Some(2))];
    assert_eq!(kinds(&home.events("ask")), expected);
    let mut person = Person::calls(&home, &script);
    person.sees("Go on? [y/N] ").await;
    person.types("\x03").await;
    person.sees("code 77").await;
}

#[test]
fn wrong_use_of_the_file_commands_is_told_in_the_words_of_the_person_and_changes_nothing() {
    let (home, work) = home("", "w");
    fs::write(work.join("a"), "one\n").unwrap();
    fs::write(work.join("binary"), b"\x89PNG\0\xff").unwrap();
    for (words, code, expected) in [
        (&["view", "w", "missing"][..], 1, "missing does not exist"),
        (&["view", "w", "binary"], 1, "it is a binary file"),
        (&["view", "w", "a", "-n", "10:20"], 1, "there is no line 10: the file ends with line 1"),
        (&["view", "w", "a", "-n", "0"], 2, "counted from 1"),
        (&["view", "w"], 2, "<PATH>"),
        (&["view", "nobody", "a"], 1, "there is no session or sandbox `nobody`"),
        (&["write", "w", "a", "--text", "@missing"], 1, "cannot read the text from missing"),
        (&["write", "w", "a", "-n", "5:3", "--text", "x"], 2, "comes after the last"),
        (&["write", "w", "a/b", "--text", "x"], 1, "File exists"),
        (&["write", "nobody", "a", "--text", "x"], 1, "there is no session"),
        (&["edit", "w", "replace", "a", "--old", "zz", "--new", "x"], 1, "does not contain the text `zz`"),
        (&["edit", "w", "replace", "a", "--old", "-", "--new", "-"], 1, "only one text can come from standard input"),
        (&["edit", "w", "insert", "a", "--line", "9", "--text", "x"], 1, "there is no line 9"),
        (&["edit", "w", "create", "a", "--text", "x"], 1, "a exists already; `write` replaces it"),
        (&["edit", "w", "undo", "a"], 1, "No edit history"),
        (&["edit", "w"], 2, "Usage"),
        (&["edit", "replace", "a", "--old", "x", "--new", "y"], 2, "<ID>"),
        (&["edit", "nobody", "undo", "a"], 1, "there is no session"),
        (&["view", "--yes", "--deny", "w", "a"], 2, "cannot be used with"),
    ] {
        let output = without_terminal(&home, words, "");
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
        assert!(told.contains(expected), "{words:?}: {told}");
    }
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "one\n");
    // What was tried is in the history with what came of it; a wrong command line is not.
    let events = home.events("w");
    assert_eq!(kinds(&events)[..2], [("read", None), ("read", Some(0))]);
    let failed: Vec<_> = events.iter().filter(|event| event["content"].to_string().contains("It failed: ")).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let attempt = usize::try_from(failed[0]["cause"].as_u64().unwrap()).unwrap();
    assert_eq!(events[attempt]["args"]["path"], work.join("a/b").to_str().unwrap());
    home.ok(&["pause", "w"]);
    let (code, told) = home.failed(&["view", "w", "a"]);
    assert!(code == 1 && told.contains("is paused; resume it"), "{told}");
}

#[test]
fn the_history_of_a_session_can_be_executed_once_more() {
    let (home, work) = home("", "again");
    home.ok(&["write", "again", "a", "--text", "one\n"]);
    home.ok(&["edit", "again", "replace", "a", "--old", "one", "--new", "two"]);
    home.exec("again", "echo three >> b; cat b");
    fs::write(home.path().join("copied"), "of this machine").unwrap();
    home.ok(&["cp", "copied", "again:copied"]);
    let events = home.ok(&["events", "--json", "again"]);
    fs::write(home.path().join("events"), events).unwrap();
    for name in ["a", "copied"] {
        fs::remove_file(work.join(name)).unwrap();
    }
    let mut replay = crate::support::gloveport(home.path());
    let output = replay.args(["replay", "events", "--cwd", "work"]).current_dir(home.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.ends_with("[not executed: the history does not keep what it contains]\n"), "{shown}");
    assert!(shown.contains("$ echo three >> b; cat b\nthree\nthree\n"), "{shown}");
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "two\n");
    assert!(!work.join("copied").exists());
}

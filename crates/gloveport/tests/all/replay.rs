//! A recorded trajectory is executed once more.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path, process::Output};

use crate::support::{Server, gloveport, text};
use serde_json::{Value, json};

/// A conversation as OpenHands saves it: its observations and numbers are those of another time.
fn trajectory() -> Value {
    json!([
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Make it work."}},
        {"id": 1, "source": "environment", "action": "change_agent_state", "args": {"agent_state": "running"}},
        {"id": 2, "source": "agent", "action": "write", "args": {"path": "greeting.txt", "content": "hello"}},
        {"id": 3, "source": "agent", "cause": 2, "observation": "write", "content": "", "extras": {"path": "greeting.txt"}},
        {"id": 4, "source": "agent", "action": "run", "args": {"command": "cat greeting.txt; (exit 3)"}},
        {"id": 5, "source": "agent", "cause": 4, "observation": "run", "content": "old", "extras": {"command": "x"}},
        {"id": 6, "source": "agent", "action": "think", "args": {"thought": "Done."}},
        {"id": 7, "source": "agent", "action": "finish", "args": {}},
    ])
}

fn replay(home: &Path, arguments: &[&str]) -> Output {
    let file = home.join("trajectory.json");
    fs::write(&file, trajectory().to_string()).unwrap();
    gloveport(home).current_dir(home).arg("replay").arg(&file).args(arguments).output().unwrap()
}

#[test]
fn a_trajectory_is_shown_as_it_happens_again() {
    let home = tempfile::tempdir().unwrap();
    let output = replay(home.path(), &[]);
    let expected = "[message] Make it work.\n\
                    [write] Writing file: greeting.txt\n\
                    $ cat greeting.txt; (exit 3)\n\
                    hello\n\
                    [exit code 3]\n\
                    [think] I am thinking...: Done.\n\
                    Your thought has been logged.\n\
                    [finish] All done! What's next on the agenda?\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    assert!(output.status.success());
    // It worked in a directory of its own.
    assert!(!home.path().join("greeting.txt").exists());
    assert!(!home.path().join(".bashrc").exists());
}

#[test]
fn an_action_that_was_refused_is_not_executed_and_the_person_is_told() {
    let home = tempfile::tempdir().unwrap();
    let events = json!([
        {"id": 0, "source": "agent", "action": "run", "args": {"command": "touch refused", "confirmation_state": "confirmed"}},
        {"id": 1, "source": "agent", "observation": "user_rejected", "content": "too risky", "cause": 0},
        {"id": 2, "source": "agent", "action": "run", "args": {"command": "touch allowed"}},
        {"id": 3, "source": "agent", "observation": "run", "content": "", "extras": {"command": "x"}, "cause": 2},
    ]);
    fs::write(home.path().join("trajectory.json"), events.to_string()).unwrap();
    let mut command = gloveport(home.path());
    let output =
        command.current_dir(home.path()).args(["replay", "trajectory.json", "--cwd", "work"]).output().unwrap();
    assert!(!output.status.success(), "a directory that is not there is an error");
    fs::create_dir(home.path().join("work")).unwrap();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("[not executed: it was refused]"), "{}", text(&output.stdout));
    assert!(home.path().join("work/allowed").exists() && !home.path().join("work/refused").exists());
}

#[test]
fn a_replay_in_a_fresh_sandbox_of_a_runtime_leaves_nothing_of_it() {
    let home = tempfile::tempdir().unwrap();
    for (flags, kept) in [
        (&["--runtime", "local"][..], None),
        (&["--runtime", "cli"], None),
        (&["--runtime", "local", "--cwd", "work"], Some("work/greeting.txt")),
        (&["--runtime", "cli", "--cwd", "work"], Some("work/greeting.txt")),
    ] {
        fs::create_dir_all(home.path().join("work")).unwrap();
        let output = replay(home.path(), flags);
        assert!(output.status.success(), "{flags:?} {}", text(&output.stderr));
        let shown = text(&output.stdout);
        assert!(shown.contains("$ cat greeting.txt; (exit 3)\nhello\n[exit code 3]\n"), "{flags:?} {shown}");
        if let Some(file) = kept {
            assert_eq!(fs::read_to_string(home.path().join(file)).unwrap().trim_end(), "hello", "{flags:?}");
        }
        fs::remove_dir_all(home.path().join("work")).unwrap();
        let left = gloveport(home.path()).args(["session", "ls", "-q"]).output().unwrap();
        assert_eq!(text(&left.stdout), "", "{flags:?}");
    }
}

#[test]
fn cells_are_replayed_in_a_fresh_sandbox_with_a_kernel() {
    let home = tempfile::tempdir().unwrap();
    let python = gloveport_testing::python();
    let environment = python.parent().and_then(Path::parent).unwrap().display();
    let config = format!("[sandbox]\nruntime_startup_env_vars = {{ VIRTUAL_ENV = \"{environment}\" }}\n");
    fs::write(home.path().join("config.toml"), config).unwrap();
    let cell =
        |id: u64, code: &str| json!({"id": id, "source": "agent", "action": "run_ipython", "args": {"code": code}});
    fs::write(home.path().join("cells.json"), json!([cell(0, "x = 41"), cell(1, "x + 1")]).to_string()).unwrap();
    let words = ["replay", "cells.json", "--runtime", "local", "--json"];
    let output = gloveport(home.path()).current_dir(home.path()).args(words).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let events: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.iter().rfind(|event| event["observation"] == "run_ipython").unwrap();
    assert!(last["content"].as_str().unwrap().starts_with("42"), "{last}");
}

#[test]
fn a_replay_leaves_the_settings_of_the_user_alone_in_whichever_runtime() {
    let home = tempfile::tempdir().unwrap();
    let events = json!([
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Go."}},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "echo \"[$A]\""}},
    ]);
    fs::write(home.path().join("trajectory.json"), events.to_string()).unwrap();
    fs::write(home.path().join(".bashrc"), "# mine\n").unwrap();
    fs::write(home.path().join(".gitconfig"), "[user]\n\tname = Me\n").unwrap();
    for (flags, shown) in [(&[][..], "[]"), (&["--runtime", "local"], "[b]"), (&["--runtime", "cli"], "[]")] {
        let mut command = gloveport(home.path());
        command.current_dir(home.path()).args(["replay", "trajectory.json"]).args(flags).env("SANDBOX_ENV_A", "b");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{flags:?} {}", text(&output.stderr));
        assert!(text(&output.stdout).contains(shown), "{flags:?} {}", text(&output.stdout));
        assert_eq!(fs::read_to_string(home.path().join(".bashrc")).unwrap(), "# mine\n", "{flags:?}");
        assert_eq!(fs::read_to_string(home.path().join(".gitconfig")).unwrap(), "[user]\n\tname = Me\n", "{flags:?}");
    }
}

#[test]
fn a_replay_in_a_runtime_that_is_not_there_says_so_and_executes_nothing() {
    let home = tempfile::tempdir().unwrap();
    for (flags, status, said) in [
        (&["--runtime", "dokcer"][..], 1, "dokcer"),
        (&["--runtime", "cli", "--image", "debian:13"], 1, "has no images"),
        (&["--image", "debian:13"], 2, "--runtime"),
        (&["--runtime", "local", "--url", "http://127.0.0.1:1"], 2, "--url"),
    ] {
        let output = replay(home.path(), flags);
        assert_eq!(output.status.code(), Some(status), "{flags:?} {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{flags:?} {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{flags:?}");
    }
}

#[test]
fn a_replay_on_a_server_keeps_its_history_and_saves_a_trajectory_that_can_be_replayed() {
    let server = Server::serve(&[], &[]);
    let home = tempfile::tempdir().unwrap();
    let url = format!("http://127.0.0.1:{}", server.port);
    let output = replay(home.path(), &["--url", &url, "--history", "history", "--save", "saved.json", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(server.home.path().join("greeting.txt")).unwrap(), "hello\n");
    let printed: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = printed
        .iter()
        .map(|event| event["action"].as_str().or(event["observation"].as_str()).unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["message", "write", "write", "run", "run", "think", "think", "finish"]);
    assert_eq!(printed[4]["cause"], 3);
    assert_eq!((&printed[4]["content"], &printed[4]["extras"]["metadata"]["exit_code"]), (&json!("hello"), &json!(3)));

    let session = fs::read_dir(home.path().join("history/sessions")).unwrap().next().unwrap().unwrap().path();
    let stored: Value = serde_json::from_slice(&fs::read(session.join("events/4.json")).unwrap()).unwrap();
    assert_eq!(stored, printed[4]);
    let saved: Value = serde_json::from_slice(&fs::read(home.path().join("saved.json")).unwrap()).unwrap();
    assert_eq!(saved.as_array().unwrap().len(), printed.len());
    let again = gloveport(home.path()).current_dir(home.path()).args(["replay", "saved.json"]).output().unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
}

#[test]
fn what_is_no_trajectory_is_refused_with_nothing_started() {
    let home = tempfile::tempdir().unwrap();
    for (content, reason) in [
        ("{", "Invalid JSON format in"),
        ("{}", "Expected a list in"),
        ("[]", "has no actions to execute"),
        ("[{\"action\": \"dance\", \"args\": {}}]", "dance"),
    ] {
        let file = home.path().join("bad.json");
        fs::write(&file, content).unwrap();
        let output = gloveport(home.path()).arg("replay").arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
    let output = gloveport(home.path()).args(["replay", "missing.json"]).output().unwrap();
    assert!(text(&output.stderr).contains("Trajectory file not found"), "{}", text(&output.stderr));
}

#[test]
fn what_a_history_keeps_too_little_of_is_not_executed_and_that_is_said() {
    let home = tempfile::tempdir().unwrap();
    let run = |id: u32, command: &str, cause: Option<u32>| json!({"id": id, "cause": cause, "source": "user", "action": "run", "args": {"command": command}});
    let ended = |id: u32, cause: u32, suffix: &str| {
        json!({"id": id, "cause": cause, "source": "user", "observation": "run", "content": "",
               "extras": {"command": "x", "metadata": {"exit_code": 0, "suffix": suffix}}})
    };
    let kept = "whose contents are not kept; the user left it, and it goes on.]";
    let write = |id: u32, content: &str| json!({"id": id, "source": "user", "action": "write", "args": {"path": "copied", "content": content}});
    let events = json!([
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Go."}},
        {"id": 1, "source": "environment", "observation": "null", "content": ""},
        run(2, "# attached to the terminal main", None),
        // Another command ended meanwhile.
        run(3, "echo between", None),
        ended(4, 3, "\n[The command completed with exit code 0.]"),
        ended(5, 2, &format!("\n[The user was attached to the terminal `main`, {kept}")),
        run(6, "touch from-terminal", None),
        ended(7, 6, &format!("\n[The command has a terminal, {kept}")),
        write(8, "[copied from notes of the user's machine; the history does not keep what it contains]"),
        run(9, "test ! -e copied && test ! -e from-terminal", None),
    ]);
    fs::write(home.path().join("trajectory.json"), events.to_string()).unwrap();
    let replay = |flags: &[&str]| {
        let mut command = gloveport(home.path());
        command.current_dir(home.path()).args(["replay", "trajectory.json"]).args(flags).output().unwrap()
    };
    let output = replay(&[]);
    let expected = "[message] Go.\n\
                    $ # attached to the terminal main\n\
                    [not executed: what was typed on the terminal is not kept]\n\
                    $ echo between\n\
                    between\n\
                    $ touch from-terminal\n\
                    [not executed: what was typed on the terminal is not kept]\n\
                    [write] Writing file: copied\n\
                    [not executed: the history does not keep what it contains]\n\
                    $ test ! -e copied && test ! -e from-terminal\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    let output = replay(&["--json"]);
    assert_eq!(text(&output.stdout).lines().count(), 5, "{}", text(&output.stdout));
    assert_eq!(text(&output.stderr).matches("[not executed: ").count(), 3, "{}", text(&output.stderr));
}

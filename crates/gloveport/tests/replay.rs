//! A recorded trajectory is executed once more.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

mod support;

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};
use support::{Server, gloveport, text};

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

//! The histories of sessions: what was done in them, without secrets.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use crate::sessions::{Home, Running};
use crate::support::{text, with_home};
use gloveport_event_stream::EventStream;
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn a_command_and_its_output_are_in_the_history_where_openhands_looks_for_them() {
    let home = Home::new();
    home.start("h");
    home.exec("h", "echo one; (exit 3)");
    home.ok(&["exec", "--no-history", "h", "echo two"]);
    let events = home.events("h");
    assert_eq!(events.len(), 2);
    let (action, observation) = (&events[0], &events[1]);
    assert_eq!((&action["id"], &action["source"], &action["action"]), (&0.into(), &"user".into(), &"run".into()));
    assert_eq!(action["args"]["command"], "echo one; (exit 3)");
    assert_eq!((&observation["id"], &observation["cause"]), (&1.into(), &0.into()));
    assert_eq!((&observation["source"], &observation["content"]), (&"user".into(), &"one".into()));
    assert_eq!(observation["extras"]["metadata"]["exit_code"], 3);
    let stored = fs::read(home.path().join(".openhands/sessions/h/events/1.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&stored).unwrap()["content"], "one");

    let shown = home.ok(&["events", "h"]);
    assert!(shown.contains("$ echo one; (exit 3)\n") && shown.contains("\none\n[exit code 3]\n"), "{shown}");
    assert_eq!(home.ok(&["events", "--since", "1", "--json", "h"]).lines().count(), 1);
    assert_eq!(home.ok(&["events", "--kind", "message", "h"]), "");
    assert_eq!(home.ok(&["events", "--kind", "run", "--json", "h"]).lines().count(), 2);
    let printed: Value = serde_json::from_str(&home.ok(&["exec", "--json", "h", "echo three"])).unwrap();
    assert_eq!((&printed["content"], &printed["cause"]), (&"three".into(), &2.into()));
}

#[test]
fn the_history_outlives_the_sandbox_until_it_is_removed() {
    let home = Home::new();
    home.start("old");
    home.exec("old", "echo kept");
    home.ok(&["stop", "old"]);
    assert_eq!(home.events("old").len(), 2);
    // The beginning of an id means a sandbox, and there is none.
    assert!(home.failed(&["rm", "ol"]).1.contains("there is no session"));
    assert_eq!(home.ok(&["rm", "old"]), "old\n");
    assert!(!home.path().join(".openhands/sessions/old").exists());
    assert!(home.failed(&["events", "old"]).1.contains("there is no session"));
    assert!(home.failed(&["rm", "old"]).1.contains("there is no session"));
}

#[test]
fn commands_at_once_all_get_their_place_and_each_observation_its_action() {
    const COMMANDS: usize = 8;
    let home = Home::new();
    home.start("m");
    thread::scope(|scope| {
        for number in 0..COMMANDS {
            let home = &home;
            scope.spawn(move || {
                assert_eq!(home.exec("m", &format!("echo n{number}")), (Some(0), format!("n{number}\n")));
            });
        }
    });
    let events = home.events("m");
    assert_eq!(events.len(), 2 * COMMANDS);
    for observation in events.iter().filter(|event| event["observation"] == "run") {
        let cause = usize::try_from(observation["cause"].as_u64().unwrap()).unwrap();
        let command = events[cause]["args"]["command"].as_str().unwrap();
        assert_eq!(command, format!("echo {}", observation["content"].as_str().unwrap()));
    }
}

#[test]
fn the_key_and_the_secrets_of_a_session_are_in_no_file() {
    let home = Home::new();
    fs::write(home.path().join("token"), "file-s3cret-value\n").unwrap();
    let mut start = home.command(&["start", "--id", "s", "--secret", "TOKEN", "--secret", "OTHER=@token"]);
    assert!(start.env("TOKEN", "env-s3cret-value").output().unwrap().status.success());
    fs::remove_file(home.path().join("token")).unwrap();
    let (_, printed) = home.exec("s", "echo $TOKEN; echo $OTHER; echo $TOKEN | base64");
    assert!(printed.starts_with("env-s3cret-value\nfile-s3cret-value\n"), "{printed}");
    home.exec("s", "echo env-s3cret-value");
    let env = home.ok(&["env", "s"]);
    let key = env.split("GLOVEPORT_KEY='").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    home.exec("s", &format!("echo {key}"));
    for secret in ["env-s3cret-value", "file-s3cret-value", key] {
        assert_eq!(files_with(&home.path().join(".openhands"), secret), Vec::<String>::new());
    }
    assert_eq!(files_with(home.path(), "s3cret-value"), Vec::<String>::new());
    let events = home.events("s");
    assert!(events[1]["content"].as_str().unwrap().starts_with("<secret_hidden>\n<secret_hidden>\n"), "{}", events[1]);
    assert_eq!(events[2]["args"]["command"], "echo <secret_hidden>");
}

/// The files below a directory that have this text in them.
fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let output = Command::new("grep").args(["-rlF", "--", text]).arg(directory).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn the_history_can_be_followed_while_it_grows() {
    let home = Home::new();
    home.start("f");
    home.exec("f", "echo first");
    let mut follower = Running::new(&mut home.command(&["events", "-f", "f"]));
    follower.wait_for("\nfirst\n");
    home.exec("f", "echo second");
    follower.wait_for("\nsecond\n");
    follower.signal(Signal::INT);
    assert_eq!(follower.end(), None);
}

#[test]
fn what_a_program_wrote_does_not_move_the_cursor_of_who_reads_the_history() {
    let home = Home::new();
    home.start("e");
    home.exec("e", r"printf 'a\033]0;title\007b\033[2Jc'; : $'\e[31m'");
    assert!(!home.ok(&["events", "e"]).contains('\x1b'));
}

#[test]
fn a_command_runs_although_its_history_is_being_written_by_another_or_cannot_be_written() {
    let home = Home::new();
    home.start("b");
    home.exec("b", "true");
    let store = home.path().join(".openhands");
    let open = EventStream::open_local(&store, None, "b", None);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let stream = runtime.block_on(open).unwrap();
    let output = home.session(&["exec", "b", "echo runs"]);
    runtime.block_on(stream.close());
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("runs\n", Some(0)));
    assert!(text(&output.stderr).contains("is not in the session's history"), "{}", text(&output.stderr));

    fs::remove_dir_all(&store).unwrap();
    fs::write(&store, "no directory").unwrap();
    let output = home.session(&["exec", "b", "echo still"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("still\n", Some(0)));
    assert!(text(&output.stderr).contains("is not in the session's history"), "{}", text(&output.stderr));
}

#[test]
fn a_full_disk_keeps_no_command_from_running() {
    let home = Home::new();
    let store = home.path().join(".openhands");
    fs::create_dir(&store).unwrap();
    home.start("full");
    let mount = format!("mount -t tmpfs -o size=64k tmpfs {}", store.display());
    let skipped = in_namespace(&mount).stderr(Stdio::null()).status().is_ok_and(|status| !status.success());
    if skipped {
        println!("skipped: this system does not let the test mount a small disk");
        return;
    }
    let (gloveport, store) = (env!("CARGO_BIN_EXE_gloveport"), store.display());
    let script = format!(
        "{mount} && {gloveport} session exec full true && ! head -c 128k /dev/zero >{store}/filler 2>/dev/null; \
         {gloveport} session exec full 'echo runs; exit 5'"
    );
    let output = with_home(in_namespace(&script), home.path()).env_remove("XDG_STATE_HOME").output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("runs\n", Some(5)), "{}", text(&output.stderr));
    let warning = text(&output.stderr);
    assert!(
        warning.contains("the command is not in the session's history") && warning.contains("No space"),
        "{warning}"
    );
}

/// A shell script that may mount file systems, which nobody else sees.
fn in_namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    command
}

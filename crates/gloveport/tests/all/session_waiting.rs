//! Servers that wait for the next session of the runtime `local`, for people.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Output},
};

use crate::sessions::{Home, Running};
use crate::support::{gloveport, text, until};
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Those that wait are kept from nothing, so only sessions that are not either take one.
const ISOLATION: (&str, &str) = ("SANDBOX_ISOLATION", "none");

/// A session command that wants so many servers to wait.
fn with(home: &Home, count: &str, words: &[&str]) -> Output {
    command(home, count, words).output().unwrap()
}

fn command(home: &Home, count: &str, words: &[&str]) -> Command {
    let mut command = home.command(words);
    command.env("DESIRED_NUM_WARM_SERVERS", count).env(ISOLATION.0, ISOLATION.1);
    command
}

/// The first names of the servers that wait or are on their way.
fn waiting(home: &Home) -> BTreeSet<String> {
    let entries = fs::read_dir(home.state().join("new")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// What `session ls` tells of those that wait.
fn told(home: &Home) -> String {
    text(&home.session(&["ls"]).stderr)
}

/// The first name of the server of a session.
fn name_of(home: &Home, id: &str) -> String {
    let record = fs::read(home.state().join("sandboxes").join(id).join("sandbox.json")).unwrap();
    serde_json::from_slice::<Value>(&record).unwrap()["mark"].as_str().unwrap().to_owned()
}

/// The keeper of this home.
fn keeper(home: &Home) -> Option<u32> {
    let of_home = |pid: &u32| {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|at| at == home.state().join("keeper/lock"))
    };
    process::all().into_iter().find(of_home)
}

#[test]
fn a_session_takes_a_server_that_waits_and_others_wait_until_garbage_is_collected() {
    let home = Home::new();
    fs::create_dir(home.path().join("work")).unwrap();
    assert!(with(&home, "2", &["start", "a"]).status.success());
    until("two wait", || told(&home) == "2 servers wait for the next session of the runtime `local`\n");
    let before = waiting(&home);
    assert_eq!(before.len(), 2);

    let words = ["start", "--id", "b", "--workspace", "work", "-e", "A=b"];
    assert!(with(&home, "2", &words).status.success());
    assert!(before.contains(&name_of(&home, "b")), "{before:?}");
    let here = home.path().join("work").canonicalize().unwrap();
    assert_eq!(home.exec("b", "pwd; echo $A"), (Some(0), format!("{}\nb\n", here.display())));
    until("two wait again", || told(&home).starts_with("2 servers wait"));

    // A command in a sandbox of its own takes one, too.
    let before = waiting(&home);
    let mut run = gloveport(home.path());
    run.env_remove("XDG_STATE_HOME").env("DESIRED_NUM_WARM_SERVERS", "2").env(ISOLATION.0, ISOLATION.1);
    let ran = run.current_dir(home.path()).args(["run", "--runtime", "local", "echo hi"]).output().unwrap();
    assert_eq!((text(&ran.stdout).as_str(), ran.status.code()), ("hi\n", Some(0)), "{}", text(&ran.stderr));
    assert!(!before.is_subset(&waiting(&home)), "{before:?}");
    until("two wait once more", || told(&home).starts_with("2 servers wait"));

    let would = text(&home.session(&["gc", "--dry-run"]).stdout);
    let line = "server (local): it waited for a session that did not come\n";
    assert_eq!(would, format!("would remove {line}").repeat(2));
    assert_eq!(text(&home.session(&["gc"]).stdout), format!("removed {line}").repeat(2));
    assert_eq!((waiting(&home), keeper(&home), told(&home)), (BTreeSet::new(), None, String::new()));
    // The sessions go on.
    assert_eq!(home.ids(), ["a", "b"]);
    assert_eq!(home.exec("a", "echo there"), (Some(0), "there\n".to_owned()));
}

#[test]
fn nobody_waits_unless_it_is_wanted_and_a_wrong_number_is_an_error() {
    let home = Home::new();
    home.start("a");
    assert_eq!((waiting(&home), keeper(&home)), (BTreeSet::new(), None));
    let (refused, begun) = (with(&home, "two", &["start", "--id", "b"]), home.ids());
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("DESIRED_NUM_WARM_SERVERS"), "{}", text(&refused.stderr));
    assert_eq!(begun, ["a"]);
}

#[test]
fn servers_that_would_be_started_otherwise_now_are_replaced() {
    let home = Home::new();
    assert!(with(&home, "1", &["start", "--id", "a"]).status.success());
    until("one waits", || told(&home).starts_with("1 server waits"));
    let before = waiting(&home);
    let mut other = command(&home, "1", &["start", "--id", "b"]);
    assert!(other.env("NO_CHANGE_TIMEOUT_SECONDS", "77").output().unwrap().status.success());
    assert!(!before.contains(&name_of(&home, "b")));
    until("another one waits", || told(&home).starts_with("1 server waits") && waiting(&home).is_disjoint(&before));
}

#[test]
fn a_keeper_that_nobody_asks_ends_with_its_servers_and_one_that_is_killed_leaves_none() {
    let home = Home::new();
    let mut command = gloveport(home.path());
    command.env_remove("XDG_STATE_HOME").current_dir(home.path());
    command.args(["sandbox-keeper", "--count", "1", "--idle", "1s"]);
    assert_eq!(Running::new(&mut command).end(), Some(0));
    assert_eq!(home.left(), Vec::<String>::new());

    assert!(with(&home, "1", &["start", "--id", "a"]).status.success());
    until("one waits", || told(&home).starts_with("1 server waits"));
    let pid = Pid::from_raw(keeper(&home).unwrap().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    until("nobody waits", || waiting(&home).is_empty());
    // The next session is none the worse for it.
    assert!(with(&home, "1", &["start", "--id", "b"]).status.success());
    until("one waits again", || told(&home).starts_with("1 server waits"));
    assert_eq!(home.exec("a", "echo there"), (Some(0), "there\n".to_owned()));
}

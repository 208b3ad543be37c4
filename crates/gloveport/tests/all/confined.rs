//! `gloveport run --runtime cli`, as a user meets it.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::{
    io::{BufReader, Read as _, Write as _},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use crate::support::{LIMIT, gloveport, run, text};
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn start(home: &std::path::Path, arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = gloveport(home)
        .args(["run", "--runtime", "cli"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn line(output: &mut impl std::io::BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

fn gone(pid: &str) {
    let pid: u32 = pid.trim().parse().unwrap();
    let until = Instant::now() + LIMIT;
    while process::stat(pid).is_some_and(|stat| stat.state != 'Z') {
        assert!(Instant::now() < until, "{pid} lives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn every_row_of_the_exit_codes_holds() {
    let directory = tempfile::tempdir().unwrap();
    let cwd = std::fs::canonicalize(directory.path()).unwrap().display().to_string();
    for (arguments, output, error, code) in [
        (&["echo out; echo err >&2; exit 7"][..], "out\n", "err\n", 7),
        (&["echo", "a", "b"], "a b\n", "", 0),
        (&["kill -9 $$"], "", "", 137),
        (&["--env", "X=a b", "printf %s \"$X\""], "a b", "", 0),
        (&["--cwd", &cwd, "pwd"], &format!("{cwd}\n"), "", 0),
        (&["nothing-like-that"], "", "bash: line 1: nothing-like-that: command not found\n", 127),
    ] {
        let done = run(&[&["run", "--runtime", "cli"], arguments].concat());
        let found = (text(&done.stdout), text(&done.stderr), done.status.code());
        assert_eq!(found, (output.to_owned(), error.to_owned(), Some(code)), "{arguments:?}");
    }
    let late = run(&["run", "--runtime", "cli", "--timeout", "0.3", "echo x; sleep 100"]);
    assert_eq!((text(&late.stdout).as_str(), late.status.code()), ("x\n", Some(124)));
    assert!(text(&late.stderr).contains("did not end within the time limit"), "{}", text(&late.stderr));
    let wrong = run(&["run", "--runtime", "cli", "--cwd", "/nothing", "true"]);
    assert_eq!(wrong.status.code(), Some(125));
    assert!(text(&wrong.stderr).contains("/nothing is not a directory"), "{}", text(&wrong.stderr));
    let path = run(&["run", "--runtime", "cli", "--env", "PATH=/nothing", "echo still"]);
    assert_eq!(text(&path.stdout), "still\n");
}

#[test]
fn output_comes_as_it_is_written_and_input_is_ours() {
    let home = tempfile::tempdir().unwrap();
    let (mut child, mut output) = start(home.path(), &["printf 'first\\n'; read -r line; printf '%s\\xff' \"$line\""]);
    assert_eq!(line(&mut output), "first\n");
    child.stdin.take().unwrap().write_all(b"answer\n").unwrap();
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"answer\xff");
    assert!(child.wait().unwrap().success());
}

#[test]
fn nothing_is_left_running_whatever_ends_the_command() {
    let home = tempfile::tempdir().unwrap();
    let background =
        "setsid sleep 1000 >/dev/null 2>&1 & echo $!; nohup sleep 1000 >/dev/null 2>&1 & echo $!; sleep .1";
    for (command, arguments, told, code) in [
        (format!("{background}; exit 3"), &[][..], None, Some(3)),
        (format!("{background}; sleep 1000"), &["--timeout", "0.5"], None, Some(124)),
        (format!("{background}; sleep 1000"), &[], Some(&[Signal::INT][..]), Some(130)),
        (format!("trap '' INT; {background}; sleep 1000"), &[], Some(&[Signal::INT, Signal::INT]), Some(130)),
        (format!("{background}; sleep 1000"), &[], Some(&[Signal::TERM]), Some(143)),
        (format!("{background}; sleep 1000"), &[], Some(&[Signal::HUP]), Some(129)),
    ] {
        let (mut child, mut output) = start(home.path(), &[arguments, &[command.as_str()]].concat());
        let pids = [line(&mut output), line(&mut output)];
        for number in told.unwrap_or_default() {
            std::thread::sleep(Duration::from_millis(150));
            signal(&child, *number);
        }
        assert_eq!(child.wait().unwrap().code(), code, "{command} {told:?}");
        for pid in &pids {
            gone(pid);
        }
    }
}

#[test]
fn a_command_whose_starter_is_killed_ends() {
    let home = tempfile::tempdir().unwrap();
    let (mut child, mut output) = start(home.path(), &["echo $$; exec sleep 1000"]);
    let pid = line(&mut output);
    child.kill().unwrap();
    child.wait().unwrap();
    gone(&pid);
}

#[test]
fn json_is_the_observation_of_the_runtime() {
    for (arguments, content, exit_code, suffix, code) in [
        (&["echo out; echo err >&2; exit 7"][..], "out\nerr\n", 7, "", 7),
        (&["--timeout", "0.3", "echo x; sleep 100"], "x\n", -1, "[The command timed out after 0.3 seconds.]", 124),
        (&["kill -9 $$"], "", -9, "", 137),
        (&["read x; echo end: $x"], "end:\n", 0, "", 0),
    ] {
        let done = run(&[&["run", "--runtime", "cli", "--json"], arguments].concat());
        assert_eq!(done.status.code(), Some(code), "{}", text(&done.stderr));
        let observation: Value = serde_json::from_slice(&done.stdout).unwrap();
        let metadata = &observation["extras"]["metadata"];
        assert_eq!(observation["content"], content);
        assert_eq!((&metadata["exit_code"], &metadata["suffix"]), (&Value::from(exit_code), &Value::from(suffix)));
        assert_eq!(metadata["working_dir"], std::env::current_dir().unwrap().display().to_string());
    }
}

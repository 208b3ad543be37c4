//! Commands and starts that are interrupted, killed or late, and what is left of them.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::sessions::{Home, Running};
use crate::support::{gloveport, text, until};
use rustix::process::Signal;

#[test]
fn a_command_gets_our_input_line_by_line_when_it_asks() {
    let home = Home::new();
    home.start("i");
    let mut child = home
        .command(&["exec", "-i", "i", "--", "read a; read b; echo got $a $b; cat | tr a-z A-Z"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\nthree\nfour").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("got one two\nTHREE\nFOUR\n", Some(0)));

    let mut child = home.command(&["exec", "i"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"for x in a b; do\n  echo $x\ndone\nexit_with() { return 4; }\nexit_with\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("a\nb\n", Some(4)));
}

#[test]
fn a_time_limit_interrupts_the_command_and_the_shell_goes_on() {
    let home = Home::new();
    home.start("t");
    let output = home.session(&["exec", "--timeout", "1s", "t", "echo begun; sleep 987653"]);
    // The shell ends the line of the interrupted command.
    assert_eq!((text(&output.stdout).trim_end(), output.status.code()), ("begun", Some(124)));
    assert_eq!(home.exec("t", "echo after"), (Some(0), "after\n".to_owned()));
    let observed = &home.events("t")[1];
    assert_eq!(observed["extras"]["metadata"]["exit_code"], -1);
    assert!(observed["extras"]["metadata"]["suffix"].as_str().unwrap().contains("timed out"), "{observed}");
}

#[test]
fn ctrl_c_interrupts_the_command_and_a_second_one_leaves_it() {
    let home = Home::new();
    home.start("k");
    let mut running = Running::new(&mut home.command(&["exec", "k", "echo begun; sleep 987652"]));
    running.wait_for("begun");
    running.signal(Signal::INT);
    assert_eq!(running.end(), Some(130));
    // The shell of the session is free again, and was not ended.
    assert_eq!(home.exec("k", "echo free"), (Some(0), "free\n".to_owned()));

    let script = "bash -c 'trap \"echo caught\" INT; echo begun; while :; do sleep 0.05; done'";
    let mut stubborn = Running::new(&mut home.command(&["exec", "--cwd", "/", "k", script]));
    stubborn.wait_for("begun");
    stubborn.signal(Signal::INT);
    stubborn.wait_for("caught");
    stubborn.signal(Signal::INT);
    assert_eq!(stubborn.end(), Some(130));
}

#[test]
fn a_command_whose_output_nobody_reads_is_interrupted() {
    let home = Home::new();
    home.start("y");
    let mut child = home.command(&["exec", "y", "yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "y\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(141), ""));
    assert_eq!(home.exec("y", "echo free"), (Some(0), "free\n".to_owned()));
}

#[test]
fn a_detached_command_goes_on_without_us() {
    let home = Home::new();
    home.start("d");
    let id = home.ok(&["exec", "-d", "d", "while ! test -e go; do sleep 0.01; done; touch went"]);
    assert_eq!(id.lines().count(), 1);
    home.exec("d", "touch go");
    until("the detached command goes on", || home.exec("d", "test -e went").0 == Some(0));
}

#[test]
fn directory_and_variables_of_a_command_are_its_own() {
    let home = Home::new();
    home.start("v");
    let output = home.ok(&["exec", "--cwd", "/usr", "--env", "A=1 2", "v", "echo \"$PWD $A\""]);
    assert_eq!(output, "/usr 1 2\n");
    assert_eq!(home.exec("v", "echo \"[$A]\"").1, "[]\n");
}

/// Moments at which a start is ended, in milliseconds.
const MOMENTS: [u64; 16] = [0, 2, 4, 6, 8, 10, 13, 16, 20, 25, 30, 35, 40, 50, 65, 90];

#[test]
fn a_start_that_is_killed_at_any_moment_leaves_nothing_that_gc_does_not_find() {
    let home = Home::new();
    for (number, moment) in MOMENTS.into_iter().enumerate() {
        let id = format!("k{number}");
        let mut start =
            home.command(&["start", "--id", &id]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(moment));
        start.kill().unwrap();
        let output = start.wait_with_output().unwrap();
        let told = text(&output.stdout) == format!("{id}\n");
        // Servers whose backend is gone end by themselves, in their own time.
        until("it is a session or nothing", || {
            home.ok(&["gc"]);
            let ids = home.ids();
            ids == [id.clone()] || (ids.is_empty() && !told)
        });
        if home.ids().is_empty() {
            until("nothing of it runs", || home.alive().is_empty() && home.left().is_empty());
        } else {
            // It was there already, and is whole.
            assert_eq!(home.exec(&id, "echo whole"), (Some(0), "whole\n".to_owned()), "after {moment} ms");
            home.ok(&["rm", "-f", &id]);
        }
    }
}

#[test]
fn a_start_that_is_interrupted_leaves_nothing() {
    let home = Home::new();
    for (number, moment) in MOMENTS.into_iter().enumerate() {
        let id = format!("c{number}");
        let mut start = Running::new(&mut home.command(&["start", "--id", &id]));
        thread::sleep(Duration::from_millis(moment));
        start.signal(if number % 2 == 0 { Signal::INT } else { Signal::TERM });
        let status = start.child.wait().unwrap();
        if status.success() {
            assert_eq!(home.ok(&["rm", "-f", &id]), format!("{id}\n"));
        }
        assert_eq!(home.ids(), Vec::<String>::new(), "after {moment} ms");
        until("nothing of it runs", || home.alive().is_empty() && home.left().is_empty());
    }
}

#[test]
fn a_start_of_an_existing_session_that_is_interrupted_leaves_that_session() {
    let home = Home::new();
    home.start("mine");
    for moment in [5, 10, 20, 30] {
        let mut start = Running::new(&mut home.command(&["start", "--id", "mine"]));
        thread::sleep(Duration::from_millis(moment));
        start.signal(Signal::INT);
        assert!(!start.child.wait().unwrap().success());
        assert_eq!(home.exec("mine", "echo lives"), (Some(0), "lives\n".to_owned()));
    }
}

/// `gloveport run --runtime local` in a home.
fn run_fresh(home: &Home, words: &[&str]) -> Command {
    let mut command = gloveport(home.path());
    command.env_remove("XDG_STATE_HOME").current_dir(home.path()).args(["run", "--runtime", "local"]).args(words);
    command
}

#[test]
fn run_makes_a_sandbox_for_one_command_and_deletes_it() {
    let home = Home::new();
    let output = run_fresh(&home, &["--env", "A=1 2", "echo \"$A\"; exit 9"]).output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("1 2\n", Some(9)), "{}", text(&output.stderr));
    assert!(home.left().is_empty());
    let output = run_fresh(&home, &["--cwd", "/usr", "pwd"]).output().unwrap();
    assert_eq!(text(&output.stdout), "/usr\n");
    let output = run_fresh(&home, &["--timeout", "0.5", "sleep 987651"]).output().unwrap();
    assert_eq!(output.status.code(), Some(124));
    let output = run_fresh(&home, &["--json", "echo observed"]).output().unwrap();
    let observation: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(observation["content"], "observed");
    assert!(home.left().is_empty() && home.alive().is_empty());
}

#[test]
fn run_deletes_its_sandbox_however_it_ends() {
    let home = Home::new();
    for (signal, code) in
        [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::HUP, Some(129)), (Signal::KILL, None)]
    {
        let mut running = Running::new(&mut run_fresh(&home, &["echo begun; sleep 987650"]));
        running.wait_for("begun");
        running.signal(signal);
        assert_eq!(running.end(), code);
        until("its sandbox is gone", || {
            home.ok(&["gc"]);
            home.left().is_empty() && home.alive().is_empty()
        });
    }
}

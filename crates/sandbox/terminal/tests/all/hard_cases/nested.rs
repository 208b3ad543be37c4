//! Shells inside of the session's shell, which report like it, at any depth.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use gloveport_terminal::{RunEnd, RunRequest};

use crate::hard_cases::support::{Lab, done, each, goes_on, input, installed, later, run, runs, soon};

/// A command that starts a shell, the program that it needs, and whether it ends with the status of that shell.
const KINDS: [(&str, &str, bool); 10] = [
    ("bash", "bash", true),
    ("bash --norc -i", "bash", true),
    ("bash --noediting --posix", "bash", true),
    ("python3 -c \"import pty; pty.spawn('/bin/bash')\"", "python3", false),
    ("script -qc bash /dev/null", "script", false),
    ("su", "su", true),
    ("su -", "su", true),
    ("newgrp", "newgrp", true),
    ("sudo -s", "sudo", true),
    ("sudo su", "sudo", true),
];

fn usable(program: &str) -> bool {
    let needs_root = ["su", "newgrp", "sudo"].contains(&program);
    if needs_root && !rustix::process::geteuid().is_root() {
        println!("skipped: {program} asks anybody but root for a password");
        return false;
    }
    installed(program)
}

/// Runs a program in a world in which root's home is empty, where that is allowed: what stands in the start-up files of
/// whoever runs the tests takes any time, and may wait for a lock that a shell of another test has left.
const IN_EMPTY_HOME: &str = r#"#!/bin/sh
unshare --mount true 2>/dev/null || exec "$@"
exec unshare --mount sh -c 'mount -t tmpfs none "$(getent passwd 0 | cut -d: -f6)" && exec "$@"' sh "$@"
"#;

/// The command that starts a shell of this kind, whose start-up files are none of root's.
fn starting(lab: &Lab, kind: &str) -> String {
    let wrapper = lab.work.join("in-empty-home");
    if !wrapper.exists() {
        fs::write(&wrapper, IN_EMPTY_HOME).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    }
    match kind.split_once(' ').map_or(kind, |(program, _)| program) {
        "su" | "newgrp" | "sudo" => format!("{} {kind}", wrapper.display()),
        _ => kind.to_owned(),
    }
}

/// Runs a request, and answers its output and status; it must complete.
async fn completes(lab: &Lab, text: &str) -> (String, i32) {
    let report = lab.run(RunRequest::script(text).at_most(Duration::from_secs(15))).await;
    let RunEnd::Completed { status } = report.end else { panic!("{text}: {report:?}") };
    assert_eq!(report.loss, None, "{text}: {report:?}");
    (report.output, status)
}

async fn check(lab: &Lab, text: &str, output: &str, status: i32) {
    assert_eq!(completes(lab, text).await, (output.to_owned(), status), "{text}");
}

/// What holds in every shell.
async fn works(lab: &Lab, level: usize) {
    check(lab, &format!("level={level}; cd /; (exit 3)"), "", 3).await;
    check(lab, "echo $?", "3", 0).await;
    check(lab, "pwd; cd /tmp", "/", 0).await;
    assert_eq!(lab.shell.facts().directory, "/tmp");
    check(lab, "if true; then\necho a\nfi", "a", 0).await;
    check(lab, "cat <<'E'\n$b\nE", "$b", 0).await;
    check(lab, "echo $((1))\necho c; false", "1\nc", 1).await;
    check(lab, "nosuch 2>/dev/null", "", 127).await;
    check(lab, "printf 'no end'", "no end", 0).await;
}

#[tokio::test]
async fn every_kind_of_nested_shell_reports_to_depth_three() {
    each(KINDS, async |(kind, program, passes_status)| {
        if !usable(program) {
            return;
        }
        let lab = Lab::new().await;
        check(&lab, "level=0", "", 0).await;
        let command = starting(&lab, kind);
        for level in 1..=3 {
            check(&lab, &command, "", 0).await;
            works(&lab, level).await;
        }
        for level in (0..=2).rev() {
            let (output, status) = completes(&lab, "exit 5").await;
            assert!(["exit", "logout", ""].contains(&output.as_str()), "{kind}: {output:?}");
            assert_eq!(status, if passes_status { 5 } else { 0 }, "{kind}");
            check(&lab, "echo $level", &level.to_string(), 0).await;
            check(&lab, "(exit 6)", "", 6).await;
        }
        assert_clean(&lab.log(), kind);
        lab.close().await;
    })
    .await;
}

fn assert_clean(log: &str, what: &str) {
    for word in ["__gp", "7777", "gloveport", "emacs"] {
        assert!(!log.contains(word), "{what}: {word} is seen: {log:?}");
    }
}

#[tokio::test]
async fn shells_of_different_kinds_are_nested_in_each_other() {
    let lab = Lab::new().await;
    let kinds: Vec<&str> = KINDS.iter().filter(|(_, program, _)| usable(program)).map(|(kind, ..)| *kind).collect();
    for (level, kind) in kinds.iter().enumerate() {
        check(&lab, &starting(&lab, kind), "", 0).await;
        check(&lab, &format!("level={level}; (exit 4)"), "", 4).await;
    }
    for level in (0..kinds.len()).rev() {
        check(&lab, "echo $level", &level.to_string(), 0).await;
        completes(&lab, "exit 5").await;
    }
    check(&lab, "echo \"[$level]\"", "[]", 0).await;
    lab.close().await;
}

#[tokio::test]
async fn what_a_command_shows_before_and_behind_a_nested_shell_is_its_output() {
    let lab = Lab::new().await;
    check(&lab, "echo before; bash --norc; echo \"behind $?\"; (exit 7)", "before", 0).await;
    check(&lab, "echo inside", "inside", 0).await;
    check(&lab, "exit 5", "exit\nbehind 5", 7).await;
    // A soft limit that passes meanwhile takes nothing away.
    let report = lab.run(soon(run("echo one; sleep 0.6; echo two; bash --norc"))).await;
    assert_eq!((report.end, report.output.as_str()), (RunEnd::TimedOut, "one"));
    let report = lab.run(run("")).await;
    assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 0 }, "two"));
    check(&lab, "exit 0", "exit", 0).await;
    lab.close().await;
}

#[tokio::test]
async fn programs_in_a_nested_shell_are_talked_to_and_interrupted() {
    let rows = ["bash --norc", "script -qc 'bash --norc' /dev/null"];
    each(rows, async |shell| {
        let lab = Lab::new().await;
        check(&lab, shell, "", 0).await;
        let report = lab.run(soon(run("read -r x; echo \"<$x>\"; (exit 2)"))).await;
        assert_eq!(report.end, RunEnd::TimedOut);
        let report = lab.run(input("word")).await;
        assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 2 }, "<word>"));
        let report = lab.run(soon(run("sleep 1000"))).await;
        assert_eq!(report.end, RunEnd::TimedOut);
        assert_eq!(lab.run(input("C-c")).await.end, RunEnd::Completed { status: 130 });
        let report = lab.run(soon(run("echo 'a"))).await;
        assert_eq!(report.end, RunEnd::TimedOut);
        let report = lab.run(input("b'")).await;
        assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 0 }, "a\nb"));
        completes(&lab, "exit").await;
        check(&lab, "echo outer", "outer", 0).await;
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_nested_shell_that_is_stopped_gives_way_and_comes_back() {
    let lab = Lab::new().await;
    check(&lab, "x=outer", "", 0).await;
    check(&lab, "bash --norc", "", 0).await;
    check(&lab, "x=inner", "", 0).await;
    let (output, status) = completes(&lab, "suspend").await;
    assert!(output.contains("Stopped") && status != 0, "{output} {status}");
    check(&lab, "echo $x", "outer", 0).await;
    check(&lab, "bash --norc", "", 0).await;
    check(&lab, "x=third; exit", "exit", 0).await;
    completes(&lab, "fg").await;
    check(&lab, "echo $x; (exit 3)", "inner", 3).await;
    check(&lab, "exec bash --norc -O nullglob", "", 0).await;
    check(&lab, "echo \"[$x]\"; (exit 4)", "[]", 4).await;
    check(&lab, "kill -9 $$", "Killed", 137).await;
    check(&lab, "echo $x", "outer", 0).await;
    lab.close().await;
}

#[tokio::test]
async fn a_nested_shell_that_is_taught_nothing_new_reports_again_after_it_lost_its_prompt() {
    let lab = Lab::new().await;
    check(&lab, "bash --norc", "", 0).await;
    for change in
        ["PS1='> '", "unset PROMPT_COMMAND PS1", "exec 2>/dev/null", "set -x; exec 2>f", "set +x; exec 2>/dev/tty"]
    {
        assert_eq!(completes(&lab, change).await.1, 0, "{change}");
        check(&lab, "echo ok; (exit 4)", "ok", 4).await;
    }
    assert_eq!(fs::read_to_string(lab.work.join("f")).unwrap(), "+ echo ok\n+ exit 4\n+ set +x\n");
    lab.close().await;
}

/// Nothing may be typed into something that is no shell at its prompt.
#[tokio::test]
async fn what_only_looks_like_a_shell_is_left_alone() {
    let lab = Lab::new().await;
    fs::write(lab.work.join("ask"), "read -r -p 'Password: ' x; echo \"<$x>\"\n").unwrap();
    fs::write(lab.work.join("edit"), "read -e -r -p 'Line: ' x; echo \"<$x>\"\n").unwrap();
    for (command, prompt) in [
        ("bash ask", "Password:"),
        ("bash edit", "Line:"),
        ("bash -c 'read -r -p \"Word: \" x; echo \"<$x>\"'", "Word:"),
        ("bash -i ask 2>&1", "Password:"),
        ("read -r -p 'Own: ' x; echo \"<$x>\"", "Own:"),
        ("read -e -r -p 'Own line: ' x; echo \"<$x>\"", "Own line:"),
        ("python3 -c 'import getpass; print(\"<%s>\" % getpass.getpass())'", "Password:"),
    ] {
        lab.check(later(run(command)), runs(prompt)).await;
        let report = lab.run(input("secret")).await;
        assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 0 }, "<secret>"), "{command}");
    }
    // A bash that a program talks to, and not the person.
    let driver = "import os, pty, time\n\
        pid, fd = pty.fork()\n\
        if pid == 0: os.execvp('bash', ['bash', '--norc', '-i'])\n\
        print(input('Name: '))\n\
        os.kill(pid, 9)\n";
    fs::write(lab.work.join("driver.py"), driver).unwrap();
    lab.check(later(run("python3 driver.py")), runs("Name:")).await;
    lab.check(input("mine"), done("mine", 0).after_reports()).await;
    lab.close().await;
}

#[tokio::test]
async fn a_shell_of_another_user_reports_and_its_files_are_its_own() {
    if !usable("su") {
        return;
    }
    let lab = Lab::new().await;
    check(&lab, "cd /", "", 0).await;
    check(&lab, "su nobody -s /bin/bash", "", 0).await;
    check(&lab, "id -un", "nobody", 0).await;
    assert_eq!(lab.shell.facts().user_name, "nobody");
    check(&lab, "echo $((2))\ncat /etc/shadow 2>/dev/null", "2", 1).await;
    let large = format!("echo {} | wc -c", "x".repeat(9_000));
    check(&lab, &large, "9001", 0).await;
    check(&lab, "exit 4", "exit", 4).await;
    check(&lab, "id -un", "root", 0).await;
    assert_eq!(lab.shell.facts().user_name, "root");
    // A question for a password is none for commands.
    check(&lab, "su nobody -s /bin/bash", "", 0).await;
    let report = lab.run(later(run("su"))).await;
    assert_eq!((report.end, report.output.as_str()), (RunEnd::TimedOut, "Password:"));
    let report = lab.run(later(input("C-c"))).await;
    assert!(matches!(report.end, RunEnd::Completed { .. } | RunEnd::TimedOut), "{report:?}");
    assert_clean(&lab.log(), "su");
    lab.close().await;
}

#[tokio::test]
async fn a_nested_shell_that_is_no_bash_is_a_program_like_any_other() {
    let lab = Lab::new().await;
    check(&lab, "bash --norc", "", 0).await;
    lab.check(soon(run("PS1='% ' sh")), runs("%")).await;
    lab.check(soon(input("echo a")), goes_on("a\n%")).await;
    lab.check(input("exit 5"), done("", 5).after_reports()).await;
    check(&lab, "exit 6", "exit", 6).await;
    lab.close().await;
}

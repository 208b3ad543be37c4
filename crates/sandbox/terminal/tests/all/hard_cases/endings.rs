//! Shells that end or replace themselves, shells that are killed, and start-up files that fail.

use std::time::Duration;

use gloveport_sys::{Identity, process};
use gloveport_terminal::RunEnd;
use rustix::process::{Pid, Signal, kill_process};

use crate::hard_cases::support::{Lab, Lost, done, each, goes_on, input, is_alive, later, run, runs, soon, until};

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_shell_that_ends_reports_its_status_and_is_replaced_where_it_was() {
    let lab = Lab::new().await;
    lab.prepare("mkdir d && cd d && x=1").await;
    let d = lab.work.join("d");
    for (text, output, lost) in [
        ("exit", "", Lost::Exited(0)),
        ("exit 3", "", Lost::Exited(3)),
        ("echo before; exit 4", "before", Lost::Exited(4)),
        ("echo exit; exit 0", "exit", Lost::Exited(0)),
        ("logout", "bash: logout: not login shell: use `exit'", Lost::Exited(1)),
        ("exec true", "", Lost::Exited(0)),
        ("exec python3 -c 'import sys; print(5); sys.exit(6)'", "5", Lost::Exited(6)),
        ("kill -9 $$", "", Lost::Killed(9)),
        ("kill -HUP $$", "", Lost::Killed(1)),
        ("echo last words; kill -9 $$; echo never", "last words", Lost::Killed(9)),
        ("exit 300", "", Lost::Exited(44)),
    ] {
        let status = match lost {
            Lost::Exited(code) => code,
            Lost::Killed(signal) => 128 + signal,
            Lost::ExitedBefore(_) | Lost::KilledBefore(_) => unreachable!("the commands end it"),
        };
        if text == "logout" {
            // No shell ends here.
            lab.check(text, done(output, status).in_directory(&d)).await;
            continue;
        }
        lab.check(text, done(output, status).in_directory(&d).with_loss(lost)).await;
        lab.check("echo \"[$x]\"", done("[]", 0).in_directory(&d)).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn a_failing_command_ends_a_shell_that_was_told_to_and_both_are_reported() {
    let lab = Lab::new().await;
    lab.check_table(&[("set -e", "", 0), ("true", "", 0), ("false || true", "", 0), ("if false; then :; fi", "", 0)])
        .await;
    lab.check("echo a; false; echo b", done("a", 1).with_loss(Lost::Exited(1))).await;
    lab.check("false", done("", 1)).await;
    lab.check("set -e; (exit 7)", done("", 7).with_loss(Lost::Exited(7))).await;
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_bash_that_takes_the_place_of_the_shell_reports_like_it() {
    let lab = Lab::new().await;
    lab.prepare("export kept=1; lost=1").await;
    for replacement in ["exec bash", "exec bash --norc", "exec /bin/bash -l", "exec env -u HISTFILE bash"] {
        lab.check(replacement, done("", 0)).await;
        lab.check("echo \"[$kept$lost]\"", done("[1]", 0)).await;
        lab.check("(exit 3)", done("", 3)).await;
        lab.check("cat <<'E'\na\nE", done("a", 0)).await;
        lab.check("set -u; echo b; set +u", done("b", 0)).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn another_program_in_the_place_of_the_shell_is_talked_to_until_it_ends() {
    let lab = Lab::new().await;
    lab.check(soon(run("exec cat")), runs("")).await;
    lab.check(soon(input("hello")), goes_on("hello")).await;
    lab.check(input("C-d"), done("", 0).after_reports().with_loss(Lost::Exited(0))).await;
    lab.check(later(run("exec python3 -c 'print(input()); exit(3)'")), runs("")).await;
    lab.check(input("x"), done("x", 3).after_reports().with_loss(Lost::Exited(3))).await;
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_shell_that_is_killed_from_outside_is_replaced_and_the_next_report_says_so() {
    let lab = Lab::new().await;
    let pid = lab.shell_pid().await;
    lab.check("(exit 7)", done("", 7)).await;
    kill(pid);
    until("the new shell", || lab.shell.facts().status == 0).await;
    lab.check("echo \"still works\"", done("still works", 0).with_loss(Lost::KilledBefore(9))).await;
    lab.check("echo again", done("again", 0)).await;
    let pid = lab.shell_pid().await;
    let (report, ()) = tokio::join!(lab.run("echo begun; sleep 100"), async {
        until("the sleep", || process::descendants(pid).len() == 1).await;
        kill(pid);
    });
    let loss = report.loss.unwrap();
    assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 137 }, "begun"));
    assert_eq!((loss.exit.signal, loss.before_command), (Some(9), false));
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_command_that_was_sent_at_the_moment_of_death_is_reported_once() {
    let lab = Lab::new().await;
    for _round in 0..20 {
        let pid = lab.shell_pid().await;
        kill(pid);
        let report = lab.run("echo raced").await;
        // It ran in the new shell, or died with the old one; it is never both and never lost.
        let ran = report.end == RunEnd::Completed { status: 0 } && report.output == "raced";
        let died = report.end == RunEnd::Completed { status: 137 } && report.loss.is_some();
        assert!(ran || died, "{report:?}");
        lab.check("echo next", done("next", 0)).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn background_jobs_survive_the_replacement_of_their_shell_and_end_with_the_session() {
    let lab = Lab::new().await;
    let job = lab.run("sleep 1000 &").await.facts.background_pid.unwrap();
    lab.check("exit 1", done("", 1).with_loss(Lost::Exited(1))).await;
    lab.check(run(&format!("kill -0 {job}")), done("", 0)).await;
    assert!(is_alive(job));
    lab.close().await;
    assert!(!is_alive(job));
}

#[tokio::test]
async fn a_shell_with_stopped_jobs_warns_before_it_ends() {
    let lab = Lab::new().await;
    lab.check(soon(run("cat")), runs("")).await;
    lab.run(input("C-z")).await;
    lab.check("exit", done("exit\nThere are stopped jobs.", 1)).await;
    let report = lab.run("exit").await;
    assert_eq!(report.loss.map(|loss| loss.exit.code), Some(Some(1)), "{report:?}");
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_start_up_file_that_fails_does_not_keep_the_shell_from_working() {
    let files = [
        "exit 3",
        "set -e\nfalse",
        "kill -9 $$",
        "exec true",
        "exec sleep 1000",
        "sleep 1000",
        "read answer",
        "cat",
        "while :; do :; done",
        "exec >/dev/null 2>&1",
        "exec bash --norc",
        "trap 'exit 1' DEBUG",
        "echo \"unclosed",
        "if true; then",
        "syntax error )(",
    ];
    each(files, async |bashrc| {
        let lab = Lab::start(Some(bashrc), |options| options.startup_limit = Duration::from_millis(400)).await;
        lab.prepare("exec >/dev/tty 2>&1").await;
        for (text, output, status) in [("echo works", "works", 0), ("(exit 3)", "", 3), ("echo $?", "3", 0)] {
            let report = lab.run(text).await;
            assert_eq!(
                (report.output.as_str(), report.end),
                (output, RunEnd::Completed { status }),
                "{text}: {bashrc}"
            );
        }
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_start_up_file_that_works_for_longer_than_its_limit_is_read_to_its_end() {
    let bashrc = "end=$((${EPOCHREALTIME/./} + 800000)); while ((${EPOCHREALTIME/./} < end)); do :; done; read_all=yes";
    let lab = Lab::start(Some(bashrc), |options| options.startup_limit = Duration::from_millis(400)).await;
    lab.check("echo $read_all", done("yes", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_start_up_file_is_read_and_what_it_prints_belongs_to_no_command() {
    let bashrc = "echo hello; echo world >&2; export A=1; f() { echo f; }; alias e=echo; cd /; PS1='> '; \
        PROMPT_COMMAND='true'; trap ':' DEBUG; set -u; shopt -s nullglob\nprintf 'no newline'";
    let lab = Lab::start(Some(bashrc), |_| {}).await;
    lab.check("e $A; f", done("1\nf", 0).in_directory("/")).await;
    lab.check("(exit 3)", done("", 3).in_directory("/")).await;
    assert_eq!(lab.log(), "1\nf\n");
    lab.close().await;
}

#[tokio::test]
async fn a_start_up_file_that_sets_e_ends_the_shell_at_the_first_failure_only() {
    let lab = Lab::start(Some("set -e"), |_| {}).await;
    lab.check("echo a", done("a", 0)).await;
    lab.check("false", done("", 1).with_loss(Lost::Exited(1))).await;
    lab.check("echo b", done("b", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_missing_start_directory_is_replaced_by_one_that_exists() {
    let lab = Lab::start(None, |options| options.directory = "/does/not/exist".into()).await;
    let own = std::env::current_dir().unwrap();
    lab.check("pwd", done(&own.display().to_string(), 0).in_directory(own.clone())).await;
    lab.close().await;
}

#[tokio::test]
async fn a_shell_of_another_user_works_like_any_other() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let lab = Lab::start(None, |options| {
        options.identity = Some(Identity { uid: 65534, gid: 65534, groups: vec![65534] });
        options.directory = "/tmp".into();
    })
    .await;
    for (text, output, status) in [
        ("id -u; id -g", "65534\n65534", 0),
        ("echo $((1))\necho b", "1\nb", 0),
        ("echo c >/dev/stdout; echo d >/dev/tty", "c\nd", 0),
        ("cat /etc/shadow 2>/dev/null", "", 1),
        (&format!("echo {} | wc -c", "x".repeat(9_000)), "9001", 0),
    ] {
        lab.check(text, done(output, status).in_directory("/tmp")).await;
    }
    lab.close().await;
}

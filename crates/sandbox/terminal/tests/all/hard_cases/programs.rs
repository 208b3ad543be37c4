//! Nested shells, interpreters, full-screen programs, programs that read, and background jobs.

use std::{fs, time::Duration};

use gloveport_terminal::RunEnd;

use crate::hard_cases::support::{Lab, done, each, goes_on, input, installed, later, run, runs, soon};

#[tokio::test]
async fn a_nested_shell_that_sets_its_own_prompt_takes_commands_and_its_status_is_the_last_ones() {
    let shells = ["bash --norc", "bash --norc --noediting", "bash --posix --norc", "env -i PS1='nested> ' bash --norc"];
    each(shells, async |shell| {
        let lab = Lab::new().await;
        lab.prepare("export PS1='nested> '").await;
        lab.check(shell, done("", 0)).await;
        lab.check("echo $((6 * 7))", done("42", 0)).await;
        lab.check("cd /; (exit 3)", done("", 3).in_directory("/")).await;
        lab.check("exit 4", done("exit", 4)).await;
        lab.check("echo outer", done("outer", 0)).await;
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn another_kind_of_shell_is_a_program_like_any_other() {
    let lab = Lab::new().await;
    lab.check(soon(run("PS1='% ' sh")), runs("%")).await;
    lab.check(soon(input("echo a")), goes_on("a\n%")).await;
    lab.check(input("exit 5"), done("", 5).after_reports()).await;
    if installed("su") && rustix::process::geteuid().is_root() {
        lab.check("su root -c 'echo $((6 * 7)); exit 3'", done("42", 3)).await;
        lab.check(soon(run("su -s /bin/sh nobody -c 'echo ready; read x; echo got $x'")), runs("ready")).await;
        lab.check(input("y"), done("got y", 0).after_reports()).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn an_interpreter_answers_line_by_line() {
    let lab = Lab::new().await;
    lab.check(later(run("python3 -q")), runs(">>>")).await;
    lab.check(soon(input("x = 20 + 1")), goes_on(">>>")).await;
    lab.check(soon(input("print(x * 2)")), goes_on("42\n>>>")).await;
    lab.check(soon(input("1/0")).no_change_after(Duration::from_secs(5)), goes_on(
        "Traceback (most recent call last):\n  File \"<stdin>\", line 1, in <module>\nZeroDivisionError: division by zero\n>>>",
    ))
    .await;
    lab.check(input("exit(3)"), done("", 3).after_reports()).await;
    lab.close().await;
}

#[tokio::test]
async fn programs_that_read_get_what_is_typed() {
    let lab = Lab::new().await;
    lab.check(soon(run("cat")), runs("")).await;
    lab.check(soon(input("one")), goes_on("one")).await;
    lab.check(soon(input("two")), goes_on("two")).await;
    lab.check(input("C-d"), done("", 0).after_reports()).await;
    lab.check(soon(run("read -p 'Name: ' n; echo \"<$n>\"")), runs("Name:")).await;
    lab.check(input("A B"), done("<A B>", 0).after_reports()).await;
    lab.check(soon(run("sort")), runs("")).await;
    lab.check(soon(input("b")), goes_on("")).await;
    lab.check(soon(input("a")), goes_on("")).await;
    lab.check(input("C-d"), done("a\nb", 0).after_reports()).await;
    lab.check(soon(run("select x in p q; do echo $x; break; done")), runs("1) p\n2) q\n#?")).await;
    lab.check(input("2"), done("q", 0).after_reports()).await;
    lab.check(later(run("python3 -c 'import getpass; print(len(getpass.getpass()))'")), runs("Password:")).await;
    lab.check(input("secret"), done("6", 0).after_reports()).await;
    lab.close().await;
}

#[tokio::test]
async fn pagers_show_a_screen_and_leave_nothing_for_the_next_command() {
    let lab = Lab::new().await;
    lab.prepare("seq 1 3000 > f").await;
    for pager in ["more", "less"] {
        if !installed(pager) {
            continue;
        }
        let report = lab.run(later(run(&format!("{pager} f")))).await;
        assert_eq!(report.end, RunEnd::TimedOut, "{pager}");
        let first: Vec<&str> = report.output.lines().take(998).collect();
        let expected: Vec<String> = (1..=998).map(|number| number.to_string()).collect();
        assert_eq!(first, expected, "{pager}");
        let report = lab.run(input("q")).await;
        assert_eq!(report.end, RunEnd::Completed { status: 0 }, "{pager}: {}", report.output);
        lab.check("echo next", done("next", 0)).await;
    }
    lab.close().await;
}

#[tokio::test]
async fn a_full_screen_program_shows_its_screen_and_its_end_shows_the_old_one() {
    let lab = Lab::new().await;
    fs::write(
        lab.work.join("screen.py"),
        "import curses\n\
         def main(screen):\n\
         \x20   screen.addstr(2, 4, 'Hello')\n\
         \x20   screen.addstr(4, 4, 'World', curses.A_REVERSE)\n\
         \x20   screen.refresh()\n\
         \x20   screen.getkey()\n\
         curses.wrapper(main)\n",
    )
    .unwrap();
    lab.check(later(run("echo before; python3 screen.py; echo after")), runs("Hello\n\n    World")).await;
    lab.check(input("x"), done("before\nafter", 0).after_reports()).await;
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn an_editor_is_used_and_left() {
    if !installed("vi") {
        return;
    }
    let lab = Lab::new().await;
    lab.prepare("echo one > f").await;
    let report = lab.run(later(run("vi -u NONE -i NONE f"))).await;
    assert!(report.output.starts_with("one\n~\n~\n"), "{:?}", report.output.get(..60));
    let report = lab.run(input(":s/one/two/|wq")).await;
    assert_eq!(report.end, RunEnd::Completed { status: 0 });
    lab.check("cat f", done("two", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_process_viewer_is_used_and_left() {
    if !installed("top") {
        return;
    }
    let lab = Lab::new().await;
    let report = lab.run(later(run("top -d 0.1"))).await;
    assert!(report.output.contains("PID") && report.output.contains("COMMAND"), "{}", report.output);
    let report = lab.run(input("q")).await;
    assert_eq!(report.end, RunEnd::Completed { status: 0 });
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn what_a_background_job_prints_later_is_in_a_later_report() {
    let lab = Lab::new().await;
    let seen = lab.shell.output().end();
    let report = lab.run("(sleep 0.2; echo late) &").await;
    let pid = report.facts.background_pid.unwrap();
    assert_eq!(report.output, format!("[1] {pid}"));
    // The job's number, and then what it prints while the shell is idle.
    lab.shell.output().grown_beyond(seen + u64::try_from(report.output.len()).unwrap() + 1).await;
    lab.check("echo next", done("late\nnext", 0)).await;
    // Bash tells the end of the job with this prompt or the next one, or not at all if `wait` came first.
    let told = [lab.run("wait").await.output, lab.run("true").await.output].concat();
    assert!(["", "[1]+  Done                    ( sleep 0.2; echo late )"].contains(&told.as_str()), "{told:?}");
    lab.close().await;
}

#[tokio::test]
async fn output_of_a_job_without_a_line_end_does_not_swallow_the_next_commands() {
    let lab = Lab::new().await;
    lab.prepare("set +m").await;
    let report = lab.run("(sleep 0.2; printf 'no newline') &").await;
    assert_eq!(report.output, format!("[1] {}", report.facts.background_pid.unwrap()));
    lab.shell.output().grown_beyond(report.range.end).await;
    lab.check("echo next", done("no newline\nnext", 0)).await;
    lab.close().await;
}

//! Control keys, idle and running, and what programs do to the terminal and to the shell's descriptors.

use std::time::Duration;

use gloveport_terminal::RunEnd;

use crate::hard_cases::support::{Lab, Lost, done, each, goes_on, input, run, runs, soon, until};

#[tokio::test]
async fn keys_at_an_idle_prompt_do_what_they_do_to_an_empty_line() {
    let lab = Lab::new().await;
    lab.check("(exit 3)", done("", 3)).await;
    lab.check("C-c", done("^C", 130)).await;
    for key in ["C-z", "C-\\", "C-l", "C-u", "C-s", "C-q", "C-v"] {
        lab.check(key, done("", 130)).await;
    }
    lab.check("echo $?", done("130", 0)).await;
    lab.check("C-d", done("", 0).with_loss(Lost::Exited(0))).await;
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn keys_reach_the_program_that_runs() {
    let rows = [
        ("sleep 100", "C-c", "^C", 130),
        ("sleep 100", "C-\\", "^\\Quit", 131),
        ("cat", "C-d", "", 0),
        ("cat", "C-c", "^C", 130),
        ("read x", "C-c", "^C", 130),
        ("read x", "C-d", "", 1),
        ("while :; do :; done", "C-c", "^C", 130),
        ("trap '' INT; sleep 0.5; trap - INT; (exit 9)", "C-c", "^C", 9),
        ("bash -c 'trap \"echo caught\" INT; sleep 100; exit 9'", "C-c", "^Ccaught", 9),
        ("python3 -c 'while True: input()' 2>/dev/null", "C-d", "", 1),
    ];
    each(rows, async |(command, key, output, status)| {
        let lab = Lab::new().await;
        lab.prepare("ulimit -c 0").await;
        lab.check(soon(run(command)), runs("")).await;
        lab.check(input(key), done(output, status).after_reports()).await;
        lab.check("echo next", done("next", 0)).await;
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_stopped_job_is_reported_and_can_be_resumed() {
    let lab = Lab::new().await;
    lab.check(soon(run("cat")), runs("")).await;
    lab.check(input("C-z"), done("^Z\n[1]+  Stopped                 cat", 148).after_reports()).await;
    lab.check("echo between", done("between", 0)).await;
    lab.check(soon(run("fg")), runs("cat")).await;
    lab.check(soon(input("hello")), goes_on("hello")).await;
    lab.check(input("C-d"), done("", 0).after_reports()).await;
    lab.close().await;
}

/// The end of input that no program took is read by the shell, as on every terminal.
#[tokio::test]
async fn an_end_of_input_that_the_program_does_not_read_ends_the_shell_and_is_reported() {
    let lab = Lab::new().await;
    lab.check(soon(run("sleep 0.5; (exit 3)")), runs("")).await;
    lab.check(input("C-d"), done("", 3).after_reports()).await;
    until("the new shell", || lab.shell.facts().status == 0).await;
    lab.check("echo next", done("next", 0).with_loss(Lost::ExitedBefore(3))).await;
    lab.check("echo again", done("again", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn what_a_command_does_to_the_terminal_ends_with_it() {
    let changes =
        ["stty echo", "stty -echo", "stty raw", "stty -icanon -isig", "stty sane", "stty -opost", "stty intr x"];
    each(changes, async |change| {
        let lab = Lab::new().await;
        lab.prepare(change).await;
        lab.check("echo one\necho $((1+1))", done("one\n2", 0)).await;
        lab.check("stty -g >/dev/null; printf 'a\\nb\\n'", done("a\nb", 0)).await;
        lab.check(soon(run("cat")), runs("")).await;
        lab.check(soon(input("text")), goes_on("text")).await;
        lab.check(input("C-c"), done("^C", 130).after_reports()).await;
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_secret_that_is_asked_for_is_not_shown() {
    let lab = Lab::new().await;
    lab.check(soon(run("read -s -p 'Password: ' p; echo; echo ${#p}")), runs("Password:")).await;
    lab.check(input("secret"), done("6", 0).after_reports()).await;
    let command = "stty -echo; read -r p; stty echo; echo ${#p}; read -r q; echo \"[$q]\"";
    lab.check(soon(run(command)), runs("")).await;
    lab.check(soon(input("secret")), goes_on("6")).await;
    lab.check(input("shown"), done("[shown]", 0).after_reports()).await;
    assert!(!lab.log().contains("secret"));
    lab.close().await;
}

#[tokio::test]
async fn the_shells_own_descriptors_may_be_redirected_and_closed() {
    let lab = Lab::new().await;
    lab.check_table(&[
        ("exec >/dev/null", "", 0),
        ("echo n", "", 0),
        ("(exit 3)", "", 3),
        ("pwd; echo n >&2", "n", 0),
        ("exec >/dev/tty", "", 0),
        ("echo m", "m", 0),
        ("exec 2>/dev/null", "", 0),
        ("nonexistent", "", 127),
        ("echo o", "o", 0),
        ("exec 2>&1", "", 0),
        ("exec >&-", "", 0),
        ("echo p", "bash: echo: write error: Bad file descriptor", 1),
        ("(exit 4)", "", 4),
        ("exec 2>&-", "", 0),
        ("(exit 5)", "", 5),
        ("exec >/dev/tty 2>&1", "", 0),
        ("echo q; echo q >&2", "q\nq", 0),
        ("exec 3</etc/passwd 4>&1; echo r >&4", "r", 0),
    ])
    .await;
    lab.check("exec </dev/null; (exit 7)", done("", 7)).await;
    until("the new shell", || lab.shell.facts().status == 0).await;
    lab.check("echo next", done("next", 0).with_loss(Lost::ExitedBefore(7))).await;
    lab.check("echo again", done("again", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn an_interrupt_that_comes_while_the_shell_starts_a_program_is_not_lost() {
    let lab = Lab::new().await;
    for round in 0..60 {
        let seen = lab.shell.output().end();
        let (report, ()) = tokio::join!(lab.run("echo ready; sleep 1000"), async {
            lab.shell.output().grown_beyond(seen).await;
            // From before the process is made until after it has the terminal.
            tokio::time::sleep(Duration::from_micros(100 * (round % 20))).await;
            lab.shell.type_in("C-c").await.unwrap();
        });
        assert_eq!(report.end, RunEnd::Completed { status: 130 }, "round {round}: {report:?}");
    }
    lab.close().await;
}

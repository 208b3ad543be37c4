//! Callers that leave, that queue, and that look on; and the end of a session.

use std::time::{Duration, Instant};

use gloveport_sys::process;
use gloveport_terminal::{Progress, RunEnd, RunRequest, TerminalError, Usage};
use tokio::{sync::watch, time::timeout};

use crate::hard_cases::support::{Lab, done, each, goes_on, input, is_alive, run, runs, soon, until, within};

#[tokio::test]
async fn a_command_whose_caller_left_goes_on_and_is_fetched_later() {
    let lab = Lab::new().await;
    let left = timeout(Duration::from_millis(200), lab.shell.run(run("echo one; sleep 0.6; echo two; (exit 3)"))).await;
    assert!(left.is_err());
    lab.check("echo no", refused("one")).await;
    lab.check("", done("two", 3).after_reports()).await;
    // Also when it ended while nobody was there.
    let left = timeout(Duration::from_millis(100), lab.shell.run(run("sleep 0.3; echo three; (exit 4)"))).await;
    assert!(left.is_err());
    tokio::time::sleep(Duration::from_millis(500)).await;
    lab.check("", done("three", 4)).await;
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

fn refused(output: &str) -> crate::hard_cases::support::Expected<'_> {
    runs(output).ending(RunEnd::Refused)
}

/// CPU time of this process, in clock ticks.
fn own_cpu() -> u64 {
    process::stat(std::process::id()).unwrap().cpu_ticks
}

#[tokio::test]
async fn a_session_that_nobody_waits_for_uses_no_cpu() {
    let lab = Lab::new().await;
    let (progress, _seen) = watch::channel(Progress::default());
    for (command, typed) in
        [("sleep 1", None), ("cat", Some("x")), ("sleep 0.1", Some("echo typed")), ("cat; cat", Some("C-d"))]
    {
        let request = RunRequest { progress: Some(progress.clone()), ..run(command) };
        let left = timeout(Duration::from_millis(50), lab.shell.run(request)).await;
        assert!(left.is_err());
        if let Some(text) = typed {
            lab.shell.type_in(text).await.unwrap();
        }
        let before = own_cpu();
        tokio::time::sleep(Duration::from_millis(400)).await;
        let used = own_cpu() - before;
        assert!(used <= 5, "{command}: {used} clock ticks in 400 ms");
        lab.shell.type_in("C-c").await.unwrap();
        within("the end", lab.shell.run(run(""))).await.unwrap();
    }
    lab.close().await;
}

#[tokio::test]
async fn a_request_that_is_dropped_before_its_turn_never_runs() {
    let lab = Lab::new().await;
    let (first, second) = tokio::join!(
        lab.shell.run(run("sleep 0.5; echo first")),
        timeout(Duration::from_millis(200), lab.shell.run(run("touch second"))),
    );
    assert!(second.is_err());
    assert_eq!(first.unwrap().output, "first");
    let report = lab.shell.run(run("ls")).await.unwrap();
    assert_eq!(report.output, "");
    lab.close().await;
}

#[tokio::test]
async fn requests_run_in_the_order_in_which_they_came() {
    let lab = Lab::new().await;
    let numbers = 0..20;
    let shell = &lab.shell;
    let runs: Vec<_> = numbers
        .clone()
        .map(|number| {
            let shell = shell.clone();
            let command = format!("echo {number} >> order; sleep 0.0{}; echo {number}", number % 3);
            tokio::spawn(async move { shell.run(RunRequest::command(command)).await.unwrap().output })
        })
        .collect();
    for (number, run) in numbers.clone().zip(runs) {
        assert_eq!(within("a queued command", run).await.unwrap(), number.to_string());
    }
    let expected: Vec<String> = numbers.map(|number| number.to_string()).collect();
    assert_eq!(shell.run(run("cat order")).await.unwrap().output, expected.join("\n"));
    lab.close().await;
}

/// A shell runs `sleep`. A key that comes before that is one for the shell, which may take it for the program's.
fn sleeps(shell: u32) -> bool {
    process::descendants(shell).into_iter().any(|pid| process::stat(pid).is_some_and(|stat| stat.name == "sleep"))
}

#[tokio::test]
async fn typing_while_somebody_waits_reaches_the_program() {
    let lab = Lab::new().await;
    let pid = lab.shell_pid().await;
    let seen = lab.shell.output().end();
    let (report, ()) = tokio::join!(lab.run("echo ready; read -r x; echo \"[$x]\"; sleep 100"), async {
        lab.shell.output().grown_beyond(seen).await;
        lab.shell.type_in("typed").await.unwrap();
        until("the sleep", || sleeps(pid)).await;
        lab.shell.type_in("C-c").await.unwrap();
    });
    assert_eq!((report.end, report.output.as_str()), (RunEnd::Completed { status: 130 }, "ready\n[typed]\n^C"));
    lab.check("echo next", done("next", 0)).await;
    lab.close().await;
}

#[tokio::test]
async fn a_closed_session_leaves_no_process_and_answers_that_it_is_closed() {
    let lab = Lab::new().await;
    let shell = lab.shell_pid().await;
    lab.prepare("sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & (trap '' HUP TERM; sleep 1000) & disown -a").await;
    lab.check(soon(run("setsid -w sleep 1000")), runs("")).await;
    let processes: Vec<u32> = [vec![shell], process::descendants(shell)].concat();
    assert!(processes.len() >= 6, "{processes:?}");
    let handle = lab.shell.clone();
    lab.close().await;
    assert_eq!(processes.into_iter().filter(|pid| is_alive(*pid)).collect::<Vec<_>>(), Vec::<u32>::new());
    assert!(matches!(handle.run(run("echo a")).await, Err(TerminalError::Closed)));
    assert!(matches!(handle.type_in("a").await, Err(TerminalError::Closed)));
}

#[tokio::test]
async fn a_session_ends_when_its_last_handle_is_dropped() {
    let lab = Lab::new().await;
    let shell = lab.shell_pid().await;
    lab.check(soon(run("sleep 1000")), runs("")).await;
    drop(lab);
    until("the end of the shell", || !is_alive(shell)).await;
}

#[tokio::test]
async fn somebody_who_waits_is_told_when_the_session_is_closed() {
    let lab = Lab::new().await;
    let handle = lab.shell.clone();
    let (report, ()) = tokio::join!(handle.run(run("echo ready; sleep 1000")), async {
        lab.shell.output().grown_beyond(0).await;
        within("closing", lab.shell.close()).await;
    });
    assert!(matches!(report, Err(TerminalError::Closed)), "{report:?}");
}

/// Runs a command with somebody who looks on, until the program waits for input or the time is over, and ends it with
/// a text.
async fn seen_waiting(lab: &Lab, command: &str, end: &str, limit: Duration) -> bool {
    let (progress, mut seen) = watch::channel(Progress::default());
    let request = RunRequest { progress: Some(progress), ..run(command) };
    let (start, handle) = (lab.shell.output().end(), lab.shell.clone());
    let running = tokio::spawn(async move { handle.run(request).await });
    within("the start", seen.wait_for(|progress| progress.start.is_some())).await.unwrap();
    assert_eq!(seen.borrow().start, Some(start), "{command}");
    let waits = timeout(limit, seen.wait_for(|progress| progress.waiting_for_input)).await.is_ok();
    lab.shell.type_in(end).await.unwrap();
    within("the end", running).await.unwrap().unwrap();
    waits
}

#[tokio::test]
async fn a_program_that_waits_for_input_is_seen_within_300_ms() {
    let lab = Lab::new().await;
    for (command, end) in [
        ("read x", "C-c"),
        ("read -p 'Name: ' x", "C-c"),
        ("cat", "C-c"),
        ("sort", "C-d"),
        ("python3 -c 'input()'", "x"),
        ("python3 -q", "exit()"),
        ("bash --norc", "exit"),
        ("cat | cat", "C-d"),
        ("echo \"unfinished", "C-c"),
    ] {
        // An interpreter starts before it waits.
        let limit = Duration::from_millis(if command.contains("python3") { 1000 } else { 300 });
        assert!(seen_waiting(&lab, command, end, limit).await, "{command}");
    }
    lab.close().await;
}

#[tokio::test]
async fn a_program_that_only_takes_its_time_does_not_wait_for_input() {
    let commands = [
        "sleep 10",
        "while :; do :; done",
        "sleep 10 | cat",
        "cat < <(sleep 10)",
        "python3 -c 'import time; time.sleep(10)'",
    ];
    each(commands, async |command| {
        let lab = Lab::new().await;
        assert!(!seen_waiting(&lab, command, "C-c", Duration::from_millis(400)).await, "{command}");
        lab.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_line_that_is_not_to_be_shown_is_told_from_one_that_is() {
    let lab = Lab::new().await;
    for (command, hides) in [("read x", false), ("read -s x", true), ("read -rp 'Name: ' x", false), ("cat", false)] {
        let (progress, mut seen) = watch::channel(Progress::default());
        let request = RunRequest { progress: Some(progress), ..run(command) };
        let handle = lab.shell.clone();
        let running = tokio::spawn(async move { handle.run(request).await });
        within("waiting", seen.wait_for(|progress| progress.waiting_for_input)).await.unwrap();
        assert_eq!(seen.borrow().hides_input, hides, "{command}");
        lab.shell.type_in("C-c").await.unwrap();
        within("the end", running).await.unwrap().unwrap();
    }
    lab.close().await;
}

#[tokio::test]
async fn waiting_is_over_as_soon_as_the_program_goes_on() {
    let lab = Lab::new().await;
    let (progress, mut seen) = watch::channel(Progress::default());
    let request = RunRequest { progress: Some(progress), ..run("read x; echo busy; sleep 10") };
    let handle = lab.shell.clone();
    let pid = lab.shell_pid().await;
    let running = tokio::spawn(async move { handle.run(request).await });
    within("waiting", seen.wait_for(|progress| progress.waiting_for_input)).await.unwrap();
    lab.shell.type_in("y").await.unwrap();
    within("going on", seen.wait_for(|progress| !progress.waiting_for_input)).await.unwrap();
    until("the sleep", || sleeps(pid)).await;
    lab.shell.type_in("C-c").await.unwrap();
    within("the end", running).await.unwrap().unwrap();
    lab.close().await;
}

/// As a client of the native interface talks to a program.
#[tokio::test]
async fn a_session_of_thirty_inputs_takes_no_more_than_three_seconds() {
    let lab = Lab::new().await;
    let mut best = Duration::MAX;
    // A machine that is busy with something else may take longer.
    for _attempt in 0..8 {
        let began = Instant::now();
        let (progress, mut seen) = watch::channel(Progress::default());
        let request = RunRequest { progress: Some(progress), ..run("python3 -q") };
        let handle = lab.shell.clone();
        let running = tokio::spawn(async move { handle.run(request).await });
        for number in 0..30 {
            within("waiting", seen.wait_for(|progress| progress.waiting_for_input)).await.unwrap();
            let from = lab.shell.output().end();
            lab.shell.type_in(format!("print({number} * 2 + 1000)")).await.unwrap();
            let answer = format!("{}\n>>> ", number * 2 + 1000);
            let shown = || String::from_utf8_lossy(&lab.bytes(from..lab.shell.output().end())).replace('\r', "");
            until("the answer", || shown().contains(&answer)).await;
        }
        lab.shell.type_in("exit(3)").await.unwrap();
        let report = within("the end", running).await.unwrap().unwrap();
        assert_eq!(report.end, RunEnd::Completed { status: 3 });
        best = best.min(began.elapsed());
        if best <= Duration::from_secs(3) {
            break;
        }
    }
    assert!(best <= Duration::from_secs(3), "{best:?}");
    lab.close().await;
}

#[tokio::test]
async fn a_request_that_asks_for_it_is_answered_when_its_program_waits_for_input() {
    let lab = Lab::new().await;
    let waits = |output| runs(output).ending(RunEnd::Waiting);
    let ask = |request: RunRequest| request.answer_when_waiting();
    lab.check(ask(run("read -r -p 'One: ' x; sleep 0.5; read -r -p 'Two: ' y; echo \"$x$y\"")), waits("One:")).await;
    lab.check(ask(input("a")), waits("Two:").after_reports()).await;
    lab.check(ask(run("")), waits("").after_reports()).await;
    lab.check(ask(input("b")), done("ab", 0).after_reports()).await;
    lab.check(ask(run("echo 'c")), waits("")).await;
    lab.check(ask(input("d'")), done("c\nd", 0).after_reports()).await;
    lab.check(ask(run("sleep 0.5; echo e")), done("e", 0)).await;
    lab.check(ask(run("bash --norc")), done("", 0)).await;
    lab.check(ask(run("script -qc 'read -r x; sleep 0.5; echo \"<$x>\"' /dev/null")), waits("")).await;
    lab.check(ask(input("f")), done("<f>", 0).after_reports()).await;
    lab.check(ask(run("exit 4")), done("exit", 4)).await;
    lab.close().await;
}

async fn usage(lab: &Lab, command: &str) -> Usage {
    let (progress, _seen) = watch::channel(Progress::default());
    let request = RunRequest { progress: Some(progress), ..run(command) };
    let report = within(command, lab.shell.run(request)).await.unwrap();
    assert_eq!(report.end, RunEnd::Completed { status: 0 }, "{command}: {}", report.output);
    report.usage.unwrap()
}

#[tokio::test]
async fn what_a_command_used_is_measured() {
    // Temporary files may be in memory, and what is written there is not written to storage.
    let directory = env!("CARGO_TARGET_TMPDIR");
    std::fs::create_dir_all(directory).unwrap();
    let lab = Lab::start(None, |options| options.directory = directory.into()).await;
    let busy = "python3 -c 'import time; [0 for _ in iter(lambda: time.process_time() < 0.3, False)]'";
    let busy = usage(&lab, busy).await;
    assert!(busy.cpu >= Duration::from_millis(200), "{busy:?}");
    let own = usage(&lab, "for ((i = 0; i < 200000; i++)); do :; done").await;
    assert!(own.cpu >= Duration::from_millis(50), "{own:?}");
    let large = usage(&lab, "python3 -c 'x = b\"a\" * 100_000_000; import time; time.sleep(0.3)'").await;
    assert!(large.peak_memory.unwrap() >= 100_000_000, "{large:?}");
    let written =
        usage(&lab, "f=$(mktemp ./XXXXXX); dd if=/dev/zero of=$f bs=1M count=8 conv=fsync status=none; rm $f").await;
    assert!(written.bytes_written.is_none_or(|bytes| bytes >= 8 * 1024 * 1024), "{written:?}");
    let idle = usage(&lab, "sleep 0.3").await;
    assert!(idle.cpu < Duration::from_millis(100) && idle.peak_memory.unwrap() < 20_000_000, "{idle:?}");
    assert!(lab.shell.run(run("true")).await.unwrap().usage.is_none(), "nobody asked");
    lab.close().await;
}

#[tokio::test]
async fn the_soft_limit_starts_anew_with_every_change_of_the_screen() {
    let lab = Lab::new().await;
    let no_change = Duration::from_millis(400);
    let command = run("for i in 1 2 3 4; do sleep 0.2; echo $i; done; sleep 100").no_change_after(no_change);
    let report = lab.run(command).await;
    assert_eq!((report.end, report.output.as_str()), (RunEnd::NoChange, "1\n2\n3\n4"));
    lab.check(input("C-c"), done("^C", 130).after_reports()).await;
    lab.check(soon(run("cat")), runs("")).await;
    lab.check(soon(input("x")), goes_on("x")).await;
    lab.close().await;
}

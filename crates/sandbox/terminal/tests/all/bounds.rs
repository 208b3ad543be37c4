//! What a session may use: memory, descriptors and processes stay bounded whatever its programs do.
//!
//! The memory of the whole process is measured, so the tests of this file run one after the other.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use gloveport_screen::{Renderer, Size};
use gloveport_sys::process;
use gloveport_terminal::{RunEnd, RunRequest, Shell, ShellOptions};
use tempfile::TempDir;
use tokio::{sync::Mutex, task::JoinSet};

const MIB: u64 = 1024 * 1024;

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

fn options(home: &Path) -> ShellOptions {
    let mut options = ShellOptions::inherited(home.to_owned());
    options.environment = vec![("HOME".into(), home.into()), ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    options
}

async fn start() -> (Shell, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let shell = Shell::start(options(home.path())).await.unwrap();
    (shell, home)
}

async fn run(shell: &Shell, request: RunRequest) -> gloveport_terminal::RunReport {
    let text = request.text.clone();
    let report = tokio::time::timeout(Duration::from_mins(1), shell.run(request)).await;
    report.unwrap_or_else(|_elapsed| panic!("{text} took more than a minute")).unwrap()
}

/// Resident private memory of this process.
fn memory() -> u64 {
    process::resident(std::process::id()).unwrap().1
}

/// Looks at this process's memory until the task is aborted, and keeps the largest value.
fn watch_memory() -> (tokio::task::JoinHandle<()>, tokio::sync::watch::Receiver<u64>) {
    let (largest, seen) = tokio::sync::watch::channel(memory());
    let watching = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(2)).await;
            largest.send_modify(|largest| *largest = memory().max(*largest));
        }
    });
    (watching, seen)
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_megabytes_of_output_take_bounded_memory() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (shell, _home) = start().await;
    let before = memory();
    let (watching, largest) = watch_memory();
    for (command, bytes) in [
        ("yes 'a line of thirty-one characters' | head -c 100000000", 100_000_000),
        ("head -c 10000000 /dev/zero | tr '\\0' x", 10_000_000),
    ] {
        let report = run(&shell, RunRequest::command(command)).await;
        assert_eq!(report.end, RunEnd::Completed { status: 0 }, "{command}");
        assert_eq!(report.range.end - report.range.start, bytes, "{command}");
    }
    watching.abort();
    let grown = largest.borrow().saturating_sub(before);
    assert!(grown <= 32 * MIB, "{} MiB more than before", grown / MIB);
    assert_eq!(run(&shell, RunRequest::command("echo next")).await.output, "next");
    shell.close().await;
}

#[test]
fn the_terminal_itself_holds_bounded_memory() {
    let _alone = ONE_AT_A_TIME.blocking_lock();
    let mut renderer = Renderer::new(Size::default());
    let line = "a line of fifty characters, which is what many are\n".repeat(1000);
    let mut largest = 0;
    for _piece in 0..(100_000_000 / line.len()) {
        renderer.feed(line.as_bytes());
        largest = largest.max(renderer.heap_bytes());
    }
    assert!(u64::try_from(largest).unwrap() <= 16 * MIB, "{largest}");
    renderer.clear();
    assert!(renderer.heap_bytes() < 100_000, "{}", renderer.heap_bytes());
}

#[tokio::test]
async fn timed_endless_output_is_interrupted_at_once_and_takes_bounded_memory() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (shell, _home) = start().await;
    let before = memory();
    let report = run(&shell, RunRequest::command("yes").at_most(Duration::from_secs(2))).await;
    assert_eq!(report.end, RunEnd::TimedOut);
    assert!(report.range.end > 1_000_000, "{:?}", report.range);
    assert!(report.output.lines().all(|line| line == "y"));
    let asked = Instant::now();
    let report = run(&shell, RunRequest::input("C-c")).await;
    assert_eq!(report.end, RunEnd::Completed { status: 130 });
    assert!(asked.elapsed() < Duration::from_secs(1).mul_f64(gloveport_testing::pace()), "{:?}", asked.elapsed());
    // What was on its way comes behind the key.
    assert!(
        report.output.lines().all(|line| ["y", "^C", "y^C", "^Cy"].contains(&line)),
        "{:?}",
        report.output.get(..20)
    );
    assert_eq!(report.output.matches("^C").count(), 1);
    let grown = memory().saturating_sub(before);
    assert!(grown <= 32 * MIB, "{} MiB more than before", grown / MIB);
    assert_eq!(run(&shell, RunRequest::command("echo next")).await.output, "next");
    shell.close().await;
}

#[tokio::test]
async fn ten_thousand_commands_leave_nothing_behind() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (shell, _home) = start().await;
    let command = |number: usize| match number % 10 {
        0 => RunRequest::script(format!("echo {number}\necho $((1))")),
        1 => RunRequest::command(format!("cat <<E\n{number}\nE")),
        2 => RunRequest::command(format!("x={number}; (exit 3); echo $x")),
        _ => RunRequest::command(format!("echo {number}")),
    };
    let mut counts = None;
    for number in 0..11_000 {
        let report = run(&shell, command(number)).await;
        let first = report.output.lines().next().map(str::to_owned);
        assert_eq!(first, Some(number.to_string()));
        if number == 999 {
            counts = Some((memory(), descriptors(), process::descendants(std::process::id()).len()));
        }
    }
    let (memory_before, descriptors_before, processes_before) = counts.unwrap();
    assert_eq!(descriptors(), descriptors_before);
    assert_eq!(process::descendants(std::process::id()).len(), processes_before);
    let grown = memory().saturating_sub(memory_before);
    assert!(grown <= 2 * MIB, "{} KiB more than after the first thousand", grown / 1024);
    shell.close().await;
}

#[tokio::test]
async fn shells_that_are_replaced_again_and_again_leave_nothing_behind() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (shell, _home) = start().await;
    run(&shell, RunRequest::command("exit 3")).await;
    assert_eq!(run(&shell, RunRequest::command("echo a")).await.output, "a");
    let before = (descriptors(), process::descendants(std::process::id()).len());
    for _time in 0..50 {
        assert_eq!(run(&shell, RunRequest::command("exit 3")).await.end, RunEnd::Completed { status: 3 });
    }
    assert_eq!(run(&shell, RunRequest::command("echo a")).await.output, "a");
    assert_eq!((descriptors(), process::descendants(std::process::id()).len()), before);
    shell.close().await;
}

#[tokio::test]
async fn fifty_sessions_at_once_work_apart_from_each_other() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (first, _home) = start().await;
    first.close().await;
    let before = (descriptors(), process::descendants(std::process::id()).len());
    let mut sessions = JoinSet::new();
    for number in 0..50 {
        sessions.spawn(async move {
            let (shell, home) = start().await;
            run(&shell, RunRequest::command(format!("x={number}"))).await;
            let report = run(&shell, RunRequest::command("sleep 0.1; echo $x")).await;
            assert_eq!(report.output, number.to_string());
            (shell, home)
        });
    }
    let mut open = Vec::new();
    while let Some(session) = sessions.join_next().await {
        open.push(session.unwrap());
    }
    assert_eq!(process::descendants(std::process::id()).len() - before.1, 50);
    for (shell, _home) in &open {
        shell.close().await;
    }
    drop(open);
    let deadline = Instant::now() + Duration::from_secs(5);
    while descriptors() != before.0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((descriptors(), process::descendants(std::process::id()).len()), before);
}

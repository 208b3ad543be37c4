//! Kernels that die, are restarted, or are closed.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use gloveport_kernel::{Cell, CellEnd, KernelError, KernelState};
use gloveport_sys::process;
use gloveport_testing::{is_alive, until};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Fixture, cell, lines};

fn kill(pid: u32) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}

fn status(end: CellEnd) -> i32 {
    match end {
        CellEnd::Died(exit) => exit.shell_status(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn timed_a_kernel_that_dies_in_a_cell_is_reported_at_once_with_all_that_was_printed() {
    let fixture = Fixture::start();
    for (generation, (code, expected)) in [
        ("import os; print('last'); os._exit(7)", 7),
        ("import os; print('last'); os.kill(os.getpid(), 9)", 137),
        ("print('last'); import ctypes; ctypes.string_at(0)", 139),
        ("print('last'); import os; os.abort()", 134),
    ]
    .into_iter()
    .enumerate()
    {
        fixture.text("x = 1").await;
        let begin = Instant::now();
        let report = fixture.report(cell(code)).await;
        assert!(
            begin.elapsed() < Duration::from_secs(3).mul_f64(gloveport_testing::pace()),
            "{code:?} took {:?}",
            begin.elapsed()
        );
        assert_eq!((status(report.end), report.text.as_str()), (expected, "last\n"), "{code:?}");
        let report = fixture.report(cell("'x' in globals()")).await;
        assert_eq!((report.text.as_str(), report.lost_before), ("False", None), "it was told already");
        assert_eq!(fixture.ready(0).await.generation, generation as u64 + 1);
    }
}

#[tokio::test]
async fn timed_a_kernel_that_becomes_another_program_is_dead() {
    let fixture = Fixture::start();
    fixture.text("1").await;
    let begin = Instant::now();
    let report = fixture.report(cell("import os; print('last'); os.execv('/bin/sleep', ['sleep', '1000'])")).await;
    assert_eq!((status(report.end), report.text.as_str()), (137, "last\n"));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(fixture.text("2").await, "2");
}

#[tokio::test]
async fn a_cell_that_calls_exit_completes_and_the_next_one_runs_in_a_new_kernel() {
    let fixture = Fixture::start();
    for code in ["x = 1; exit()", "x = 1; quit()"] {
        let report = fixture.report(cell(code)).await;
        assert_eq!((report.end, report.lost_before), (CellEnd::Completed, None));
        let report = fixture.report(cell("'x' in globals()")).await;
        assert_eq!((report.end, report.text.as_str()), (CellEnd::Completed, "False"));
        assert_eq!(report.lost_before.map(|exit| exit.code), Some(Some(0)), "{code}");
    }
}

#[tokio::test]
async fn much_output_before_a_death_is_complete() {
    let fixture = Fixture::start();
    fixture.text("1").await;
    let report = fixture.report(cell("import os\nfor i in range(100_000): print(i)\nos.kill(os.getpid(), 9)")).await;
    assert_eq!(status(report.end), 137);
    assert!(report.text == lines(0..100_000));
}

#[tokio::test]
async fn a_kernel_that_is_killed_between_two_cells_is_told_once() {
    let fixture = Fixture::with(|options| options.startup = vec!["greeting = 'hello'".into()]);
    let directory = fixture.directory.path().canonicalize().unwrap();
    let at = |code: &str| Cell { directory: Some(directory.clone()), ..cell(code) };
    let report = fixture.report(at("x = 1; os.chdir('/')")).await;
    assert_eq!((report.end, report.lost_before), (CellEnd::Completed, None));
    kill(fixture.ready(0).await.pid);
    fixture.ready(1).await;
    let report = fixture.report(at("(greeting, 'x' in globals(), os.getcwd())")).await;
    assert_eq!(
        report.text,
        format!("('hello', False, '{}')", directory.display()),
        "started and told the directory anew"
    );
    assert_eq!(report.lost_before.map(|exit| exit.signal), Some(Some(9)));
    assert_eq!(fixture.report(at("1")).await.lost_before, None);
}

#[tokio::test]
async fn a_kernel_that_dies_at_each_start_is_given_up_and_tried_again_by_the_next_cell() {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    std::fs::write(&mark, "").unwrap();
    let code = format!("import os\nif os.path.exists('{}'): os._exit(3)", mark.display());
    let fixture = Fixture::with(|options| options.startup = vec![code]);
    let refused = fixture.kernel.execute(cell("1")).await.unwrap_err();
    let KernelError::Failed { reason, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(reason, "it ended with status 3 right after its start");
    assert!(matches!(&*fixture.kernel.state().borrow(), KernelState::Failed { .. }));
    std::fs::remove_file(mark).unwrap();
    assert_eq!(fixture.text("1").await, "1");
}

#[tokio::test]
async fn a_restart_ends_the_cell_that_runs_and_forgets_all() {
    let fixture = Fixture::start();
    fixture.text("x = 1").await;
    let first = fixture.ready(0).await;
    let (sender, mut progress) = tokio::sync::mpsc::channel(10);
    let code = "import time\nprint('begun', flush=True)\ntime.sleep(1000)";
    let running = fixture.kernel.execute(Cell { progress: Some(sender), limit: None, ..cell(code) });
    let restart = async {
        progress.recv().await.unwrap();
        fixture.kernel.restart().await.unwrap();
    };
    let (report, ()) = tokio::join!(running, restart);
    let report = report.unwrap();
    assert_eq!((status(report.end), report.text.as_str()), (137, "begun\n"));
    assert!(!is_alive(first.pid));
    let report = fixture.report(cell("'x' in globals()")).await;
    assert_eq!((report.text.as_str(), report.lost_before), ("False", None));
}

#[tokio::test]
async fn timed_closing_leaves_no_process_and_no_file_within_a_second() {
    for code in
        ["1", "import time; time.sleep(1000)", "import signal; signal.signal(15, signal.SIG_IGN)\nwhile True: pass"]
    {
        let temporary = tempfile::tempdir().unwrap();
        let fixture = Fixture::start();
        let start = "import subprocess, os\nd = subprocess.Popen(['sleep', '1000'])\nos.path.dirname(__import__('sys').argv[2]), d.pid";
        let text = fixture.text(start).await;
        let (directory, child) = text.trim_matches(['(', ')']).split_once(", ").unwrap();
        let (directory, child): (&Path, u32) = (Path::new(directory.trim_matches('\'')), child.parse().unwrap());
        assert!(!directory.exists(), "it is gone as soon as the kernel is up");
        let kernel = fixture.kernel.clone();
        let mark = temporary.path().join("mark");
        let running = cell(&format!("open('{}', 'w').close()\n{code}", mark.display()));
        let waiting = tokio::spawn(async move { kernel.execute(running).await });
        until("the cell has begun", || mark.exists()).await;
        let facts = fixture.ready(0).await;
        let begin = Instant::now();
        fixture.kernel.close().await;
        assert!(
            begin.elapsed() < Duration::from_secs(1).mul_f64(gloveport_testing::pace()),
            "{code:?} took {:?}",
            begin.elapsed()
        );
        assert!(!is_alive(facts.pid) && !is_alive(child), "{code:?}");
        if code != "1" {
            assert_eq!(waiting.await.unwrap(), Err(KernelError::Closed));
        }
        assert_eq!(fixture.kernel.execute(cell("1")).await, Err(KernelError::Closed));
        assert_eq!(*fixture.kernel.state().borrow(), KernelState::Closed);
        fixture.kernel.close().await;
    }
}

#[tokio::test]
async fn a_kernel_that_is_closed_or_dropped_while_it_starts_leaves_nothing() {
    for dropped in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().to_string_lossy().into_owned();
        let fixture = Fixture::with(|options| options.surroundings.set("GLOVEPORT_TEST_MARK", mark.as_str()));
        let marked = || {
            process::all().into_iter().filter(|pid| {
                std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
                    String::from_utf8_lossy(&bytes).contains(&format!("GLOVEPORT_TEST_MARK={mark}\0"))
                })
            })
        };
        until("a process of the start runs", || marked().count() > 0).await;
        if dropped {
            drop(fixture.kernel);
        } else {
            fixture.kernel.close().await;
        }
        until("all are gone", || marked().count() == 0).await;
    }
}

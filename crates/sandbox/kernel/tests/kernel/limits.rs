//! Time limits, interrupts and futures that are dropped.

use std::time::{Duration, Instant};

use gloveport_kernel::{Cell, CellEnd, KernelError};
use gloveport_testing::until;

use crate::support::{Fixture, LONG, cell, limited};

#[tokio::test]
async fn timed_a_cell_without_end_is_reported_in_time_and_the_kernel_keeps_its_variables() {
    let fixture = Fixture::start();
    fixture.text("x = 42").await;
    for code in [
        "print('begun', flush=True)\nwhile True: pass",
        "print('begun', flush=True)\nimport time; time.sleep(1000)",
        "print('begun', flush=True)\nimport subprocess; subprocess.run(['sleep', '1000'])",
        "print('begun', flush=True)\nimport asyncio; await asyncio.sleep(1000)",
    ] {
        let begin = Instant::now();
        let report = fixture.report(limited(code, 0.5)).await;
        assert!(
            begin.elapsed() < Duration::from_secs(3).mul_f64(gloveport_testing::pace()),
            "{code:?} took {:?}",
            begin.elapsed()
        );
        assert_eq!((report.text.as_str(), report.end), ("begun\n", CellEnd::TimedOut), "{code:?}");
        let report = fixture.report(cell("x")).await;
        assert_eq!((report.text.as_str(), report.lost_before), ("42", None), "{code:?}");
    }
}

#[tokio::test]
async fn timed_a_cell_that_ignores_interrupts_holds_the_next_one_no_longer_than_its_own_limit() {
    let fixture = Fixture::start();
    let code = "import time\nstop = time.monotonic() + 6\nwhile time.monotonic() < stop:\n    try:\n        time.sleep(60)\n    \
                except KeyboardInterrupt: print('no')\nx = 'kept'";
    fixture.text("1").await;
    assert_eq!(fixture.report(limited(code, 0.2)).await.end, CellEnd::TimedOut);
    let begin = Instant::now();
    let refused = fixture.kernel.execute(limited("1", 0.5)).await;
    assert_eq!(refused, Err(KernelError::NotReady(Duration::from_millis(500))));
    assert!(begin.elapsed() < Duration::from_secs(3).mul_f64(gloveport_testing::pace()));
    // The interrupts go on, so it is done when it takes one after its time.
    assert_eq!(fixture.text("x").await, "'kept'");
}

#[tokio::test]
async fn an_interrupt_raises_and_does_nothing_to_a_kernel_without_a_cell() {
    let fixture = Fixture::start();
    fixture.text("1").await;
    for _ in 0..20 {
        fixture.kernel.interrupt().await.unwrap();
        assert_eq!(fixture.text("2").await, "2");
    }
    let (sender, mut progress) = tokio::sync::mpsc::channel(10);
    let code = "import time\nprint('begun', flush=True)\ntime.sleep(1000)";
    let running = fixture.kernel.execute(Cell { progress: Some(sender), limit: None, ..cell(code) });
    let interrupt = async {
        progress.recv().await.unwrap();
        fixture.kernel.interrupt().await.unwrap();
    };
    let (report, ()) = tokio::join!(running, interrupt);
    let report = report.unwrap();
    assert_eq!(report.end, CellEnd::Raised);
    assert!(report.text.starts_with("begun\n") && report.text.contains("KeyboardInterrupt"), "{}", report.text);
}

#[tokio::test]
async fn a_cell_whose_future_is_dropped_runs_on_and_the_next_one_waits() {
    let fixture = Fixture::start();
    fixture.text("x = 0").await;
    let mark = fixture.directory.path().join("mark");
    let code = "import os, time\nopen('mark', 'w').close()\nwhile os.path.exists('mark'): time.sleep(0.01)\nx = 1";
    let running = tokio::spawn({
        let kernel = fixture.kernel.clone();
        async move { kernel.execute(cell(code)).await }
    });
    until("the cell has begun", || mark.exists()).await;
    running.abort();
    let next = fixture.kernel.execute(cell("x"));
    tokio::pin!(next);
    let early = tokio::time::timeout(Duration::from_millis(200), &mut next).await;
    assert!(early.is_err(), "the next cell waits");
    std::fs::remove_file(&mark).unwrap();
    assert_eq!(next.await.unwrap().text, "1");
}

#[tokio::test]
async fn timed_the_start_delays_nobody_and_counts_for_the_limit_of_a_cell() {
    let begin = Instant::now();
    let fixture =
        Fixture::with(|options| options.startup = vec!["import time; time.sleep(1)".into(), "y = 5; print(y)".into()]);
    assert!(begin.elapsed() < Duration::from_millis(100).mul_f64(gloveport_testing::pace()), "{:?}", begin.elapsed());
    let refused = fixture.kernel.execute(limited("1", 0.1)).await;
    assert_eq!(refused, Err(KernelError::NotReady(Duration::from_millis(100))));
    assert_eq!(tokio::time::timeout(LONG, fixture.text("y")).await.unwrap(), "5");
}

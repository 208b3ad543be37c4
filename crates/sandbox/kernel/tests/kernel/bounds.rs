//! Much output, much code, many cells.

use std::time::Duration;

use gloveport_kernel::{Cell, CellEnd, Kernel, Output};
use gloveport_sys::process;

use crate::support::{Fixture, cell, lines, options};

/// Largest resident memory of this process while something goes on, above what it is now.
async fn growth<T>(what: impl Future<Output = T>) -> (T, u64) {
    let own = std::process::id();
    let now = || process::resident(own).unwrap().0;
    let before = now();
    let mut most = before;
    let mut tick = tokio::time::interval(Duration::from_millis(2));
    tokio::pin!(what);
    loop {
        tokio::select! {
            result = &mut what => return (result, most - before),
            _ = tick.tick() => most = most.max(now()),
        }
    }
}

#[tokio::test]
async fn a_hundred_megabytes_take_little_memory_and_keep_both_ends() {
    let fixture = Fixture::with(|options| options.output_limit = 1024 * 1024);
    fixture.text("1").await;
    let prints = "for i in range(1_000_000): print(f'{i:099}')";
    let descriptor = "import subprocess; _ = subprocess.run(['sh', '-c', 'yes $(printf %099d 7) | head -c 100000000'])";
    for code in ["print('x' * 100_000_000, end='')", prints, descriptor] {
        let (report, grown) = growth(fixture.report(Cell { limit: None, ..cell(code) })).await;
        assert_eq!(report.end, CellEnd::Completed);
        assert!(grown < 32 << 20, "{code}: memory grew by {grown} bytes");
        let line = format!("\n[{} bytes of output are left out here]\n", 100_000_000 - 1024 * 1024);
        assert!(report.text.contains(&line), "{code}");
        assert_eq!(report.text.len(), 1024 * 1024 + line.len(), "{code}");
        if code == prints {
            assert!(
                report.text.starts_with(&format!("{:099}\n", 0))
                    && report.text.ends_with(&format!("{:099}\n", 999_999))
            );
        }
    }
    let kernel = fixture.ready(0).await;
    let memory = process::resident(kernel.pid).unwrap().0;
    assert!(memory < 400 << 20, "the kernel has {memory} bytes");
}

#[tokio::test]
async fn a_result_or_a_traceback_that_is_huge_is_cut_before_it_travels() {
    let fixture = Fixture::with(|options| options.output_limit = 1024 * 1024);
    fixture.text("1").await;
    for (code, end) in
        [("'y' * 100_000_000", CellEnd::Completed), ("raise ValueError('z' * 100_000_000)", CellEnd::Raised)]
    {
        let (report, grown) = growth(fixture.report(Cell { limit: None, ..cell(code) })).await;
        assert_eq!(report.end, end);
        assert!(report.text.len() < 1024 * 1024 + 200, "{}", report.text.len());
        assert!(report.text.contains("left out here]"), "{code}");
        assert!(grown < 64 << 20, "{code}: memory grew by {grown} bytes");
    }
}

#[tokio::test]
async fn pictures_beyond_their_limit_are_counted() {
    let fixture = Fixture::with(|options| options.image_limit = 1000);
    let code = "from IPython.display import display\nfor n in (400, 400, 400, 4000): display({'image/png': 'A' * n}, raw=True)";
    let report = fixture.report(cell(code)).await;
    assert_eq!(report.images.len(), 2);
    assert_eq!(report.text, "[2 images are left out: those of one cell have 1000 bytes at most]\n");
}

#[tokio::test]
async fn a_megabyte_of_code_runs() {
    let fixture = Fixture::start();
    let code = format!("text = '''{}'''\nlen(text)", "a line of text\n".repeat(70_000));
    assert_eq!(fixture.text(&code).await, "1050000");
}

#[tokio::test]
async fn cells_run_in_the_order_in_which_they_came_and_keep_their_variables() {
    let fixture = Fixture::start();
    fixture.text("seen = []").await;
    let codes: Vec<String> = (0..40).map(|number| format!("seen.append({number}); print({number})")).collect();
    let reports = futures_util::future::join_all(codes.iter().map(|code| fixture.text(code))).await;
    let expected: Vec<String> = (0..40).map(|number| format!("{number}\n")).collect();
    assert_eq!(reports, expected);
    assert_eq!(fixture.text("seen == list(range(40))").await, "True");
}

#[tokio::test]
async fn three_kernels_are_three() {
    let directory = tempfile::tempdir().unwrap();
    let kernels: Vec<Kernel> = (0..3).map(|_| Kernel::start(options(directory.path()))).collect();
    let set = |number: usize| cell(&format!("import os; x = {number}; os.getpid()"));
    let started = kernels.iter().enumerate().map(|(number, kernel)| kernel.execute(set(number)));
    let mut pids: Vec<String> =
        futures_util::future::join_all(started).await.into_iter().map(|report| report.unwrap().text).collect();
    for (number, kernel) in kernels.iter().enumerate() {
        assert_eq!(kernel.execute(cell("x")).await.unwrap().text, number.to_string());
    }
    pids.sort();
    pids.dedup();
    assert_eq!(pids.len(), 3);
}

#[tokio::test]
async fn whoever_watches_slowly_slows_no_cell_and_is_told() {
    let fixture = Fixture::start();
    let (sender, mut progress) = tokio::sync::mpsc::channel(1);
    let code = "import sys\nfor i in range(50): print(i); sys.stdout.flush()";
    let report = fixture.report(Cell { progress: Some(sender), ..cell(code) }).await;
    assert_eq!(report.text, lines(0..50));
    assert_eq!(progress.recv().await, Some(Output::Text("0\n".into())));
    assert_eq!(progress.recv().await, None);
}

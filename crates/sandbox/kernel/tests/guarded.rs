//! Nothing of a guarded kernel outlives it, whoever is killed.
//!
//! A guard must be started before any thread, so this file is a program of its own: it runs its cases when it is asked
//! as the test harness is asked (`--list`, a name with `--exact`), and is the victim of one of them when its first
//! argument says so.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test programs stop at the first broken assumption, and answer on the standard output"
)]

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_kernel::{Cell, CellEnd, Kernel, KernelOptions};
use gloveport_sys::{Guard, Spawner, Surroundings, process};
use gloveport_testing::{GuardedCase, python, run_guarded};

/// Programs that do not want to be found, and who they are.
const HIDDEN: &str = "import subprocess, os, sys\n\
    subprocess.run('setsid sleep 1000 & (setsid sh -c \"sleep 1000 & sleep 1000\" &); trap \"\" TERM; sleep 1000 &', shell=True)\n\
    if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time; time.sleep(1000)\n    os._exit(0)\n\
    print(os.path.dirname(sys.argv[2]))";

const CASES: [GuardedCase; 3] = [
    ("closing_a_guarded_kernel_leaves_no_process", closing),
    ("a_guarded_kernel_that_is_killed_leaves_no_process_and_is_replaced", replacement),
    ("killing_the_process_that_holds_the_guard_leaves_no_process", killing_the_holder),
];

fn main() {
    run_guarded(&CASES, victim);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

fn start(guard: Guard, directory: &Path) -> Kernel {
    let mut surroundings = Surroundings::inherited(directory.to_owned());
    surroundings.spawner = Spawner::Guarded(Arc::new(guard));
    surroundings.set("IPYTHONDIR", directory.join(".ipython"));
    let mut options = KernelOptions::new(surroundings);
    options.interpreter = Some(python());
    Kernel::start(options)
}

fn cell(code: &str) -> Cell {
    Cell { code: code.to_owned(), limit: Some(Duration::from_mins(1)), ..Cell::default() }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn closing(guard: Guard) {
    let guard_pid = guard.pid();
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        let kernel = start(guard, directory.path());
        let text = kernel.execute(cell(HIDDEN)).await.unwrap().text;
        let files = Path::new(text.trim());
        assert!(files.starts_with(std::env::temp_dir()) && !files.exists(), "{text}");
        assert!(process::descendants(guard_pid).len() > 5);
        let begin = Instant::now();
        kernel.close().await;
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        wait_until("no process is left", || process::descendants(guard_pid).is_empty());
    });
}

fn replacement(guard: Guard) {
    let guard_pid = guard.pid();
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        let kernel = start(guard, directory.path());
        kernel.execute(cell(HIDDEN)).await.unwrap();
        // Who has owned them may own the next kernel.
        let is_owner = |pid: u32| process::stat(pid).is_some_and(|stat| stat.name == "gloveport-owner");
        let old: Vec<u32> = process::descendants(guard_pid).into_iter().filter(|pid| !is_owner(*pid)).collect();
        assert!(old.len() > 5, "{old:?}");
        let report = kernel.execute(cell("os.kill(os.getpid(), 9)")).await.unwrap();
        assert!(matches!(report.end, CellEnd::Died(exit) if exit.signal == Some(9)), "{report:?}");
        assert_eq!(kernel.execute(cell("1")).await.unwrap().text, "1");
        wait_until("the old processes are gone", || {
            let now = process::descendants(guard_pid);
            old.iter().all(|pid| !now.contains(pid))
        });
        kernel.close().await;
        wait_until("no process is left", || process::descendants(guard_pid).is_empty());
    });
}

/// Runs a kernel for ever, and tells who guards it.
fn victim() {
    let guard = Guard::start().unwrap();
    let guard_pid = guard.pid();
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        let kernel = start(guard, directory.path());
        kernel.execute(cell(HIDDEN)).await.unwrap();
        println!("{guard_pid}");
        std::future::pending::<()>().await;
    });
}

fn killing_the_holder(guard: Guard) {
    drop(guard);
    let program = std::env::current_exe().unwrap();
    let mut victim = Command::new(program).arg("--victim").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(victim.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let guard: u32 = line.trim().parse().unwrap();
    let mut processes = process::descendants(guard);
    processes.push(guard);
    assert!(processes.len() > 5, "{processes:?}");
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("no process is left", || {
        processes.iter().all(|pid| process::stat(*pid).is_none_or(|stat| stat.state == 'Z'))
    });
}

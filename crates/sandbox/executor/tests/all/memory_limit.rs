//! The memory limit of a sandbox: one process cannot exceed it, several together cannot, and the shell lives.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::{fs, path::Path, sync::Arc, time::Duration};

use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, Observation, RunAction, RunObservation};

const LIMIT: u64 = 200 * 1024 * 1024;

async fn start(home: &Path) -> Arc<Executor> {
    let mut options = ExecutorOptions::inherited(home.to_owned());
    options.environment = vec![("HOME".into(), home.into()), ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    options.memory_limit = Some(LIMIT);
    Executor::start(options).await.unwrap()
}

async fn run(executor: &Executor, command: &str) -> RunObservation {
    let event = ActionEvent { timeout: Some(20.0), ..ActionEvent::from(Action::Run(RunAction::new(command))) };
    let observation = tokio::time::timeout(Duration::from_secs(30), executor.execute(&event)).await;
    match observation.unwrap().unwrap() {
        Observation::Run(observation) => observation,
        other => panic!("{command}: {other:?}"),
    }
}

/// All cases use one sandbox after the other: the memory of every process below this one counts.
#[tokio::test]
async fn a_sandbox_stays_below_its_memory_limit_and_its_shell_lives() {
    let home = tempfile::tempdir().unwrap();
    let executor = start(home.path()).await;
    let shell = run(&executor, "echo $$").await.content;

    // One process is refused the memory.
    let seen = run(&executor, "python3 -c 'x = bytearray(1_000_000_000); print(len(x))'").await;
    assert_eq!((seen.content.lines().last(), seen.metadata.exit_code), (Some("MemoryError"), 1), "{seen:?}");

    // Two processes, each of which is allowed what it has: the larger one is ended.
    let script = "import sys, time\nx = bytearray(int(sys.argv[1]) * 1_000_000)\nprint('has', sys.argv[1], flush=True)\ntime.sleep(3)\n\
        print('lived', sys.argv[1], flush=True)\n";
    fs::write(home.path().join("hold.py"), script).unwrap();
    run(&executor, "python3 hold.py 100 > small & echo $! > small.pid").await;
    let seen =
        run(&executor, "until grep -q has small; do sleep 0.05; done; python3 hold.py 140; echo status $?").await;
    assert!(seen.content.ends_with("status 137"), "{seen:?}");
    let seen = run(&executor, "wait $(cat small.pid); cat small").await;
    assert!(seen.content.contains("has 100\nlived 100"), "{seen:?}");

    // What is below the limit is left alone, and the shell is the same as at the beginning.
    let seen = run(&executor, "python3 -c 'x = bytearray(100_000_000); print(len(x))'").await;
    assert_eq!((seen.content.as_str(), seen.metadata.exit_code), ("100000000", 0));
    let seen = run(&executor, "echo $$").await;
    assert_eq!((seen.content, seen.metadata.suffix), (shell, "\n[The command completed with exit code 0.]".to_owned()));
    executor.close().await;
}

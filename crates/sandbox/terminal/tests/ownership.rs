//! Nothing that a guarded session started outlives it, whoever is killed.
//!
//! A guard must be started before any thread, so this file is a program of its own: it runs its cases when it is asked
//! as the test harness is asked (`--list`, a name with `--exact`), and is the victim of one of them when its first
//! argument says so.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "test programs stop at the first broken assumption, and say on the standard output what they skip"
)]

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    os::fd::AsFd as _,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_sys::{
    Guard, Spawner, mark, process,
    spawn::{Descriptors, SpawnSpec},
};
use gloveport_terminal::{RunEnd, RunRequest, Shell, ShellOptions};
use gloveport_testing::{GuardedCase, run_guarded};
use rustix::process::{Pid, Signal, kill_process};

/// Programs that do not want to be found: in the background, deaf to signals, in a session of their own, and adopted by
/// somebody else.
const HIDDEN: &str = "sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & (trap '' HUP TERM INT; sleep 1000) & \
    setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &) ; (setsid nohup sh -c 'trap \"\" HUP TERM; sleep 1000' \
    >/dev/null 2>&1 &); disown -a; echo started";

const CASES: [GuardedCase; 13] = [
    ("closing_a_session_leaves_no_process", closing_a_session_leaves_no_process),
    ("dropping_a_session_leaves_no_process", dropping_a_session_leaves_no_process),
    ("killing_the_owner_of_a_session_leaves_no_process_and_the_session_goes_on", killing_the_owner),
    ("a_guarded_shell_that_ends_is_replaced_and_its_jobs_live_until_the_end", replacement),
    ("a_start_that_is_given_up_leaves_no_process", giving_up_a_start),
    ("killing_the_process_that_holds_the_guard_leaves_no_process", killing_the_holder),
    ("killing_guard_and_owner_together_leaves_no_process", killing_guard_and_owner),
    ("killing_holder_guard_and_owner_together_leaves_nothing_to_the_next_who_looks", killing_all_three),
    ("a_guard_and_an_owner_that_are_stopped_hold_up_no_end", stopping_guard_and_owner),
    ("an_owner_is_used_again_when_nothing_of_its_session_is_left", using_an_owner_again),
    ("what_is_meant_for_a_session_that_has_ended_does_not_reach_the_next_one", late_orders),
    ("an_owner_without_a_session_may_be_killed_and_ends_by_itself_after_a_while", idle_owners),
    ("a_killed_holder_wakes_a_stopped_guard_that_ends_everything", killing_the_holder_of_a_stopped_guard),
];

fn main() {
    run_guarded(&CASES, victim);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), future).await.expect("it takes too long") })
}

fn options(guard: Guard) -> ShellOptions {
    shared_options(&Arc::new(guard))
}

fn shared_options(guard: &Arc<Guard>) -> ShellOptions {
    let mut options = ShellOptions::inherited("/".into());
    options.spawner = Spawner::Guarded(Arc::clone(guard));
    options.environment = vec![("HOME".into(), "/nonexistent".into()), ("PATH".into(), "/usr/bin:/bin".into())];
    options
}

/// The processes below a guard that sleep.
fn sleepers(guard: u32) -> Vec<u32> {
    process::descendants(guard)
        .into_iter()
        .filter(|pid| process::stat(*pid).is_some_and(|stat| stat.name == "sleep"))
        .collect()
}

async fn start_hidden(shell: &Shell, guard: u32) -> Vec<u32> {
    let report = shell.run(RunRequest::command(HIDDEN)).await.unwrap();
    assert_eq!(report.end, RunEnd::Completed { status: 0 }, "{}", report.output);
    let deadline = Instant::now() + Duration::from_secs(10);
    while sleepers(guard).len() < 7 {
        assert!(Instant::now() < deadline, "{:?}", sleepers(guard));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    process::descendants(guard)
}

fn alive(processes: &[u32]) -> Vec<(u32, String)> {
    let living = |pid: &u32| process::stat(*pid).filter(|stat| stat.state != 'Z').map(|stat| (*pid, stat.name));
    processes.iter().filter_map(living).collect()
}

fn assert_all_end(processes: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !alive(processes).is_empty() {
        assert!(Instant::now() < deadline, "these still live: {:?}", alive(processes));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
}

fn closing_a_session_leaves_no_process(guard: Guard) {
    let root = guard.pid();
    block_on(async {
        let shell = Shell::start(options(guard)).await.unwrap();
        let processes = start_hidden(&shell, root).await;
        shell.close().await;
        assert_eq!(alive(&processes), vec![], "directly after closing");
    });
}

fn dropping_a_session_leaves_no_process(guard: Guard) {
    let root = guard.pid();
    let processes = block_on(async {
        let shell = Shell::start(options(guard)).await.unwrap();
        let processes = start_hidden(&shell, root).await;
        drop(shell);
        processes
    });
    assert_all_end(&processes);
}

fn killing_the_owner(guard: Guard) {
    let root = guard.pid();
    block_on(async {
        let shell = Shell::start(options(guard)).await.unwrap();
        let processes = start_hidden(&shell, root).await;
        let owner = processes.iter().find(|pid| process::stat(**pid).is_some_and(|stat| stat.parent == root)).unwrap();
        kill(*owner);
        assert_all_end(&processes);
        let report = shell.run(RunRequest::command("echo a; exit 3")).await.unwrap();
        // The death of the shell was noticed before or after the command was sent.
        let report =
            if report.output == "a" { report } else { shell.run(RunRequest::command("echo a; exit 3")).await.unwrap() };
        assert_eq!((report.output.as_str(), report.end), ("a", RunEnd::Completed { status: 3 }));
        let second = process::descendants(root);
        shell.close().await;
        assert_eq!(alive(&second), vec![]);
    });
}

fn replacement(guard: Guard) {
    let root = guard.pid();
    block_on(async {
        let shell = Shell::start(options(guard)).await.unwrap();
        start_hidden(&shell, root).await;
        let jobs = sleepers(root);
        let report = shell.run(RunRequest::command("kill -9 $$")).await.unwrap();
        assert_eq!(report.end, RunEnd::Completed { status: 137 });
        assert_eq!(shell.run(RunRequest::command("echo next")).await.unwrap().output, "next");
        assert_eq!(alive(&jobs).len(), jobs.len(), "jobs outlive their shell");
        let processes = process::descendants(root);
        shell.close().await;
        assert_eq!(alive(&processes), vec![]);
    });
}

fn giving_up_a_start(guard: Guard) {
    let root = guard.pid();
    let spawner = Spawner::Guarded(Arc::new(guard));
    let spec = SpawnSpec {
        program: "/bin/sleep".into(),
        arguments: vec!["sleep".into(), "1000".into()],
        environment: Vec::new(),
        directory: None,
        identity: None,
        memory_limit: None,
        descriptors: Descriptors::Plain,
    };
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let descriptors = [null.as_fd(); 3];
    block_on(async {
        let mut given_up = 0;
        for _ in 0..20 {
            tokio::select! {
                biased;
                // On a busy machine the guard may have answered before this thread comes to look.
                started = spawner.spawn(&spec, &descriptors) => started.unwrap().end(Duration::ZERO).await,
                () = std::future::ready(()) => given_up += 1,
            }
        }
        assert!(given_up > 0, "each was started at the first look");
        // The guard has all requests before this one.
        let last = spawner.spawn(&spec, &descriptors).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while sleepers(root) != [last.pid()] {
            assert!(Instant::now() < deadline, "these still live: {:?}", sleepers(root));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        last.end(Duration::ZERO).await;
    });
}

/// Starts a session, tells the ids of all its processes, and waits to be killed.
fn victim() {
    let guard = Guard::start().unwrap();
    let root = guard.pid();
    block_on(async {
        let shell = Shell::start(options(guard)).await.unwrap();
        let mut processes = start_hidden(&shell, root).await;
        processes.push(root);
        let words: Vec<String> = processes.iter().map(u32::to_string).collect();
        println!("{}", words.join(" "));
        std::io::stdout().flush().unwrap();
        let _never = shell.run(RunRequest::command("sleep 1000")).await;
    });
}

fn killing_the_holder(own: Guard) {
    drop(own);
    let program: PathBuf = std::env::current_exe().unwrap();
    let mut victim = Command::new(program).arg("--victim").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(victim.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let processes: Vec<u32> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(alive(&processes).len() >= 10, "{line}");
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_all_end(&processes);
}

fn stop_all(pids: &[u32]) {
    for pid in pids {
        kill_process(Pid::from_raw((*pid).try_into().unwrap()).unwrap(), Signal::STOP).unwrap();
    }
}

/// Kills them at the same moment: none of them runs between the first and the last.
fn kill_together(pids: &[u32]) {
    stop_all(pids);
    for pid in pids {
        kill(*pid);
    }
}

/// A guard with its owners.
fn owners(guard: u32) -> Vec<u32> {
    std::iter::once(guard).chain(process::children(guard)).collect()
}

fn killing_guard_and_owner(guard: Guard) {
    let root = guard.pid();
    let guard = Arc::new(guard);
    block_on(async {
        let lost = guard.lost().unwrap();
        let shell = Shell::start(shared_options(&guard)).await.unwrap();
        let processes = start_hidden(&shell, root).await;
        kill_together(&owners(root));
        lost.await;
        assert_eq!(alive(&processes), vec![], "when it is told");
        let report = shell.run(RunRequest::command("echo a")).await;
        assert!(report.is_err(), "nothing can be started without a guard: {report:?}");
        shell.close().await;
    });
}

fn a_victim() -> (std::process::Child, Vec<u32>, Vec<u32>) {
    let program: PathBuf = std::env::current_exe().unwrap();
    let mut victim = Command::new(program).arg("--victim").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(victim.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let processes: Vec<u32> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let owners = owners(*processes.last().unwrap());
    (victim, processes, owners)
}

fn killing_all_three(own: Guard) {
    drop(own);
    let (mut victim, processes, owners) = a_victim();
    kill_together(&[&[victim.id()], owners.as_slice()].concat());
    victim.wait().unwrap();
    // A killed process is dead a moment later, and holds its locks until then.
    assert_all_end(&owners);
    let processes: Vec<u32> = processes.into_iter().filter(|pid| !owners.contains(pid)).collect();
    assert!(alive(&processes).len() >= 5, "somebody ended them before: {:?}", alive(&processes));
    mark::sweep().unwrap();
    assert_eq!(alive(&processes), vec![], "somebody has looked");
}

fn stopping_guard_and_owner(guard: Guard) {
    let root = guard.pid();
    block_on(async {
        let shell = Shell::start(options(guard)).await.unwrap();
        let processes = start_hidden(&shell, root).await;
        stop_all(&owners(root));
        shell.close().await;
        assert_all_end(&processes);
    });
}

fn killing_the_holder_of_a_stopped_guard(own: Guard) {
    drop(own);
    let (mut victim, processes, owners) = a_victim();
    stop_all(&owners);
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_all_end(&processes);
}

async fn start_program(guard: &Arc<Guard>, script: &str) -> gloveport_sys::SessionProcess {
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let spec = SpawnSpec {
        program: "/bin/sh".into(),
        arguments: ["sh", "-c", script].map(Into::into).to_vec(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: None,
        identity: None,
        memory_limit: None,
        descriptors: Descriptors::Plain,
    };
    Spawner::Guarded(Arc::clone(guard)).spawn(&spec, &[null.as_fd(), null.as_fd(), null.as_fd()]).await.unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a program to its end, and tells by whom it was owned.
async fn run_one(guard: &Arc<Guard>) -> u32 {
    let mut program = start_program(guard, "sleep 0.05").await;
    let owner = process::stat(program.pid()).unwrap().parent;
    assert_eq!(program.exited().await.code, Some(0));
    until("all of it is gone", || program.is_gone()).await;
    owner
}

fn using_an_owner_again(guard: Guard) {
    let guard = Arc::new(guard);
    block_on(async {
        let first = run_one(&guard).await;
        assert_eq!(run_one(&guard).await, first);
        // One that still owns something does not own another session's.
        let mut leaving = start_program(&guard, "sleep 1000 & exit 3").await;
        assert_eq!(leaving.exited().await.code, Some(3));
        let other = run_one(&guard).await;
        assert!(other != first && !leaving.is_gone());
        let left = sleepers(guard.pid());
        assert_eq!(left.len(), 1);
        leaving.end(Duration::ZERO).await;
        assert_eq!(alive(&left), vec![]);
        // One that could not start anything is as good as before.
        let missing = SpawnSpec {
            program: "/no/such".into(),
            arguments: vec!["x".into()],
            environment: Vec::new(),
            directory: None,
            identity: None,
            memory_limit: None,
            descriptors: Descriptors::Plain,
        };
        let null = File::open("/dev/null").unwrap();
        let spawner = Spawner::Guarded(Arc::clone(&guard));
        let refused = spawner.spawn(&missing, &[null.as_fd(), null.as_fd(), null.as_fd()]).await.unwrap_err();
        assert!(refused.to_string().contains("execve"), "{refused}");
        assert!([first, other].contains(&run_one(&guard).await));
        // Many at once have an owner each.
        let mut all = Vec::new();
        for _ in 0..20 {
            all.push(start_program(&guard, "sleep 1000").await);
        }
        let mut parents: Vec<u32> = all.iter().map(|one| process::stat(one.pid()).unwrap().parent).collect();
        parents.sort_unstable();
        parents.dedup();
        assert_eq!(parents.len(), 20);
        drop(all);
        until("all have ended", || sleepers(guard.pid()).is_empty()).await;
    });
}

fn late_orders(guard: Guard) {
    let guard = Arc::new(guard);
    block_on(async {
        let mut ended = Vec::new();
        for _ in 0..2 {
            let mut program = start_program(&guard, "exit 0").await;
            program.exited().await;
            until("all of it is gone", || program.is_gone()).await;
            ended.push(program);
        }
        let next = start_program(&guard, "sleep 1000").await;
        let owner = process::stat(next.pid()).unwrap().parent;
        // The end of each, by word and by being dropped, is no matter of the one that has their owner now.
        ended.pop().unwrap().end(Duration::ZERO).await;
        drop(ended);
        let after = run_one(&guard).await;
        assert!(after != owner && next.exit().is_none() && alive(&[next.pid(), owner]).len() == 2);
        next.end(Duration::ZERO).await;
    });
}

fn idle_owners(guard: Guard) {
    let guard = Arc::new(guard);
    block_on(async {
        let idle = run_one(&guard).await;
        kill(idle);
        until("it is dead", || alive(&[idle]).is_empty()).await;
        let other = run_one(&guard).await;
        assert_ne!(other, idle);
        until("it is not kept for ever", || process::children(guard.pid()).is_empty()).await;
        run_one(&guard).await;
    });
}

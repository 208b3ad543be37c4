//! Backends and servers of the provider `local` that are killed at any step of a sandbox's life.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::sandboxes::{LIMIT, Place, alive_in, client, options_at, run, session, spec, try_run, until};
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_provider::{GcOptions, Lifetime, ListFilter, Progress, Provider, Sandbox, SandboxSpec, SandboxState};
use gloveport_provider_local::{Local, LocalOptions, Observer, Step};
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process, set_child_subreaper};

/// Where the killed backend works, and at which step it dies. Without it the program is no backend.
const PLACE: &str = "GLOVEPORT_TEST_PLACE";
const DIES_AT: &str = "GLOVEPORT_TEST_DIES_AT";
const KEPT: &str = "GLOVEPORT_TEST_KEPT";
/// The session of the killed backend.
const SESSION: &str = "crash";

/// A backend that dies at every step of its life, once for each of them, by SIGKILL. Not a test of its own.
#[test]
fn backend() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let dies_at = std::env::var(DIES_AT).unwrap();
    let observer = Observer::new(move |step| {
        if format!("{step:?}") == dies_at {
            let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap()).unwrap();
            kill_process(own, Signal::KILL).unwrap();
            // The signal comes before anything else happens here.
            loop {
                std::thread::park();
            }
        }
    });
    let options = LocalOptions { observer, ..options_at(Path::new(&place)) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(whole_life(Local::new(options).unwrap(), std::env::var(KEPT).is_ok()));
}

async fn whole_life(local: Local, keep_alive: bool) {
    let made = local.create(&SandboxSpec { keep_alive, ..spec(SESSION) }, &Progress::silent()).await.unwrap();
    let made = wait_until_alive(&local, made, &WaitOptions::default(), &Progress::silent()).await.unwrap();
    local.hold(&made.id).await.unwrap();
    run(&made, "setsid -f sleep 600 >/dev/null 2>&1; MARK=here").await;
    local.pause(&made.id).await.unwrap();
    local.resume(&made.id).await.unwrap();
    local.release(&made.id).await.unwrap();
    local.delete(&made.id).await.unwrap();
    local.close().await;
}

/// Runs the backend until it is dead.
fn die(place: &Place, step: &str, kept: bool) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "local_crash::backend", "--nocapture"]).env(PLACE, place.path()).env(DIES_AT, step);
    if kept {
        command.env(KEPT, "yes");
    }
    let status = command.stdout(Stdio::null()).status().unwrap();
    let expected = if step == "never" { status.success() } else { !status.success() && status.code().is_none() };
    assert!(expected, "{step}: {status}");
}

/// What another backend makes of what a dead one left: it uses the sandbox if it is there, and then removes everything.
async fn take_over(place: &Place, context: &str) {
    let local = place.backend();
    let found = local.find_session(&session(SESSION)).await.unwrap();
    let mut used = false;
    if let Some(sandbox) = found.filter(|sandbox| sandbox.state.is_live()) {
        used = attach(&local, sandbox).await;
    }
    let report = local.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.failed, Vec::<String>::new(), "{context}");
    let left = local.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap();
    for sandbox in left {
        // Held by this one, or given up by the dead one.
        assert_eq!(sandbox.lifetime, Lifetime::Kept, "{context}");
        local.delete(&sandbox.id).await.unwrap();
    }
    // The session can have a new sandbox in any case.
    let again = local.create(&spec(SESSION), &Progress::silent()).await.unwrap();
    assert_eq!(run(&again, "echo again").await, "again", "{context}");
    local.close().await;
    until(context, || alive_in(place).is_empty()).await;
    assert_eq!(place.left(), Vec::<String>::new(), "{context}, used: {used}");
}

/// Whether the sandbox could be used. One that lived with the dead backend ends at this very moment.
async fn attach(local: &Local, sandbox: Sandbox) -> bool {
    let kept = sandbox.lifetime != Lifetime::Backend;
    if kept {
        if local.hold(&sandbox.id).await.is_err() {
            // It was not complete and ends by itself.
            return false;
        }
        if sandbox.state == SandboxState::Paused {
            local.resume(&sandbox.id).await.unwrap();
        }
    }
    let works = try_run(&sandbox, "echo $((6 * 7))").await;
    works.is_ok_and(|output| output == "42")
}

/// All orphans of the dead backend become descendants of this process, so that none is overlooked.
fn adopt() {
    set_child_subreaper(Pid::from_raw(1)).unwrap();
}

async fn dies_at_each_step(kept: bool) {
    adopt();
    for step in Step::ALL {
        // Only kept sandboxes are held and given up.
        if !kept && matches!(step, Step::Held) {
            continue;
        }
        let place = Place::new();
        let context = format!("killed at {step:?}, kept: {kept}");
        die(&place, &format!("{step:?}"), kept);
        if !kept {
            // Without its backend it ends, and it does so by itself.
            until(&context, || alive_in(&place).is_empty()).await;
        }
        take_over(&place, &context).await;
        let orphans: Vec<_> = process::descendants(std::process::id());
        assert!(orphans.is_empty(), "{context}: {orphans:?}");
    }
}

#[tokio::test]
async fn a_backend_killed_at_any_step_leaves_nothing_that_runs() {
    dies_at_each_step(false).await;
}

#[tokio::test]
async fn after_a_backend_was_killed_at_any_step_another_one_attaches_to_what_was_kept_or_removes_it() {
    dies_at_each_step(true).await;
}

#[tokio::test]
async fn a_backend_that_is_not_killed_leaves_nothing() {
    adopt();
    for kept in [false, true] {
        let place = Place::new();
        die(&place, "never", kept);
        assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
    }
}

#[tokio::test]
async fn a_kept_sandbox_whose_backend_was_killed_while_it_was_used_goes_on_where_it_was() {
    let place = Place::new();
    for (step, expected) in [(Step::Pausing, "here"), (Step::Paused, "here"), (Step::Resumed, "here")] {
        die(&place, &format!("{step:?}"), true);
        let local = place.backend();
        let sandbox = local.find_session(&session(SESSION)).await.unwrap().unwrap();
        assert_eq!(sandbox.lifetime, Lifetime::Orphaned, "{step:?}");
        assert_eq!(sandbox.state == SandboxState::Paused, step == Step::Paused, "{step:?}");
        local.hold(&sandbox.id).await.unwrap();
        assert_eq!(local.find(&sandbox.id).await.unwrap().unwrap().lifetime, Lifetime::Kept);
        local.resume(&sandbox.id).await.unwrap();
        assert_eq!(run(&sandbox, "echo $MARK").await, expected, "{step:?}");
        local.delete(&sandbox.id).await.unwrap();
        local.close().await;
    }
    let local = place.backend();
    local.collect_garbage(&GcOptions::default()).await.unwrap();
    local.close().await;
    assert_eq!((alive_in(&place), place.left()), (Vec::new(), Vec::new()));
}

/// Kills the server, or its guard, as soon as it is there and some more time has passed.
async fn kill_after(place: &Place, name: &str, delay: Duration) -> bool {
    let began = Instant::now();
    loop {
        let below = process::descendants(std::process::id());
        let found = below.into_iter().find(|pid| process::stat(*pid).is_some_and(|stat| stat.name == name));
        if let Some(pid) = found {
            tokio::time::sleep(delay).await;
            let mine = alive_in(place).iter().any(|line| line.starts_with(&format!("{pid} ")));
            let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            return mine && kill_process(pid, Signal::KILL).is_ok();
        }
        if began.elapsed() > LIMIT {
            return false;
        }
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_at_any_moment_is_an_error_or_a_failed_sandbox_and_leaves_nothing_that_runs() {
    adopt();
    let mut killed = 0;
    for moment in 0..24 {
        let place = Place::new();
        let local = place.backend();
        let name = if moment % 4 == 3 { "gloveport-guard" } else { "gloveport" };
        let wanted = SandboxSpec { keep_alive: moment % 2 == 0, ..spec(SESSION) };
        let progress = Progress::silent();
        let create = local.create(&wanted, &progress);
        let (made, was_killed) = tokio::join!(create, kill_after(&place, name, Duration::from_millis(moment)));
        killed += usize::from(was_killed);
        if let Ok(sandbox) = made {
            // It may have been killed while it was used, and answer no more.
            let _answered = client(&sandbox).alive().await;
        }
        if name == "gloveport" && was_killed {
            until("nothing lives", || alive_in(&place).is_empty()).await;
            if let Some(sandbox) = local.find_session(&session(SESSION)).await.unwrap() {
                assert!(matches!(sandbox.state, SandboxState::Failed(_)), "{moment} ms: {}", sandbox.state);
            }
        }
        local.close().await;
        take_over(&place, &format!("{name} killed after {moment} ms")).await;
    }
    assert!(killed >= 20, "only {killed} were there to be killed");
}

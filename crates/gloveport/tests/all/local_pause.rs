//! Pause and resume: all processes stop where they are, and go on as if nothing had been.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::sandboxes::{LIMIT, Place, client, options_at, run, spec, try_run, until};
use gloveport_client::ClientError;
use gloveport_protocol::sandbox::Activity;
use gloveport_provider::{Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, SandboxState};
use gloveport_provider_local::{Local, LocalOptions, Observer, Step};
use gloveport_sys::process;
use rustix::process::{Pid, Signal, kill_process};

/// The states of all processes of a sandbox but those that own the others.
fn states(sandbox: &Sandbox) -> Vec<(String, char)> {
    let workspace = sandbox.workspace.clone().unwrap();
    let here = |pid: &u32| process::working_directory(*pid).is_some_and(|path| path.starts_with(&workspace));
    let stats = process::all().into_iter().filter(here).filter_map(process::stat);
    stats.filter(|stat| stat.state != 'Z').map(|stat| (stat.name, stat.state)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_stops_where_it_is_and_goes_on_and_the_command_in_flight_notices_nothing() {
    let place = Place::new();
    let local = place.backend();
    let made = local.create(&spec("p"), &Progress::silent()).await.unwrap();
    // A counter in the background that has detached itself, and one that the user has stopped.
    run(&made, "setsid -f bash -c 'while :; do echo x >> count; sleep 0.01; done' >/dev/null 2>&1").await;
    run(&made, "setsid -f bash -c 'echo $$ > stopped; kill -STOP $$; sleep 600' >/dev/null 2>&1").await;
    let workspace = made.workspace.clone().unwrap();
    let job = || fs::read_to_string(format!("{workspace}/stopped")).ok()?.trim().parse::<u32>().ok();
    let job_state = || job().and_then(process::stat).map(|stat| stat.state);
    until("the user has stopped it", || job_state() == Some('T')).await;
    let in_flight = {
        let made = made.clone();
        tokio::spawn(
            async move { run(&made, "bash -c 'for i in 1 2 3 4 5; do sleep 0.1; done; exit 7'; echo $?").await },
        )
    };
    let lines = || process::all().into_iter().filter_map(process::command_line);
    until("the command runs", || lines().any(|line| line.starts_with("bash -c for i in"))).await;
    local.pause(&made.id).await.unwrap();
    local.pause(&made.id).await.unwrap();
    assert_eq!(local.find(&made.id).await.unwrap().unwrap().state, SandboxState::Paused);
    let stopped = states(&made);
    assert!(stopped.len() >= 4 && stopped.iter().all(|(_, state)| *state == 'T'), "{stopped:?}");
    let count = || fs::metadata(format!("{workspace}/count")).unwrap().len();
    let before = count();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(count(), before);

    let refused = try_run(&made, "echo no").await.unwrap_err().to_string();
    assert!(refused.contains("paused") && refused.contains("/v1/sandbox/resume"), "{refused}");
    client(&made).alive().await.unwrap();
    client(&made).server_info().await.unwrap();
    assert_eq!(client(&made).sandbox_status().await.unwrap().state, Activity::Paused);

    local.resume(&made.id).await.unwrap();
    local.resume(&made.id).await.unwrap();
    assert_eq!(local.find(&made.id).await.unwrap().unwrap().state, SandboxState::Running);
    assert_eq!(in_flight.await.unwrap(), "7");
    until("the counter goes on", || count() > before).await;
    assert_eq!(job_state(), Some('T'));
    assert_eq!(run(&made, "echo yes").await, "yes");
    local.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

#[tokio::test]
async fn programs_that_fork_all_the_time_stop_too() {
    let place = Place::new();
    let local = place.backend();
    let made = local.create(&spec("f"), &Progress::silent()).await.unwrap();
    // Each one starts the next and ends; the other one starts subshells without a pause.
    let relay = "relay() { sleep 0.001; echo x >> count; (relay) & disown; exit; }; (relay) & disown";
    let hurry = "(while :; do (echo y >> count); done) & disown";
    run(&made, relay).await;
    run(&made, hurry).await;
    let workspace = made.workspace.clone().unwrap();
    let count = || fs::metadata(format!("{workspace}/count")).map_or(0, |meta| meta.len());
    for _round in 0..20 {
        let before = count();
        until("they work", || count() > before).await;
        local.pause(&made.id).await.unwrap();
        let stopped = states(&made);
        assert!(stopped.iter().all(|(_, state)| matches!(state, 'T' | 'D')), "{stopped:?}");
        let before = count();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(count(), before);
        local.resume(&made.id).await.unwrap();
    }
    local.close().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

#[tokio::test]
async fn a_paused_sandbox_can_be_deleted_and_a_dead_one_not_paused() {
    let place = Place::new();
    let local = place.backend();
    let made = local.create(&spec("d"), &Progress::silent()).await.unwrap();
    run(&made, "sleep 600 & disown").await;
    local.pause(&made.id).await.unwrap();
    assert!(local.delete(&made.id).await.unwrap());
    assert_eq!(crate::sandboxes::alive_in(&place), Vec::<String>::new());
    assert!(matches!(local.pause(&made.id).await, Err(ProviderError::NotFound(_))));
    assert!(matches!(local.resume(&made.id).await, Err(ProviderError::NotFound(_))));
    local.close().await;
}

/// One that ends when nobody uses it for this long.
async fn made_for(local: &Local, limit: Duration) -> Sandbox {
    let asked = SandboxSpec { idle_stop: Some(limit), ..spec("i") };
    let made = local.create(&asked, &Progress::silent()).await.unwrap();
    assert_eq!(client(&made).sandbox_status().await.unwrap().idle_limit_seconds, Some(limit.as_secs_f64()));
    made
}

/// It is used in half a limit, and ends a whole one after `goes_on`.
async fn ends_after(local: &Local, made: &Sandbox, limit: Duration, goes_on: Instant) {
    while goes_on.elapsed() < limit / 2 {
        assert_eq!(client(made).sandbox_status().await.unwrap().state, Activity::Running);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let status = client(made).sandbox_status().await.unwrap();
    assert!(status.idle_seconds < limit.as_secs_f64(), "{status:?}");
    let mut state = SandboxState::Running;
    while state.is_live() {
        assert!(goes_on.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(10)).await;
        state = local.find(&made.id).await.unwrap().unwrap().state;
    }
    assert_eq!(state, SandboxState::Stopped(format!("nobody used it for {} s", limit.as_secs_f64())));
    assert!(goes_on.elapsed() >= limit, "{:?}", goes_on.elapsed());
}

#[tokio::test]
async fn a_paused_sandbox_outlives_its_idle_time_and_has_all_of_it_when_it_goes_on() {
    let place = Place::new();
    let local = place.backend();
    let limit = Duration::from_secs(1);
    let made = made_for(&local, limit).await;
    local.pause(&made.id).await.unwrap();
    tokio::time::sleep(limit * 2).await;
    assert_eq!(local.find(&made.id).await.unwrap().unwrap().state, SandboxState::Paused);
    let goes_on = Instant::now();
    local.resume(&made.id).await.unwrap();
    ends_after(&local, &made, limit, goes_on).await;
    local.close().await;
}

/// An engine stops the server with all else when it pauses a container.
#[tokio::test]
async fn the_time_in_which_a_server_was_stopped_is_none_in_which_nobody_used_it() {
    let place = Place::new();
    let local = place.backend();
    let limit = Duration::from_secs(1);
    let made = made_for(&local, limit).await;
    let path = place.state().join("sandboxes").join(made.id.as_str()).join("sandbox.json");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let server = i32::try_from(record["server"]["pid"].as_i64().unwrap()).unwrap();
    let server = Pid::from_raw(server).unwrap();
    kill_process(server, Signal::STOP).unwrap();
    tokio::time::sleep(limit * 2).await;
    let goes_on = Instant::now();
    kill_process(server, Signal::CONT).unwrap();
    ends_after(&local, &made, limit, goes_on).await;
    local.close().await;
}

#[tokio::test]
async fn pausing_needs_the_key() {
    let place = Place::new();
    let local = place.backend();
    let made = local.create(&spec("k"), &Progress::silent()).await.unwrap();
    let stranger = Sandbox { session_key: None, ..made.clone() };
    for result in [client(&stranger).pause().await, client(&stranger).sandbox_status().await] {
        assert!(matches!(result, Err(ClientError::Status(_))), "{result:?}");
    }
    assert_eq!(client(&made).sandbox_status().await.unwrap().state, Activity::Running);
    local.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_ends_while_it_is_paused_is_told_as_ended_and_not_as_a_fault_of_this_machine() {
    let place = Place::new();
    let root = place.path().to_owned();
    let observer = Observer::new(move |step| {
        if step == Step::Pausing {
            let is_server = |pid: &u32| {
                process::command_line(*pid)
                    .is_some_and(|line| line.contains("sandbox-server") && line.contains(&root.display().to_string()))
            };
            for pid in process::all().into_iter().filter(is_server) {
                // Some of them end with others of them.
                let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
            }
        }
    });
    let local = Local::new(LocalOptions { observer, ..options_at(place.path()) }).unwrap();
    let made = local.create(&spec("p"), &Progress::silent()).await.unwrap();
    assert_eq!(run(&made, "echo here").await, "here");
    let error = local.pause(&made.id).await.unwrap_err();
    let is_ended = match &error {
        ProviderError::NotFound(id) => *id == made.id,
        ProviderError::State { action, state, .. } => *action == "pause" && !state.is_live(),
        _ => false,
    };
    assert!(is_ended, "{error:?}");
    local.delete(&made.id).await.unwrap();
    local.close().await;
}

//! What goes wrong in a cluster and on the way to it: each is told clearly, with the right state, and leaves nothing.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use gloveport_provider::{GcOptions, Progress, ProviderError, SandboxSpec, SandboxState};
use serde_json::json;

use crate::{
    cluster::{BARE, Place, alive, refused, run, start},
    proxy::{Proxy, Verdict},
    steps,
};

#[tokio::test]
async fn a_busy_api_server_is_asked_again_and_a_conflict_is_no_failure() {
    let mut place = Place::new();
    let proxy = Proxy::before(&mut place).await;
    let (asked, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, refusals) = (Arc::clone(&asked), Arc::clone(&counted));
    proxy.judge(move |method, path| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let is_write = method != "GET" && !path.contains("leases");
        match number % 4 {
            0 if refusals.fetch_add(1, Ordering::Relaxed) < 12 => Verdict::Answer(429, "TooManyRequests", "slow down"),
            1 if is_write && refusals.fetch_add(1, Ordering::Relaxed) < 12 => {
                Verdict::Answer(503, "ServiceUnavailable", "x")
            }
            _ => Verdict::Pass,
        }
    });
    let backend = place.backend();
    let sandbox = start(&*backend, &Place::spec("busy")).await;
    assert!(counted.load(Ordering::Relaxed) > 4);
    assert_eq!(run(&sandbox, "echo works").await, "works");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn answers_that_are_lost_make_nothing_twice() {
    let mut place = Place::new();
    let proxy = Proxy::before(&mut place).await;
    let lost = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lost);
    proxy.judge(move |method, path| {
        let made = method == "POST" && (path.contains("/pods?") || path.contains("/configmaps"));
        if made && count.fetch_add(1, Ordering::Relaxed) < 2 { Verdict::Lose } else { Verdict::Pass }
    });
    let backend = place.backend();
    let sandbox = start(&*backend, &Place::spec("lost")).await;
    assert!(lost.load(Ordering::Relaxed) >= 2);
    assert_eq!(run(&sandbox, "echo once").await, "once");
    assert!(backend.delete(&sandbox.id).await.unwrap());
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_watch_that_is_too_old_begins_anew() {
    let mut place = Place::new();
    let proxy = Proxy::before(&mut place).await;
    let watches = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&watches);
    proxy.judge(move |_, path| {
        let old = path.contains("watch=true") && count.fetch_add(1, Ordering::Relaxed) < 3;
        if old { Verdict::Answer(410, "Expired", "too old resource version") } else { Verdict::Pass }
    });
    let backend = place.backend();
    let sandbox = start(&*backend, &Place::spec("old")).await;
    assert!(watches.load(Ordering::Relaxed) >= 3);
    assert!(backend.delete(&sandbox.id).await.unwrap());
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn what_is_forbidden_is_told_with_what_to_do_and_leaves_nothing() {
    let mut place = Place::new();
    let proxy = Proxy::before(&mut place).await;
    for part in ["/configmaps", "/secrets", "/services", "/pods?", "/attach"] {
        proxy.judge(move |method, path| {
            let is_it = path.contains(part) && (part == "/attach" || method != "GET" && !path.contains("pods/"));
            if is_it && method != "DELETE" {
                Verdict::Answer(403, "Forbidden", "User \"u\" cannot do this")
            } else {
                Verdict::Pass
            }
        });
        let backend = place.backend();
        let error = refused(&*backend, &Place::spec("forbidden")).await;
        let text = error.to_string();
        assert!(text.contains("cannot do this") || text.contains("403"), "{part}: {text}");
        proxy.judge(|_, _| Verdict::Pass);
        place.nothing_left_soon_but_leases().await;
        backend.close().await;
        place.nothing_left_soon().await;
    }
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_told_and_leaves_nothing() {
    let place = Place::new();
    place.apply(&json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}}}));
    let backend = place.backend();
    let began = Instant::now();
    let error = loop {
        // The quota counts as soon as its controller has seen it.
        let error = refused(&*backend, &Place::spec("quota")).await.to_string();
        if error.contains("quota") || began.elapsed() > Duration::from_secs(30) {
            break error;
        }
    };
    assert!(error.contains("exceeded quota") && error.contains("have the quota raised"), "{error}");
    backend.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_and_a_bringer_that_fails_are_told_and_leave_nothing() {
    let place = Place::new();
    let backend = place.backend();
    let missing = SandboxSpec { image: Some("gloveport-test/there-is-none:1".to_owned()), ..Place::spec("missing") };
    let bare = SandboxSpec { image: Some(BARE.to_owned()), ..Place::spec("bare") };
    let wrong = SandboxSpec { image: Some("Not An Image".to_owned()), ..Place::spec("wrong") };
    let (missing, wrong, bare) =
        tokio::join!(refused(&*backend, &missing), refused(&*backend, &wrong), refused(&*backend, &bare));
    for (error, expected) in [(missing, "check the name of the image"), (wrong, "image"), (bare, "program_image")] {
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
    }
    backend.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn an_api_server_that_is_started_again_costs_no_sandbox() {
    let place = Place::new();
    let backend = place.backend();
    let sandbox = start(&*backend, &Place::spec("before")).await;
    let progress = Progress::silent();
    let spec = Place::spec("in-the-middle");
    let restart = tokio::task::spawn_blocking(|| {
        std::thread::sleep(Duration::from_millis(300));
        let script = std::env::var("GLOVEPORT_TEST_CLUSTER_SCRIPT").unwrap();
        Command::new(script).args(["restart-api", "3"]).output().unwrap()
    });
    let (made, restarted) = tokio::join!(backend.create(&spec, &progress), restart);
    let restarted = restarted.unwrap();
    assert!(restarted.status.success(), "{restarted:?}");
    let other = alive(&*backend, made.unwrap_or_else(|error| panic!("{error}"))).await;
    assert_eq!(run(&other, "echo after").await, "after");
    let found = backend.find(&sandbox.id).await.unwrap().unwrap();
    assert_eq!(run(&found, "echo still").await, "still");
    backend.close().await;
    place.assert_nothing_left();
}

/// All requests that change something are steps; at each of them a backend dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backend_that_dies_at_any_step_of_a_creation_leaves_only_garbage() {
    let end = steps::all(|step| async move {
        let mut place = Place::new();
        let proxy = Proxy::before(&mut place).await;
        let changes = |method: &str, path: &str| method != "GET" || path.contains("/attach");
        let is_over = steps::die_at(step, &place, &proxy, changes).await;
        place.nothing_left_soon().await;
        is_over
    })
    .await;
    println!("a creation has {} steps", end - 1);
    assert!(end > 6, "{end}");
}

#[tokio::test]
async fn an_evicted_pod_is_a_pause_where_its_workspace_is_left_and_an_end_where_it_is_not() {
    let mut place = Place::new();
    for (storage, expected) in [("volume", "paused"), ("empty-dir", "stopped")] {
        place.extend(&json!({"storage": storage}));
        let backend = place.backend();
        let spec = SandboxSpec { keep_alive: true, ..Place::spec(&format!("evicted-{storage}")) };
        let sandbox = start(&*backend, &spec).await;
        run(&sandbox, "echo kept > file").await;
        place.set_pod_status(
            sandbox.id.as_str(),
            &json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."}),
        );
        let state = backend.find(&sandbox.id).await.unwrap().unwrap().state;
        assert_eq!(state.word(), expected, "{state}");
        if storage == "volume" {
            backend.resume(&sandbox.id).await.unwrap();
            let again = alive(&*backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await;
            assert_eq!(run(&again, "cat file").await, "kept");
        } else {
            assert!(state.reason().contains("ephemeral-storage"), "{state}");
            let error = backend.resume(&sandbox.id).await.unwrap_err();
            assert!(matches!(error, ProviderError::State { state: SandboxState::Stopped(_), .. }), "{error}");
        }
        assert!(backend.delete(&sandbox.id).await.unwrap());
        backend.close().await;
        place.nothing_left_soon().await;
    }
}

/// The clock of the backend's machine does not count: what is alive and what is over is told by the API server's.
#[tokio::test]
async fn a_backend_whose_clock_is_wrong_by_a_minute_takes_nobody_for_dead() {
    let place = Place::new();
    let owner = place.backend();
    let spec = SandboxSpec { keep_alive: true, time_to_live: Some(Duration::from_mins(5)), ..Place::spec("skew") };
    let sandbox = start(&*owner, &spec).await;
    owner.hold(&sandbox.id).await.unwrap();
    for renewed in ["2020-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"] {
        // What a backend with such a clock writes into its lease.
        let patch = json!({"spec": {"renewTime": renewed}}).to_string();
        for lease in place.left().iter().filter(|name| name.starts_with("lease")) {
            place.here(["patch", lease, "--type", "merge", "--patch", &patch]);
        }
        let stranger = place.elsewhere();
        let report = stranger.collect_garbage(&GcOptions { all: true, dry_run: false }).await.unwrap();
        assert!(report.removed.is_empty() && report.failed.is_empty(), "{report:?}");
        stranger.close().await;
    }
    assert!(owner.delete(&sandbox.id).await.unwrap());
    owner.close().await;
    place.assert_nothing_left();
}

//! Pods that are started ahead.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use gloveport_protocol::Secret;
use gloveport_provider::{GcOptions, Progress, ResourceLimits, SandboxSpec, SandboxState};
use serde_json::json;

use crate::cluster::{BUSYBOX, Place, alive, run, start};

fn with_image(storage: &str) -> Place {
    let mut place = Place::new();
    place.config.sandbox.runtime_container_image = Some(BUSYBOX.to_owned());
    place.extend(&json!({"storage": storage}));
    place
}

fn warm(name: &str) -> SandboxSpec {
    SandboxSpec { warm: true, image: None, ..Place::spec(name) }
}

/// The pods of a place: name and role.
fn pods(place: &Place) -> Vec<(String, String)> {
    let template = "jsonpath={range .items[*]}{.metadata.name} {.metadata.labels.gloveport/role}{\"\\n\"}{end}";
    let listed = place.here(["get", "pods", "--output", template]);
    listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, role)| (name.to_owned(), role.to_owned()))
        .collect()
}

#[tokio::test]
async fn a_pod_that_waits_becomes_a_sandbox_with_all_of_its_spec() {
    let place = with_image("volume");
    let backend = place.backend();
    backend.warm(2).await.unwrap();
    assert_eq!(pods(&place).len(), 2);
    let spec = SandboxSpec {
        environment: [("SHOWN".to_owned(), "own".to_owned())].into(),
        secrets: [("TOKEN".to_owned(), Secret::new("hidden-text".to_owned()))].into(),
        labels: [("team".to_owned(), "a".to_owned())].into(),
        keep_alive: true,
        ..warm("late")
    };
    let began = Instant::now();
    let sandbox = start(&*backend, &spec).await;
    println!("a sandbox that was started ahead answers after {:?}", began.elapsed());
    assert_eq!(
        run(&sandbox, "echo $SHOWN ${#TOKEN} $OPENHANDS_SESSION_ID; pwd; echo kept > file").await,
        "own 11 late\n/workspace"
    );
    let all = pods(&place);
    let (mine, _) = all.iter().find(|(_, role)| role == "sandbox").unwrap();
    assert!(mine.starts_with("gloveport-warm-") && all.len() == 2, "{all:?}");
    let pod = place.object("pod", mine);
    assert_eq!(
        (&pod["metadata"]["labels"]["session"], &pod["metadata"]["labels"]["team"]),
        (&json!("late"), &json!("a"))
    );
    assert!(!pod.to_string().contains("hidden-text"));
    // Another backend finds it, and what comes after a pause has its files, variables and secrets.
    let other = place.backend();
    let found = other.find_session(&spec.session_id).await.unwrap().unwrap();
    assert_eq!((found.id.as_str(), &found.labels), ("openhands-runtime-late", &spec.labels));
    other.pause(&found.id).await.unwrap();
    assert_eq!(other.find(&found.id).await.unwrap().unwrap().state, SandboxState::Paused);
    other.resume(&found.id).await.unwrap();
    let again = alive(&*other, other.find(&found.id).await.unwrap().unwrap()).await;
    assert_eq!(run(&again, "cat file; echo $SHOWN ${#TOKEN}").await, "kept\nown 11");
    other.delete(&found.id).await.unwrap();
    other.close().await;
    backend.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn two_backends_never_get_the_same_pod() {
    let place = with_image("empty-dir");
    let (one, other) = (place.backend(), place.backend());
    one.warm(6).await.unwrap();
    let waiting: BTreeSet<String> = pods(&place).into_iter().map(|(name, _)| name).collect();
    let specs: Vec<SandboxSpec> = (0..10).map(|number| warm(&format!("claim-{number}"))).collect();
    let silent = Progress::silent();
    let claims = specs.iter().enumerate().map(|(number, spec)| {
        let backend = if number % 2 == 0 { &one } else { &other };
        backend.create(spec, &silent)
    });
    let made: Vec<_> = join_all(claims).await.into_iter().map(Result::unwrap).collect();
    let of_pool = pods(&place).into_iter().filter(|(name, role)| waiting.contains(name) && role == "sandbox").count();
    // All that waited have a session, and the others were made for theirs.
    assert_eq!((of_pool, pods(&place).len()), (6, 10));
    let answers = join_all(made.into_iter().enumerate().map(|(number, sandbox)| {
        let backend = if number % 2 == 0 { &one } else { &other };
        async move { run(&alive(&**backend, sandbox).await, "echo $OPENHANDS_SESSION_ID").await }
    }));
    let wanted: Vec<String> = specs.iter().map(|spec| spec.session_id.to_string()).collect();
    assert_eq!(answers.await, wanted);
    tokio::join!(one.close(), other.close());
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn what_would_be_made_otherwise_is_not_taken_from_the_pool() {
    let place = with_image("empty-dir");
    let backend = place.backend();
    backend.warm(1).await.unwrap();
    let limits = ResourceLimits { memory: Some(100 << 20), ..ResourceLimits::default() };
    start(&*backend, &SandboxSpec { limits, ..warm("limited") }).await;
    start(&*backend, &SandboxSpec { warm: false, ..warm("cold") }).await;
    assert_eq!(pods(&place).iter().filter(|(_, role)| role == "warm").count(), 1);
    // Its key is of use to nobody who has another one.
    let name = pods(&place).into_iter().find(|(_, role)| role == "warm").unwrap().0;
    let secret = place.object("secret", &format!("{name}-key"));
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "Pod");
    backend.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn the_pool_of_a_backend_that_has_died_is_garbage() {
    let place = with_image("volume");
    let dead = place.backend();
    dead.warm(1).await.unwrap();
    drop(dead);
    let collector = place.backend();
    let report = collector.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!((report.removed.len(), report.failed.len()), (1, 0), "{report:?}");
    collector.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn timed_a_claim_takes_no_longer_than_150_milliseconds() {
    let place = with_image("empty-dir");
    let backend = place.backend();
    backend.warm(6).await.unwrap();
    let mut times = Vec::new();
    for number in 0..6 {
        let began = Instant::now();
        start(&*backend, &warm(&format!("timed-{number}"))).await;
        times.push(began.elapsed());
    }
    times.sort();
    println!("from the wish to the first answer: {times:?}");
    assert!(times[times.len() / 2] < Duration::from_millis(150), "{times:?}");
    backend.close().await;
    place.nothing_left_soon().await;
}

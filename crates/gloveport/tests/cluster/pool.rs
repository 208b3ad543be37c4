//! Pods that are started ahead.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::join_all;
use gloveport_protocol::Secret;
use gloveport_provider::{GcOptions, Progress, Provider, ResourceLimits, Sandbox, SandboxSpec, SandboxState};
use gloveport_provider_kubernetes::Kubernetes;
use gloveport_testing::pace;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    cluster::{BUSYBOX, DEBIAN, Place, alive, run, start, until},
    proxy::{Proxy, Verdict},
    steps,
};

/// Claims that are timed, one after the other.
const CLAIMS: usize = 6;
/// How often they are, at the most: the node may have had other work.
const ROUNDS: usize = 3;

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

/// How many of a place have this role.
fn count(place: &Place, wanted: &str) -> usize {
    pods(place).iter().filter(|(_, role)| role == wanted).count()
}

/// The status that the server of a sandbox answers to whoever has this key.
pub(crate) async fn status(sandbox: &Sandbox, path: &str, key: &str) -> u16 {
    let address = sandbox.url.as_deref().unwrap().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: sandbox\r\nconnection: close\r\nx-session-api-key: {key}\r\n\
         content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn after_a_claim_the_key_of_the_session_opens_the_server_and_the_first_key_of_the_pod_nothing() {
    let place = with_image("empty-dir");
    let backend = place.backend();
    backend.warm(1).await.unwrap();
    let (name, _) = pods(&place).remove(0);
    let secret = place.object("secret", &format!("{name}-key"));
    let first = String::from_utf8(STANDARD.decode(secret["data"]["key"].as_str().unwrap()).unwrap()).unwrap();
    let sandbox = start(&*backend, &warm("claimed")).await;
    assert_eq!(pods(&place), [(name, "sandbox".to_owned())]);
    let own = sandbox.session_key.as_ref().unwrap().expose().to_owned();
    assert_ne!(own, first);
    for path in ["/list_files", "/execute_action", "/gloveport/claim"] {
        let mut answers = Vec::new();
        for wrong in [first.as_str(), "", "x"] {
            answers.push(status(&sandbox, path, wrong).await);
        }
        println!("{path}: {answers:?}");
        // What is no key at all opens as little.
        assert!(answers == [answers[1]; 3] && [401, 403].contains(&answers[0]), "{path}: {answers:?}");
    }
    assert_eq!(status(&sandbox, "/list_files", &own).await, 200);
    assert_eq!(run(&sandbox, "echo mine").await, "mine");
    backend.close().await;
    place.nothing_left_soon().await;
}

/// The backend of a place after a change of it.
fn changed(change: impl FnOnce(&mut Place), of: &Place) -> Arc<dyn Provider> {
    let mut place = of.beside();
    change(&mut place);
    place.backend()
}

#[tokio::test]
async fn pods_of_another_build_or_of_other_settings_are_never_claimed() {
    let place = with_image("empty-dir");
    let backend = place.backend();
    backend.warm(1).await.unwrap();
    let keys = |more: serde_json::Value| {
        let mut keys = json!({"storage": "empty-dir"});
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        move |place: &mut Place| place.extend(&keys)
    };
    let build = {
        // The same program, as another installation has it.
        let mut context = place.context();
        let copy: PathBuf = place.path().join("another-build");
        fs::copy(&context.inside, &copy).unwrap();
        context.inside = copy;
        Kubernetes::factory(&context).unwrap()
    };
    let others = [
        ("build", build),
        ("image", changed(|place| place.config.sandbox.runtime_container_image = Some(DEBIAN.to_owned()), &place)),
        ("request", changed(|place| "11m".clone_into(&mut place.config.kubernetes.resource_cpu_request), &place)),
        ("limit", changed(|place| "1Gi".clone_into(&mut place.config.kubernetes.resource_memory_limit), &place)),
        ("node", changed(keys(json!({"node_selector": {"gloveport-test/node": "real"}})), &place)),
        ("annotations", changed(keys(json!({"annotations": {"team": "a"}})), &place)),
        ("volume", changed(|place| place.extend(&json!({"storage": "volume"})), &place)),
        ("security", changed(keys(json!({"pod_security": "restricted"})), &place)),
        ("loader", changed(keys(json!({"loader_image": DEBIAN})), &place)),
    ];
    let made = join_all(others.iter().map(|(name, other)| async move {
        let made =
            other.create(&warm(name), &Progress::silent()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(made.id.as_str(), format!("openhands-runtime-{name}"));
    }));
    made.await;
    // Each pod has the name of its sandbox: it was made for it.
    for (name, role) in pods(&place) {
        assert_eq!(name.starts_with("gloveport-warm-"), role == "warm", "{name}");
    }
    assert_eq!((count(&place, "warm"), count(&place, "sandbox")), (1, others.len()));
    // Another backend of the same settings and build takes it.
    let alike = place.beside().backend();
    start(&*alike, &warm("alike")).await;
    assert_eq!((count(&place, "warm"), count(&place, "sandbox")), (0, others.len() + 1));
    alike.close().await;
    join_all(others.iter().map(|(_, other)| other.close())).await;
    backend.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn a_claim_that_meets_a_conflict_takes_another_pod_and_leaves_the_first() {
    let mut place = with_image("empty-dir");
    let filler = place.backend();
    filler.warm(2).await.unwrap();
    let proxy = Proxy::before(&mut place).await;
    let claims = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&claims);
    proxy.judge(move |method, path| {
        let is_claim = method == "PATCH" && path.contains("/pods/gloveport-warm-");
        if is_claim && counted.fetch_add(1, Ordering::Relaxed) == 0 {
            Verdict::Answer(409, "Conflict", "the object has been modified")
        } else {
            Verdict::Pass
        }
    });
    let backend = place.backend();
    let sandbox = start(&*backend, &warm("second")).await;
    assert_eq!(run(&sandbox, "echo works").await, "works");
    assert_eq!((claims.load(Ordering::Relaxed), count(&place, "warm"), count(&place, "sandbox")), (2, 1, 1));
    backend.close().await;
    filler.close().await;
    place.nothing_left_soon().await;
}

/// All requests of a claim that change something are steps; at each of them a backend dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backend_that_dies_at_any_step_of_a_claim_leaves_only_garbage() {
    let end = steps::all(|step| async move {
        // As the command line is configured.
        let mut place = with_image("volume");
        let filler = place.backend();
        filler.warm(1).await.unwrap();
        let proxy = Proxy::before(&mut place).await;
        let changes = |method: &str, path: &str| method != "GET" || path.contains("/portforward");
        let is_over = steps::die_at(step, &place, &proxy, changes).await;
        let kinds = "configmaps,secrets,persistentvolumeclaims,services,pods";
        let of_session = ["get", kinds, "--selector", "session", "--output", "name", "--ignore-not-found"];
        until("nothing of the session is left", || place.here(of_session).is_empty()).await;
        // Whoever came to the end used the pod that waited.
        assert!(!is_over || pods(&place).is_empty(), "{:?}", pods(&place));
        filler.close().await;
        place.nothing_left_soon().await;
        is_over
    })
    .await;
    println!("a claim has {} steps", end - 1);
    assert!(end > 6, "{end}");
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
    assert_eq!(count(&place, "warm"), 1);
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
    let bound = Duration::from_millis(150).mul_f64(pace());
    let mut medians = Vec::new();
    for round in 0..ROUNDS {
        backend.warm(CLAIMS).await.unwrap();
        // The node starts them no longer.
        place.here(["wait", "pod", "--all", "--for", "condition=Ready", "--timeout", "60s"]);
        let mut times = Vec::new();
        for number in 0..CLAIMS {
            let began = Instant::now();
            start(&*backend, &warm(&format!("timed-{round}-{number}"))).await;
            times.push(began.elapsed());
        }
        times.sort();
        println!("from the wish to the first answer: {times:?}, of no more than {bound:?}");
        medians.push(times[(CLAIMS - 1) / 2]);
        if medians[round] < bound {
            break;
        }
    }
    assert!(medians.iter().any(|median| *median < bound), "{medians:?}, {bound:?}");
    backend.close().await;
    place.nothing_left_soon().await;
}

//! Sandboxes whose pods the controller of agent-sandbox makes (`api = "sandboxes"`).
//!
//! The project's controller is not here: a stand-in ([`controller`]) does what that one documents.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

mod controller;

use std::process::Command;

use base64::{Engine as _, prelude::BASE64_STANDARD as STANDARD};
use gloveport_protocol::Secret;
use gloveport_provider::{
    GcOptions, ListFilter, NetworkPolicy, Progress, Provider, ProviderError, Sandbox, SandboxSpec, SandboxState,
};
use gloveport_provider_kubernetes::Kubernetes;
use serde_json::{Value, json};

use self::controller::{CLAIMS, Controller, POOLS, SANDBOXES, TEMPLATES, install};
use crate::{
    cluster::{BUSYBOX, Place, alive, refused, run, start, until},
    pool::status,
    proxy::{Proxy, Verdict},
};

/// An image that has the program: nobody may be there to send it when the controller makes a pod.
fn image(place: &Place) -> String {
    let context = place.context();
    let mut build = Command::new(&context.program);
    build.env_clear().envs(&context.environment).current_dir(place.path());
    build.args(["image", "build", "--quiet", "--plain", "--base-image", BUSYBOX, "--buildkit", "never"]);
    build.args(["--docker-host", &std::env::var("GLOVEPORT_TEST_CLUSTER_DOCKER").unwrap()]);
    build.arg("--binary").arg(&context.inside);
    let output = build.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn keys(storage: &str) -> Value {
    json!({"api": "sandboxes", "program_in_image": true, "storage": storage, "start_within": 90})
}

/// A namespace whose backends make objects of agent-sandbox.
fn place(storage: &str) -> Place {
    let mut place = Place::new();
    place.extend(&keys(storage));
    place.config.sandbox.runtime_container_image = Some(image(&place));
    place
}

fn spec(name: &str) -> SandboxSpec {
    SandboxSpec { image: None, ..Place::spec(name) }
}

fn owner(object: &Value) -> (&Value, &Value) {
    let owner = &object["metadata"]["ownerReferences"][0];
    (&owner["kind"], &owner["uid"])
}

/// Nothing of sandboxes is left, and nothing that the controller has made.
async fn nothing_left(place: &Place) {
    until("nothing is left", || {
        let kinds = format!("{SANDBOXES},{TEMPLATES},{POOLS},{CLAIMS},pods,services");
        let all = place.here(["get", &kinds, "--output", "name"]);
        all.is_empty() && place.left().is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_sandbox_is_an_object_between_its_record_and_the_pod_of_the_controller_and_ends_with_the_record() {
    let mut place = place("volume");
    let mut all = keys("volume");
    all["network_policies"] = true.into();
    place.extend(&all);
    let _controller = Controller::of(&place);
    let backend = place.backend();
    for check in backend.check().await {
        assert!(check.works, "{check:?}");
    }
    let spec = SandboxSpec {
        secrets: [("TOKEN".to_owned(), Secret::new("hidden-text".to_owned()))].into(),
        labels: [("team".to_owned(), "a".to_owned())].into(),
        network: NetworkPolicy::None,
        warm: true,
        ..spec("one")
    };
    let sandbox = start(&*backend, &spec).await;
    let id = sandbox.id.as_str();
    assert_eq!(run(&sandbox, "echo ${#TOKEN} $OPENHANDS_SESSION_ID; pwd").await, "11 one\n/workspace");
    let (record, object, pod) = (place.object("configmap", id), place.object(SANDBOXES, id), place.object("pod", id));
    assert_eq!(owner(&object), (&json!("ConfigMap"), &record["metadata"]["uid"]));
    assert_eq!(owner(&pod), (&json!("Sandbox"), &object["metadata"]["uid"]));
    assert_eq!(object["metadata"]["labels"]["team"], "a");
    assert_eq!(object["spec"]["podTemplate"]["metadata"]["labels"]["gloveport/unit"], id);
    assert!(!object.to_string().contains("hidden-text"));
    // The policy and the service of the sandbox choose the pod by its labels.
    let chosen = &place.object("networkpolicy", id)["spec"]["podSelector"]["matchLabels"];
    for (key, value) in chosen.as_object().unwrap() {
        assert_eq!(pod["metadata"]["labels"][key], *value);
    }
    let listed = backend.list(&ListFilter::default()).await.unwrap();
    assert_eq!(
        listed.iter().map(|one| (one.id.as_str(), &one.state)).collect::<Vec<_>>(),
        [(id, &SandboxState::Running)]
    );
    let found = backend.find_session(&spec.session_id).await.unwrap().unwrap();
    assert_eq!(run(&found, "echo found").await, "found");
    assert!(matches!(refused(&*backend, &spec).await, ProviderError::SessionExists { .. }));
    // A backend that makes pods itself knows whose this one is, too.
    place.extend(&json!({"storage": "volume"}));
    let other = place.backend();
    assert_eq!(other.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Running);
    assert!(other.delete(&sandbox.id).await.unwrap());
    assert!(!backend.delete(&sandbox.id).await.unwrap());
    other.close().await;
    backend.close().await;
    nothing_left(&place).await;
}

async fn goes_on(backend: &dyn Provider, sandbox: &Sandbox) -> Sandbox {
    alive(backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await
}

#[tokio::test]
async fn a_paused_sandbox_goes_on_with_its_files_in_both_versions_of_the_kind() {
    for (version, key, rests, runs) in [
        ("v1beta1", "operatingMode", json!("Suspended"), json!("Running")),
        ("v1alpha1", "replicas", json!(0), json!(1)),
    ] {
        let mut place = place("volume");
        let _controller = Controller::of(&place);
        let proxy = Proxy::before(&mut place).await;
        proxy.judge(move |_, path| {
            let is_newer = path.starts_with("/apis/agents.x-k8s.io/v1beta1");
            if version == "v1alpha1" && is_newer { Verdict::Answer(404, "NotFound", "x") } else { Verdict::Pass }
        });
        let backend = place.backend();
        let spec = SandboxSpec { keep_alive: true, ..spec(&format!("rests-{version}")) };
        let sandbox = start(&*backend, &spec).await;
        let id = sandbox.id.as_str();
        let kind = format!("sandboxes.{version}.agents.x-k8s.io");
        run(&sandbox, "echo here > file").await;
        assert_eq!(place.object(&kind, id)["spec"][key], runs);
        backend.pause(&sandbox.id).await.unwrap();
        backend.pause(&sandbox.id).await.unwrap();
        assert_eq!(place.object(&kind, id)["spec"][key], rests);
        assert_eq!(backend.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Paused);
        assert!(!place.left().iter().any(|name| name.starts_with("pod/")), "{:?}", place.left());
        backend.close().await;
        let other = place.backend();
        other.resume(&sandbox.id).await.unwrap();
        assert_eq!(run(&goes_on(&*other, &sandbox).await, "cat file").await, "here");
        assert_eq!(place.object(&kind, id)["spec"][key], runs);
        // The controller makes another pod for one that somebody deletes, and nobody has to resume it.
        let before = place.object("pod", id)["metadata"]["uid"].clone();
        place.here(["delete", "pod", id]);
        until("another pod runs", || {
            let name = place.here(["get", "pod", id, "--ignore-not-found", "--output", "name"]);
            let runs = |pod: &Value| pod["status"]["phase"] == "Running" && pod["metadata"]["uid"] != before;
            !name.is_empty() && runs(&place.object("pod", id))
        })
        .await;
        assert_eq!(run(&goes_on(&*other, &sandbox).await, "cat file").await, "here");
        // One that was evicted rests, and goes on in another one.
        place.set_pod_status(id, &json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}));
        assert_eq!(other.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Paused);
        other.resume(&sandbox.id).await.unwrap();
        assert_eq!(run(&goes_on(&*other, &sandbox).await, "cat file").await, "here");
        assert!(other.delete(&sandbox.id).await.unwrap());
        other.close().await;
        nothing_left(&place).await;
    }
}

#[tokio::test]
async fn what_a_dead_backend_has_left_is_garbage() {
    let mut place = place("volume");
    let controller = Controller::of(&place);
    let dead = place.backend();
    let sandbox = start(&*dead, &spec("left")).await;
    drop(dead);
    // One that was killed in the middle: no controller makes its pod.
    drop(controller);
    let dying = place.backend();
    let half = spec("half");
    let making = tokio::spawn(async move { dying.create(&half, &Progress::silent()).await.map(drop) });
    until("its object is there", || place.here(["get", SANDBOXES, "--output", "name"]).contains("half")).await;
    making.abort();
    assert!(making.await.unwrap_err().is_cancelled());
    let _controller = Controller::of(&place);
    place.extend(&json!({"storage": "empty-dir"}));
    let collector = place.backend();
    let report = collector.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(report.failed.is_empty(), "{report:?}");
    assert!(report.removed.iter().any(|removed| removed.id.as_ref() == Some(&sandbox.id)), "{report:?}");
    collector.close().await;
    nothing_left(&place).await;
}

#[tokio::test]
async fn a_cluster_without_the_kind_is_told_what_to_install_and_which_setting_to_change() {
    let mut place = place("empty-dir");
    let proxy = Proxy::before(&mut place).await;
    proxy.judge(|_, path| {
        let is_of_it = path.starts_with("/apis/agents.x-k8s.io/");
        if is_of_it {
            Verdict::Answer(404, "NotFound", "the server could not find the requested resource")
        } else {
            Verdict::Pass
        }
    });
    let backend = place.backend();
    let text = refused(&*backend, &spec("none")).await.to_string();
    let checks = backend.check().await;
    let check = checks.iter().find(|check| check.name == "agent-sandbox").unwrap();
    assert!(!check.works && text.contains(&check.found), "{check:?}");
    for expected in ["kubernetes-sigs/agent-sandbox", "api = \"pods\""] {
        assert!(text.contains(expected) && check.remedy.as_ref().unwrap().contains(expected), "{text}");
    }
    backend.close().await;
    place.nothing_left_soon().await;
    // Pods that nobody makes ahead of time cannot be sent the program.
    place.extend(&json!({"api": "sandboxes"}));
    let text = Kubernetes::factory(&place.context()).unwrap_err().to_string();
    assert!(text.contains("extended.kubernetes.api") && text.contains("program_image"), "{text}");
    place.extend(&json!({"api": "deployments"}));
    let text = Kubernetes::factory(&place.context()).unwrap_err().to_string();
    assert!(text.contains("[extended.kubernetes]") && text.contains("deployments"), "{text}");
}

#[tokio::test]
async fn a_sandbox_whose_pod_ends_or_is_not_made_says_why() {
    let mut place = place("empty-dir");
    install();
    let mut short = keys("empty-dir");
    short["start_within"] = 5.into();
    place.extend(&short);
    let impatient = place.backend();
    let text = refused(&*impatient, &spec("alone")).await.to_string();
    assert!(text.contains("has made no pod within 5 s: is it running?"), "{text}");
    impatient.close().await;
    nothing_left(&place).await;

    place.extend(&keys("empty-dir"));
    let _controller = Controller::of(&place);
    let backend = place.backend();
    let fails =
        SandboxSpec { command: Some(vec!["sh".to_owned(), "-c".to_owned(), "exit 3".to_owned()]), ..spec("fails") };
    let text = match backend.create(&fails, &Progress::silent()).await {
        Err(error) => error.to_string(),
        // It was seen while it ran.
        Ok(sandbox) => {
            let phase = || place.object("pod", sandbox.id.as_str())["status"]["phase"].clone();
            until("it has failed", || phase() == "Failed").await;
            backend.find(&sandbox.id).await.unwrap().unwrap().state.to_string()
        }
    };
    assert!(text.contains("exit code 3"), "{text}");
    let sandbox = start(&*backend, &spec("ends")).await;
    place.here(["exec", sandbox.id.as_str(), "--", "sh", "-c", "kill -TERM 1"]);
    until("its pod has ended", || place.object("pod", sandbox.id.as_str())["status"]["phase"] == "Succeeded").await;
    let state = backend.find(&sandbox.id).await.unwrap().unwrap().state;
    assert_eq!(state, SandboxState::Stopped("its server was told to end".to_owned()));
    // Another one takes its place.
    let sandbox = start(&*backend, &spec("ends")).await;
    let patch = json!({"spec": {"shutdownTime": "2020-01-01T00:00:00Z"}}).to_string();
    place.here(["patch", SANDBOXES, sandbox.id.as_str(), "--type", "merge", "--patch", &patch]);
    let is_over = || {
        let object = place.object(SANDBOXES, sandbox.id.as_str());
        object["status"]["conditions"][0]["reason"] == "SandboxExpired"
            && !place.left().iter().any(|name| name.starts_with("pod/") && name.ends_with("ends"))
    };
    until("its time is over", is_over).await;
    let state = backend.find(&sandbox.id).await.unwrap().unwrap().state;
    assert!(
        matches!(&state, SandboxState::Stopped(why) if why.contains("its time is over (SandboxExpired")),
        "{state}"
    );
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(
        report.failed.is_empty() && report.removed.iter().any(|one| one.id.as_ref() == Some(&sandbox.id)),
        "{report:?}"
    );

    place.apply(&json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}}}));
    until("the quota counts", || place.object("resourcequota", "none")["status"]["hard"]["pods"] == "0").await;
    let text = refused(&*backend, &spec("over")).await.to_string();
    assert!(text.contains("makes no pod: ReconcilerError") && text.contains("exceeded quota"), "{text}");
    backend.close().await;
    nothing_left(&place).await;
}

/// Pods that wait for a session.
fn waiting(place: &Place) -> usize {
    place.here(["get", "pods", "--selector", "gloveport/role=warm", "--output", "name"]).lines().count()
}

#[tokio::test]
async fn sandboxes_that_the_controller_has_started_ahead_are_claimed_once_and_told_late_what_they_are_for() {
    let mut place = place("empty-dir");
    let _controller = Controller::of(&place);
    let backend = place.backend();
    assert!(backend.capabilities().warm);
    backend.warm(2).await.unwrap();
    assert_eq!(waiting(&place), 2);
    let other = place.backend();
    let wanted = |name: &str| SandboxSpec {
        warm: true,
        keep_alive: true,
        environment: [("COLOUR".to_owned(), name.to_owned())].into(),
        secrets: [("TOKEN".to_owned(), Secret::new(format!("hidden-{name}")))].into(),
        labels: [("team".to_owned(), name.to_owned())].into(),
        ..spec(name)
    };
    let (one, two) = (wanted("one"), wanted("two"));
    let (one, two) = tokio::join!(start(&*backend, &one), start(&*other, &two));
    for (sandbox, name) in [(&one, "one"), (&two, "two")] {
        let expected = format!("{name} hidden-{name} {name}");
        assert_eq!(run(sandbox, "echo $COLOUR $TOKEN $OPENHANDS_SESSION_ID").await, expected);
        let (id, record) = (sandbox.id.as_str(), place.object("configmap", sandbox.id.as_str()));
        let made = record["metadata"]["annotations"]["gloveport/sandbox"].as_str().unwrap().to_owned();
        assert!(made.starts_with("gloveport-pool-"), "{made}");
        // Record, claim, sandbox and pod belong to each other in this order.
        let (claim, object, pod) =
            (place.object(CLAIMS, id), place.object(SANDBOXES, &made), place.object("pod", &made));
        assert_eq!(owner(&claim), (&json!("ConfigMap"), &record["metadata"]["uid"]));
        assert_eq!(owner(&object), (&json!("SandboxClaim"), &claim["metadata"]["uid"]));
        assert_eq!(owner(&pod), (&json!("Sandbox"), &object["metadata"]["uid"]));
        for labels in [&pod["metadata"]["labels"], &object["spec"]["podTemplate"]["metadata"]["labels"]] {
            assert_eq!((&labels["gloveport/role"], &labels["team"]), (&json!("sandbox"), &json!(name)), "{labels}");
            assert_eq!(labels["gloveport/unit"], id);
        }
        assert!(!object.to_string().contains("hidden-"));
        // The key of the pool opens nothing any more.
        let pool = &claim["spec"]["sandboxTemplateRef"]["name"].as_str().unwrap();
        let first = place.here(["get", "secret", &format!("{pool}-key"), "--output", "jsonpath={.data.key}"]);
        let first = String::from_utf8(STANDARD.decode(first.trim()).unwrap()).unwrap();
        assert!([401, 403].contains(&status(sandbox, "/list_files", &first).await));
        assert_eq!(status(sandbox, "/list_files", sandbox.session_key.as_ref().unwrap().expose()).await, 200);
    }
    // The controller fills the pool again, and what is made otherwise is not taken from it.
    until("the pool is filled again", || waiting(&place) == 2).await;
    let limits = gloveport_provider::ResourceLimits { memory: Some(100 << 20), ..Default::default() };
    let limited = start(&*backend, &SandboxSpec { limits, ..wanted("limited") }).await;
    assert_eq!(place.object("pod", limited.id.as_str())["metadata"]["name"], limited.id.as_str());
    // Its owner knows whose it is, and so does everybody else.
    let listed = other.list(&ListFilter::default()).await.unwrap();
    assert_eq!((listed.len(), listed.iter().all(|one| one.state == SandboxState::Running)), (3, true), "{listed:?}");
    let found = other.find(&one.id).await.unwrap().unwrap();
    assert_eq!(run(&found, "echo found").await, "found");
    assert!(matches!(other.pause(&one.id).await.unwrap_err(), ProviderError::Unsupported { .. }));
    for sandbox in [&one, &two, &limited] {
        assert!(other.delete(&sandbox.id).await.unwrap());
    }
    assert_eq!(place.here(["get", CLAIMS, "--output", "name"]), "");
    other.close().await;
    backend.close().await;
    nothing_left(&place).await;

    // Volumes are made for a session, and not before.
    place.extend(&keys("volume"));
    let volumes = place.backend();
    assert!(!volumes.capabilities().warm);
    assert!(matches!(volumes.warm(1).await.unwrap_err(), ProviderError::Unsupported { .. }));
    volumes.close().await;
}

#[tokio::test]
async fn a_claim_that_gets_nothing_is_given_back_and_a_pool_of_a_dead_backend_is_garbage() {
    let mut place = place("empty-dir");
    let controller = Controller::of(&place);
    let dead = place.backend();
    dead.warm(1).await.unwrap();
    drop(controller);
    let careless = Controller::without_claims(&place);
    let backend = place.backend();
    let sandbox = start(&*backend, &SandboxSpec { warm: true, ..spec("cold") }).await;
    assert_eq!(run(&sandbox, "echo $OPENHANDS_SESSION_ID").await, "cold");
    assert_eq!((place.here(["get", CLAIMS, "--output", "name"]).as_str(), waiting(&place)), ("", 1));
    assert!(backend.delete(&sandbox.id).await.unwrap());
    drop(dead);
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(report.failed.is_empty() && report.removed.len() == 1, "{report:?}");
    backend.close().await;
    nothing_left(&place).await;
    drop(careless);

    let _controller = Controller::of(&place);
    let proxy = Proxy::before(&mut place).await;
    proxy.judge(|_, path| {
        let is_of_it = path.starts_with("/apis/extensions.agents.x-k8s.io/");
        if is_of_it { Verdict::Answer(404, "NotFound", "x") } else { Verdict::Pass }
    });
    let backend = place.backend();
    let text = backend.warm(1).await.unwrap_err().to_string();
    assert!(text.contains("SandboxWarmPool") && text.contains("extensions.yaml"), "{text}");
    // A session does without.
    let sandbox = start(&*backend, &SandboxSpec { warm: true, ..spec("without") }).await;
    assert_eq!(run(&sandbox, "echo works").await, "works");
    backend.close().await;
    nothing_left(&place).await;
}

//! Nodes that are full, closed or gone. Those that are lost are simulated: one machine cannot lose itself.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{process::Command, time::Duration};

use gloveport_provider::{Progress, SandboxSpec, SandboxState};
use serde_json::json;

use crate::cluster::{Place, alive, refused, run, start, until};

fn script(arguments: &[&str]) {
    let script = std::env::var("GLOVEPORT_TEST_CLUSTER_SCRIPT").unwrap();
    let output = Command::new(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[tokio::test]
async fn a_pod_that_no_node_takes_is_told_with_the_scheduler_s_words_and_leaves_nothing() {
    let mut place = Place::new();
    place.config.kubernetes.resource_cpu_request = "500".to_owned();
    place.extend(&json!({"storage": "empty-dir", "start_within": 4}));
    let backend = place.backend();
    let text = refused(&*backend, &Place::spec("large")).await.to_string();
    for expected in ["Insufficient cpu", "start_within", "resource_cpu_request"] {
        assert!(text.contains(expected), "{text}");
    }
    backend.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn a_cordoned_node_keeps_its_sandboxes_and_gets_no_new_ones_until_it_is_open_again() {
    let mut place = Place::new();
    // A taint does for this namespace what a cordon does for all: other tests use the node meanwhile.
    place.extend(&json!({"storage": "empty-dir", "start_within": 60}));
    let backend = place.backend();
    let before = start(&*backend, &Place::spec("before")).await;
    place.extend(&json!({"storage": "empty-dir", "start_within": 60,
        "node_selector": {"gloveport-test/open": place.namespace}}));
    let closed = place.backend();
    let spec = Place::spec("waits");
    let making =
        tokio::spawn(async move { closed.create(&spec, &Progress::silent()).await.map(|sandbox| (closed, sandbox)) });
    until("its pod waits", || place.here(["get", "events"]).contains("FailedScheduling")).await;
    assert_eq!(run(&before, "echo works").await, "works");
    let node = std::env::var("GLOVEPORT_TEST_CLUSTER_NODE").unwrap();
    Place::kubectl(["label", "node", &node, &format!("gloveport-test/open={}", place.namespace), "--overwrite"]);
    let (closed, sandbox) = making.await.unwrap().unwrap();
    assert_eq!(run(&alive(&*closed, sandbox).await, "echo too").await, "too");
    Place::kubectl(["label", "node", &node, "gloveport-test/open-"]);
    closed.close().await;
    backend.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn a_sandbox_whose_node_is_gone_rests_and_goes_on_elsewhere() {
    let mut place = Place::new();
    let lost = "sim-1";
    script(&["nodes", "1"]);
    let simulated = json!({"storage": "volume", "start_within": 60,
        "node_selector": {"gloveport-test/node": "simulated"},
        "tolerations": [{"key": "gloveport-test/simulated", "operator": "Exists"}]});
    place.extend(&simulated);
    // Nothing takes our program there.
    let mut keys = simulated.clone();
    keys["program_in_image"] = true.into();
    place.extend(&keys);
    let backend = place.backend();
    let spec = SandboxSpec { keep_alive: true, ..Place::spec("moves") };
    let sandbox = backend.create(&spec, &Progress::silent()).await.unwrap();
    assert_eq!(backend.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Running);
    script(&["lose", lost]);
    let id = sandbox.id.clone();
    let taken = tokio::time::timeout(Duration::from_mins(3), async {
        loop {
            let state = backend.find(&id).await.unwrap().unwrap().state;
            if state == SandboxState::Paused {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    taken.await.unwrap();
    script(&["nodes", "2"]);
    backend.resume(&sandbox.id).await.unwrap();
    let pod = place.object("pod", sandbox.id.as_str());
    assert_eq!(pod["spec"]["nodeName"], "sim-2");
    assert!(backend.delete(&sandbox.id).await.unwrap());
    backend.close().await;
    script(&["nodes", "0"]);
    place.nothing_left_soon().await;
}

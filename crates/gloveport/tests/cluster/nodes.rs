//! Nodes that are full, closed or gone. Those that are lost are simulated: one machine cannot lose itself.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::time::Duration;

use gloveport_provider::{Progress, SandboxSpec, SandboxState};
use serde_json::{Value, json};

use crate::cluster::{Place, alive, new_nodes, refused, run, script, start, try_kubectl, until};

/// Keys with which pods go to simulated nodes, which take no program of ours.
fn simulated(more: &Value) -> Value {
    let mut keys = json!({"storage": "empty-dir", "start_within": 60, "program_in_image": true,
        "node_selector": {"gloveport-test/node": "simulated"},
        "tolerations": [{"key": "gloveport-test/simulated", "operator": "Exists"}]});
    keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    keys
}

/// What a node says of its disk.
fn set_disk_pressure(node: &str, is_low: bool) {
    let mut object: Value = serde_json::from_str(&Place::kubectl(["get", "node", node, "--output", "json"])).unwrap();
    let status = if is_low { "True" } else { "False" };
    for condition in object["status"]["conditions"].as_array_mut().unwrap() {
        if condition["type"] == "DiskPressure" {
            condition["status"] = status.into();
        }
    }
    // Others write to the node as well.
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let path = format!("/api/v1/nodes/{node}/status");
    let (success, text) = try_kubectl(["replace", "--raw", &path, "--filename", "-"], &object.to_string());
    assert!(success, "{text}");
}

#[tokio::test]
async fn a_node_that_is_cordoned_keeps_its_sandbox_and_a_new_one_waits_for_its_end() {
    let mut place = Place::new();
    new_nodes(1);
    place.extend(&simulated(&json!({})));
    let backend = place.backend();
    let before = backend.create(&Place::spec("before"), &Progress::silent()).await.unwrap();
    Place::kubectl(["cordon", "sim-1"]);
    let later = std::sync::Arc::clone(&backend);
    let making = tokio::spawn(async move { later.create(&Place::spec("waits"), &Progress::silent()).await });
    until("its pod waits", || place.here(["get", "events"]).contains("unschedulable")).await;
    assert_eq!(backend.find(&before.id).await.unwrap().unwrap().state, SandboxState::Running);
    assert!(!making.is_finished());
    Place::kubectl(["uncordon", "sim-1"]);
    let made = making.await.unwrap().unwrap();
    assert_eq!(place.object("pod", made.id.as_str())["spec"]["nodeName"], "sim-1");
    backend.close().await;
    script(&["nodes", "0"]);
    place.nothing_left_soon().await;
}

#[tokio::test]
async fn a_disk_that_is_full_is_told_and_its_end_lets_sandboxes_start_again() {
    let mut place = Place::new();
    new_nodes(1);
    place.extend(&simulated(&json!({"start_within": 10})));
    let backend = place.backend();
    let before = backend.create(&Place::spec("before"), &Progress::silent()).await.unwrap();
    set_disk_pressure("sim-1", true);
    until("nothing is placed on it", || {
        Place::kubectl(["get", "node", "sim-1", "--output", "jsonpath={.spec.taints[*].key}"]).contains("disk-pressure")
    })
    .await;
    let text = refused(&*backend, &Place::spec("late")).await.to_string();
    assert!(text.contains("disk-pressure") && text.contains("start_within"), "{text}");
    until("nothing of it is left", || place.left().iter().all(|name| !name.contains("runtime-late"))).await;
    // What it ends is as after any eviction.
    let reason = "The node was low on resource: ephemeral-storage. DiskPressure.";
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": reason});
    place.set_pod_status(before.id.as_str(), &evicted);
    let state = backend.find(&before.id).await.unwrap().unwrap().state;
    assert!(state.word() == "stopped" && state.reason().contains("DiskPressure"), "{state}");
    set_disk_pressure("sim-1", false);
    until("sandboxes are placed on it", || {
        !Place::kubectl(["get", "node", "sim-1", "--output", "jsonpath={.spec.taints[*].key}"])
            .contains("disk-pressure")
    })
    .await;
    let again = backend.create(&Place::spec("before"), &Progress::silent()).await.unwrap();
    assert_eq!(backend.find(&again.id).await.unwrap().unwrap().state, SandboxState::Running);
    backend.close().await;
    script(&["nodes", "0"]);
    place.nothing_left_soon().await;
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
    new_nodes(1);
    place.extend(&simulated(&json!({"storage": "volume"})));
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

//! Sandboxes that reach hosts by name, through gates.
//!
//! The cluster of the tests has neither a DNS nor a network that enforces policies: names are those of `/etc/hosts` in the pod
//! of a gate, and what policies close is looked at in the policies.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::time::Duration;

use gloveport_provider::{GcOptions, ListFilter, NetworkPolicy, Progress, Sandbox, SandboxSpec, SandboxState};
use serde_json::{Value, json};

use crate::cluster::{BARE, BUSYBOX, DEBIAN, Place, alive, refused, run, start, until};

/// Asks the proxy of the environment for a URL, and prints the status and the last line.
const ASK: &str = r#"($proxy) = $ENV{http_proxy} =~ m{//(.*)}; $t = $ARGV[0];
$s = IO::Socket::INET->new(PeerAddr => $proxy, Timeout => 5) or die "no proxy: $@";
print $s "GET http://$t/ HTTP/1.1\r\nHost: $t\r\nConnection: close\r\n\r\n";
@lines = <$s>; $lines[0] =~ / (\d+)/; print "$1 $lines[-1]";"#;

async fn ask(sandbox: &Sandbox, target: &str) -> String {
    run(sandbox, &format!("perl -MIO::Socket -e '{ASK}' {target}")).await
}

fn only(hosts: &[&str]) -> NetworkPolicy {
    NetworkPolicy::Only(hosts.iter().map(|host| (*host).to_owned()).collect())
}

fn gated(name: &str, hosts: &[&str]) -> SandboxSpec {
    SandboxSpec { image: Some(DEBIAN.to_owned()), network: only(hosts), keep_alive: true, ..Place::spec(name) }
}

fn place(storage: &str) -> Place {
    let mut place = Place::new();
    place.extend(&json!({"storage": storage, "network_policies": true}));
    place
}

/// A pod that is none of ours, and answers on port 8000; its address.
async fn other(place: &Place) -> String {
    let script = "mkdir /tmp/www; echo answer >/tmp/www/index.html; exec httpd -f -p 8000 -h /tmp/www";
    place.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": BUSYBOX, "command": ["sh", "-c", script]}]}}));
    until("the other pod runs", || place.object("pod", "other")["status"]["phase"] == "Running").await;
    place.object("pod", "other")["status"]["podIP"].as_str().unwrap().to_owned()
}

/// The gate in a record knows these names from now on, when it is made once more.
fn teach(place: &Place, record: &str, names: &[&str], address: &str) {
    let map = place.object("configmap", record);
    let mut gate: Value = serde_json::from_str(map["data"]["gate.json"].as_str().unwrap()).unwrap();
    gate["spec"]["hostAliases"] = json!([{"ip": address, "hostnames": names}]);
    let patch = json!({"data": {"gate.json": gate.to_string()}}).to_string();
    place.here(["patch", "configmap", record, "--type", "merge", "--patch", &patch]);
}

#[tokio::test]
async fn a_sandbox_reaches_allowed_hosts_through_its_gate_whatever_becomes_of_the_gate() {
    let place = place("volume");
    let backend = place.backend();
    let address = other(&place).await;
    let sandbox = start(&*backend, &gated("one", &["allowed.test:8000", "192.0.2.1:443"])).await;
    let gate = place.object("service", "gloveport-gate-one")["spec"]["clusterIP"].as_str().unwrap().to_owned();
    let told = run(&sandbox, "echo $HTTP_PROXY $http_proxy $HTTPS_PROXY $https_proxy; echo $NO_PROXY $no_proxy").await;
    let (proxy, local) = (format!("http://{gate}:3128"), "localhost,127.0.0.1,::1");
    assert_eq!(told, format!("{proxy} {proxy} {proxy} {proxy}\n{local} {local}"));
    for target in ["other.test:8000", "allowed.test:80", &format!("{address}:8000")] {
        let answer = ask(&sandbox, target).await;
        assert!(answer.starts_with("403 gloveport: this sandbox may not reach"), "{target}: {answer}");
        assert!(answer.contains("allowed.test:8000, 192.0.2.1:443"), "{answer}");
    }
    // It is allowed, and nobody knows it: the gate has looked it up.
    let answer = ask(&sandbox, "allowed.test:8000").await;
    assert!(answer.starts_with("50"), "{answer}");

    // A gate that is gone is told, by all ways to look, and opened once more.
    teach(&place, "openhands-runtime-one", &["allowed.test", "other.test"], &address);
    place.here(["delete", "pod", "gloveport-gate-one"]);
    let found = backend.find(&sandbox.id).await.unwrap().unwrap();
    let listed = backend.list(&ListFilter::default()).await.unwrap();
    for state in [&found.state, &listed[0].state] {
        let SandboxState::Unknown(reason) = state else { panic!("{state:?}") };
        assert!(reason.contains("`gloveport-gate-one` is gone") && reason.contains("resume"), "{reason}");
    }
    backend.resume(&sandbox.id).await.unwrap();
    let sandbox = alive(&*backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await;
    assert_eq!(ask(&sandbox, "allowed.test:8000").await, "200 answer");
    assert!(ask(&sandbox, "other.test:8000").await.starts_with("403 "));

    // One that ends is started again by its node, with our program still in it.
    place.here(["exec", "gloveport-gate-one", "--", "sh", "-c", "kill -TERM 1"]);
    let status = || place.object("pod", "gloveport-gate-one")["status"]["containerStatuses"][0].clone();
    until("the gate is started again", || status()["restartCount"] == 1 && status()["ready"] == true).await;
    assert_eq!(backend.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Running);
    assert_eq!(ask(&sandbox, "allowed.test:8000").await, "200 answer");

    // Both rest, and both go on, with another backend too.
    run(&sandbox, "echo kept > file").await;
    backend.pause(&sandbox.id).await.unwrap();
    assert!(!place.left().iter().any(|name| name.starts_with("pod/")), "{:?}", place.left());
    assert_eq!(backend.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Paused);
    backend.close().await;
    let second = place.backend();
    second.resume(&sandbox.id).await.unwrap();
    let again = alive(&*second, second.find(&sandbox.id).await.unwrap().unwrap()).await;
    assert_eq!(run(&again, "cat file; echo $http_proxy").await, format!("kept\n{proxy}"));
    assert_eq!(ask(&again, "allowed.test:8000").await, "200 answer");
    assert!(second.delete(&again.id).await.unwrap());
    second.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_gate_belongs_to_the_record_of_its_sandbox_and_is_no_sandbox() {
    let place = place("empty-dir");
    let backend = place.backend();
    let sandbox = start(&*backend, &gated("two", &["a.test", "10.0.0.0/8"])).await;
    let owner = place.object("configmap", "openhands-runtime-two")["metadata"]["uid"].clone();
    for kind in ["pod", "service", "networkpolicy"] {
        let object = place.object(kind, "gloveport-gate-two");
        assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], owner, "{kind}");
    }
    // The cluster chooses the pods that are meant, by labels.
    let chosen = |object: &Value| {
        let labels =
            object.as_object().unwrap().iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap()));
        place.here(["get", "pods", "--output", "name", "--selector", &labels.collect::<Vec<_>>().join(",")])
    };
    let (own, gate) = ("pod/openhands-runtime-two", "pod/gloveport-gate-two");
    let closed = &place.object("networkpolicy", "openhands-runtime-two")["spec"];
    assert_eq!(chosen(&closed["podSelector"]["matchLabels"]), own);
    assert_eq!(closed["egress"][0]["to"], json!([{"ipBlock": {"cidr": "10.0.0.0/8"}}]));
    assert_eq!(chosen(&closed["egress"][1]["to"][0]["podSelector"]["matchLabels"]), gate);
    assert_eq!(closed["egress"][1]["ports"], json!([{"port": 3128, "protocol": "TCP"}]));
    assert_eq!(closed["egress"].as_array().unwrap().len(), 2);
    let entry = &place.object("networkpolicy", "gloveport-gate-two")["spec"];
    assert_eq!(chosen(&entry["podSelector"]["matchLabels"]), gate);
    assert_eq!(entry["ingress"].as_array().unwrap().len(), 1);
    assert_eq!(chosen(&entry["ingress"][0]["from"][0]["podSelector"]["matchLabels"]), own);
    assert_eq!(chosen(&place.object("service", "openhands-runtime-two-svc")["spec"]["selector"]), own);
    assert_eq!(chosen(&place.object("service", "gloveport-gate-two")["spec"]["selector"]), gate);
    // By this label policies of the namespace leave it to its own.
    assert_eq!(chosen(&json!({"gloveport/network": "own"})), own);

    let pod = place.object("pod", "gloveport-gate-two");
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    assert!(!pod.to_string().contains(sandbox.session_key.as_ref().unwrap().expose()), "{pod}");
    let inside = place.here([
        "exec",
        "gloveport-gate-two",
        "--",
        "sh",
        "-c",
        "id -u; touch /file 2>/dev/null || echo read-only",
    ]);
    assert_eq!(inside, "65534\nread-only");
    let listed = backend.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap();
    assert_eq!(listed.iter().map(|sandbox| sandbox.id.as_str()).collect::<Vec<_>>(), ["openhands-runtime-two"]);
    let report = backend.collect_garbage(&GcOptions { all: true, ..GcOptions::default() }).await.unwrap();
    assert_eq!((report.removed.len(), report.failed.len()), (0, 0), "{report:?}");
    assert!(backend.delete(&sandbox.id).await.unwrap());
    place.nothing_left_soon_but_leases().await;
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_gate_that_does_not_open_is_told_and_one_that_nobody_waits_for_is_taken_back() {
    let mut place = place("empty-dir");
    // The sandbox does not need our program, and its gate does.
    let command = Some(["sleep", "600"].map(str::to_owned).to_vec());
    let spec = SandboxSpec { image: Some(BUSYBOX.to_owned()), command, ..gated("three", &["a.test"]) };
    place.extend(&json!({"storage": "empty-dir", "network_policies": true, "loader_image": BARE}));
    let backend = place.backend();
    let error = refused(&*backend, &spec).await.to_string();
    assert!(error.contains("its gate `gloveport-gate-three` does not open"), "{error}");
    assert!(error.contains("no shell") && error.contains("loader_image"), "{error}");
    place.nothing_left_soon_but_leases().await;
    backend.close().await;

    place.extend(&json!({"storage": "empty-dir", "network_policies": true}));
    let backend = place.backend();
    let made = backend.create(&spec, &Progress::silent()).await.unwrap();
    assert_eq!(made.state, SandboxState::Running);
    assert_eq!(place.object("pod", "gloveport-gate-three")["status"]["containerStatuses"][0]["ready"], true);
    assert!(backend.delete(&made.id).await.unwrap());
    let spec = gated("four", &["a.test"]);
    let progress = Progress::silent();
    let given_up = tokio::time::timeout(Duration::from_millis(700), backend.create(&spec, &progress)).await;
    assert!(given_up.is_err(), "{given_up:?}");
    place.nothing_left_soon_but_leases().await;
    backend.close().await;
    place.assert_nothing_left();
}

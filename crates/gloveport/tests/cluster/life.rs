//! What a sandbox is in a cluster, and what is left of it.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use gloveport_protocol::Secret;
use gloveport_provider::{GcOptions, ListFilter, NetworkPolicy, SandboxSpec, SandboxState};
use serde_json::{Value, json};

use crate::cluster::{DEBIAN, Place, run, start, try_kubectl, until};

#[tokio::test]
async fn a_sandbox_is_objects_that_belong_to_its_record_and_no_secret_is_in_its_pod() {
    let mut place = Place::new();
    place.extend(&json!({"storage": "volume", "network_policies": true, "priority_class": "there-is-none"}));
    let backend = place.backend();
    let spec = SandboxSpec {
        image: Some(DEBIAN.to_owned()),
        secrets: [("TOKEN".to_owned(), Secret::new("hidden-text".to_owned()))].into(),
        environment: [("SHOWN".to_owned(), "$(TOKEN) $$".to_owned())].into(),
        labels: [("team".to_owned(), "a".to_owned()), ("free text".to_owned(), "b c".to_owned())].into(),
        network: NetworkPolicy::Only(vec!["10.0.0.0/8".to_owned(), "192.0.2.1:443".to_owned()]),
        plugins: vec!["vscode".to_owned()],
        ..Place::spec("one")
    };
    // What the cluster does not know is told in its words.
    let refused = crate::cluster::refused(&*backend, &spec).await.to_string();
    assert!(refused.contains("there-is-none"), "{refused}");
    backend.close().await;
    place.nothing_left_soon().await;
    place.extend(&json!({"storage": "volume", "network_policies": true}));
    let backend = place.backend();
    let sandbox = start(&*backend, &SandboxSpec { plugins: Vec::new(), ..spec.clone() }).await;
    assert_eq!(run(&sandbox, "echo \"$SHOWN\" ${#TOKEN} $SESSION_API_KEY; pwd").await, "$(TOKEN) $$ 11\n/workspace");
    let pod = place.object("pod", "openhands-runtime-one");
    let text = pod.to_string();
    let key = sandbox.session_key.as_ref().unwrap().expose();
    assert!(!text.contains("hidden-text") && !text.contains(key), "{text}");
    assert!(!place.object("configmap", "openhands-runtime-one").to_string().contains("hidden-text"));
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    let labels = &pod["metadata"]["labels"];
    assert_eq!(
        (&labels["app"], &labels["session"], &labels["team"]),
        (&json!("openhands-runtime"), &json!("one"), &json!("a"))
    );
    assert_eq!(sandbox.labels, spec.labels);
    let owner = place.object("configmap", "openhands-runtime-one")["metadata"]["uid"].clone();
    for (kind, name) in [
        ("pod", "openhands-runtime-one"),
        ("service", "openhands-runtime-one-svc"),
        ("pvc", "openhands-runtime-one-pvc"),
        ("secret", "openhands-runtime-one-key"),
        ("networkpolicy", "openhands-runtime-one"),
    ] {
        assert_eq!(place.object(kind, name)["metadata"]["ownerReferences"][0]["uid"], owner, "{kind}");
    }
    let policy = place.object("networkpolicy", "openhands-runtime-one");
    assert_eq!(policy["spec"]["egress"][1]["to"][0]["ipBlock"]["cidr"], "192.0.2.1/32");
    assert!(backend.delete(&sandbox.id).await.unwrap());
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_paused_sandbox_goes_on_with_its_files_and_secrets_by_another_backend() {
    let mut place = Place::new();
    place.extend(&json!({"storage": "volume"}));
    let backend = place.backend();
    let secrets = [("TOKEN".to_owned(), Secret::new("t".to_owned()))].into();
    let spec = SandboxSpec { keep_alive: true, secrets, ..Place::spec("rests") };
    let sandbox = start(&*backend, &spec).await;
    run(&sandbox, "echo here > file").await;
    backend.pause(&sandbox.id).await.unwrap();
    backend.pause(&sandbox.id).await.unwrap();
    assert_eq!(backend.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Paused);
    assert!(!place.left().iter().any(|name| name.starts_with("pod/")), "{:?}", place.left());
    backend.close().await;

    let other = place.backend();
    let found = other.find_session(&spec.session_id).await.unwrap().unwrap();
    other.resume(&found.id).await.unwrap();
    let again = crate::cluster::alive(&*other, other.find(&found.id).await.unwrap().unwrap()).await;
    assert_eq!(run(&again, "cat file; echo $TOKEN").await, "here\nt");
    // A pod that somebody deletes is a pause: what it worked on is left.
    place.here(["delete", "pod", "openhands-runtime-rests"]);
    assert_eq!(other.find(&found.id).await.unwrap().unwrap().state, SandboxState::Paused);
    other.resume(&found.id).await.unwrap();
    let again = crate::cluster::alive(&*other, other.find(&found.id).await.unwrap().unwrap()).await;
    assert_eq!(run(&again, "cat file").await, "here");
    assert!(other.delete(&again.id).await.unwrap());
    other.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn time_to_live_and_idle_stop_end_a_sandbox_and_garbage_collection_removes_what_is_left() {
    let place = Place::new();
    let backend = place.backend();
    let short = SandboxSpec { time_to_live: Some(Duration::from_secs(12)), keep_alive: true, ..Place::spec("short") };
    let idle = SandboxSpec { idle_stop: Some(Duration::from_secs(12)), keep_alive: true, ..Place::spec("idle") };
    let (one, other) = tokio::join!(start(&*backend, &short), start(&*backend, &idle));
    for (sandbox, reason) in [(&one, "its time is over"), (&other, "nobody used it")] {
        let began = Instant::now();
        loop {
            let state = backend.find(&sandbox.id).await.unwrap().unwrap().state;
            if state == SandboxState::Stopped(reason.to_owned()) {
                break;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "{}: {state}", sandbox.id);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!((report.removed.len(), report.failed.len()), (2, 0), "{report:?}");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn fifty_sandboxes_at_once_all_work_and_nothing_of_them_is_left() {
    let place = Place::new();
    let backend = place.backend();
    let specs: Vec<SandboxSpec> = (0..50).map(|number| Place::spec(&format!("many-{number}"))).collect();
    let began = Instant::now();
    let sandboxes = join_all(specs.iter().map(|spec| start(&*backend, spec))).await;
    println!("50 sandboxes answer after {:?}", began.elapsed());
    let answers = join_all(sandboxes.iter().map(|sandbox| run(sandbox, "echo $OPENHANDS_SESSION_ID"))).await;
    let wanted: Vec<String> = specs.iter().map(|spec| spec.session_id.to_string()).collect();
    assert_eq!(answers, wanted);
    assert_eq!(backend.list(&ListFilter::default()).await.unwrap().len(), 50);
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_thousand_records_are_listed_in_a_second() {
    let place = Place::new();
    let backend = place.backend();
    start(&*backend, &Place::spec("first")).await;
    let first = place.object("configmap", "openhands-runtime-first");
    let copies: Vec<Value> = (1..1000)
        .map(|number| {
            let mut copy = first.clone();
            let name = format!("openhands-runtime-copy-{number}");
            copy["metadata"] = json!({"name": name, "labels": first["metadata"]["labels"],
                "annotations": first["metadata"]["annotations"]});
            copy["metadata"]["annotations"]["gloveport/session"] = format!("copy-{number}").into();
            copy
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": copies}).to_string();
    let (success, text) = try_kubectl(["create", "--namespace", &place.namespace, "--filename", "-"], &list);
    assert!(success, "{text}");
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let listed = backend.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap();
        assert_eq!(listed.len(), 1000);
        best = best.min(began.elapsed());
    }
    println!("1,000 records are listed in {best:?}");
    assert!(best < Duration::from_secs(1), "{best:?}");
    backend.close().await;
}

#[tokio::test]
async fn the_command_line_runs_a_command_and_a_session_in_a_pod() {
    let place = Place::new();
    let image = ["--image", DEBIAN];
    let ran =
        place.gloveport().args(["run", "--runtime", "kubernetes"]).args(image).arg("echo in a pod").output().unwrap();
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(0), &b"in a pod\n"[..]), "{ran:?}");
    place.nothing_left_soon().await;
    let start =
        place.gloveport().args(["session", "start", "--runtime", "kubernetes", "--id", "s1"]).args(image).output();
    let start = start.unwrap();
    assert_eq!(start.status.code(), Some(0), "{start:?}");
    let exec = place.gloveport().args(["session", "exec", "s1", "echo again"]).output().unwrap();
    assert_eq!((exec.status.code(), &*exec.stdout), (Some(0), &b"again\n"[..]), "{exec:?}");
    let removed = place.gloveport().args(["session", "rm", "-f", "s1"]).output().unwrap();
    assert_eq!(removed.status.code(), Some(0), "{removed:?}");
    place.nothing_left_soon().await;
    let checked = place.gloveport().args(["provider", "ls", "kubernetes"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
}

#[tokio::test]
async fn a_backend_that_is_killed_leaves_garbage_that_another_one_removes() {
    let place = Place::new();
    let mut command = place.gloveport();
    command.args(["run", "--runtime", "kubernetes", "--image", DEBIAN, "sleep 600"]);
    let mut child = command.spawn().unwrap();
    until("its pod is there", || place.left().iter().any(|name| name.starts_with("pod/"))).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let backend = place.backend();
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!((report.removed.len(), report.failed.len()), (1, 0), "{report:?}");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_server_that_ends_in_its_pod_is_told_with_what_it_wrote_last() {
    let place = Place::new();
    let backend = place.backend();
    let sandbox = start(&*backend, &Place::spec("ends")).await;
    place.here(["exec", "openhands-runtime-ends", "--", "sh", "-c", "kill -TERM 1"]);
    let began = Instant::now();
    loop {
        let state = backend.find(&sandbox.id).await.unwrap().unwrap().state;
        if matches!(state, SandboxState::Stopped(_)) {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{state}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    start(&*backend, &Place::spec("ends")).await;
    backend.close().await;
    place.assert_nothing_left();
}

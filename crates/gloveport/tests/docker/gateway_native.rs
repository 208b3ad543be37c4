//! Snapshots and forks by the native API of a gateway.

use std::time::Duration;

use gloveport_gateway_store::{Limits, SessionState};
use gloveport_protocol::Secret;
use gloveport_provider::{ListFilter, Progress, Provider, ProviderError, SandboxSpec, SessionId};
use gloveport_provider_remote::{Remote, RemoteOptions};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::{
    docker::{BUSYBOX, LIMIT, run, start},
    gateway_images::{Running, Tenant},
};

fn client(running: &Running, tenant: &Tenant<'_>) -> Remote {
    let (url, key) = (format!("http://{}", running.address), Some(Secret::new(tenant.key.clone())));
    Remote::new(RemoteOptions { url, key, answer_within: LIMIT })
}

#[tokio::test]
async fn a_tenant_keeps_the_files_of_a_sandbox_and_forks_it_within_its_quotas_and_others_do_not() {
    let running = Running::start().await;
    let one = running.tenant("native", Limits { running: Some(2), snapshots: Some(1), ..Limits::default() }).await;
    let two = running.tenant("two", Limits::default()).await;
    let (backend, other) = (client(&running, &one), client(&running, &two));
    backend.learn().await.unwrap();
    assert!(backend.capabilities().snapshots && !backend.capabilities().volumes);

    let session = |name: &str| SessionId::new(name).unwrap();
    let labels = [("team".to_owned(), "infra".to_owned())].into();
    let spec = SandboxSpec {
        image: Some(BUSYBOX.to_owned()),
        labels,
        keep_alive: true,
        ..SandboxSpec::new(session("origin"))
    };
    let origin = start(&backend, &spec).await;
    run(&origin, "echo kept > /kept").await;
    let snapshot = backend.snapshot(&origin.id, "good").await.unwrap();
    // Who knows the name does not know the image.
    assert!(!snapshot.contains("good"), "{snapshot}");
    let again = backend.snapshot(&origin.id, "good").await.unwrap_err().to_string();
    assert!(again.contains("already"), "{again}");
    // There is room for one.
    let full = backend.snapshot(&origin.id, "better").await.unwrap_err().to_string();
    assert!(full.contains("1 of 1 snapshots of the tenant are kept; delete one first"), "{full}");
    let strange = other.snapshot(&origin.id, "good").await.unwrap_err();
    assert!(matches!(strange, ProviderError::NotFound(_)), "{strange}");

    let forked = backend.fork(&origin.id, &session("forked"), &Progress::silent()).await.unwrap();
    assert_eq!((forked.session_id.as_str(), &forked.labels), ("forked", &origin.labels));
    let strange = other.fork(&origin.id, &session("mine"), &Progress::silent()).await.unwrap_err();
    assert!(matches!(strange, ProviderError::NotFound(_)), "{strange}");
    // Each session is its own, by whatever way it is asked for.
    let mut listed: Vec<String> =
        backend.list(&ListFilter::default()).await.unwrap().iter().map(|it| it.session_id.to_string()).collect();
    listed.sort();
    assert_eq!(listed, ["forked", "origin"]);
    for (name, id) in [("origin", &origin.id), ("forked", &forked.id)] {
        assert_eq!(&backend.find_session(&session(name)).await.unwrap().unwrap().id, id, "{name}");
        assert_eq!(backend.find(id).await.unwrap().unwrap().session_id.as_str(), name);
        let (_, told) = one.ask("GET", &format!("/sessions/{name}"), None).await;
        assert_eq!(told["runtime_id"], id.as_str(), "{told}");
    }
    assert!(other.list(&ListFilter::default()).await.unwrap().is_empty());
    let wait = gloveport_hosting::WaitOptions { limit: LIMIT, ..Default::default() };
    let forked = gloveport_hosting::wait_until_alive(&backend, forked, &wait, &Progress::silent()).await.unwrap();
    assert_eq!(run(&forked, "cat /kept").await, "kept");

    // Two of two run.
    let (status, told) =
        one.ask("POST", &format!("/v1/sandboxes/{}/fork", origin.id), Some(json!({"session_id": "third"}))).await;
    assert_eq!((status, &told["error"]["code"]), (429, &json!("quota_exceeded")), "{told}");
    let (status, told) =
        one.ask("POST", &format!("/v1/sandboxes/{}/fork", origin.id), Some(json!({"session_id": "forked"}))).await;
    assert_eq!((status, &told["error"]["code"]), (409, &json!("session_exists")), "{told}");
    assert!(backend.delete(&origin.id).await.unwrap());
    let spec = SandboxSpec { image: Some(snapshot.clone()), keep_alive: true, ..SandboxSpec::new(session("later")) };
    let later = start(&backend, &spec).await;
    assert_eq!(run(&later, "cat /kept").await, "kept");
    // The database is told behind the client.
    let expected =
        [("forked", SessionState::Running), ("later", SessionState::Running), ("origin", SessionState::Ended)];
    let told = async {
        loop {
            let rows = running.store.history(Some("native"), None, 10).await.unwrap();
            let mut rows: Vec<(&str, SessionState)> =
                rows.iter().map(|row| (row.session.as_str(), row.state)).collect();
            rows.sort_by_key(|row| row.0);
            if rows == expected {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, told).await.unwrap();
    for id in [&forked.id, &later.id] {
        assert!(backend.delete(id).await.unwrap());
    }
    let images = Limits { images: Some(vec!["nothing/*".to_owned()]), ..Limits::default() };
    running.store.set_tenant("native", &images, false).await.unwrap();
    // It is the tenant's own, whatever else it may use, and nobody else's.
    let own = start(&backend, &SandboxSpec { session_id: session("own"), ..spec.clone() }).await;
    let strange = other.create(&spec, &Progress::silent()).await.unwrap_err().to_string();
    assert!(strange.contains("another tenant's"), "{strange}");
    let listed = backend.snapshots().await.unwrap();
    let told: Vec<_> = listed.iter().map(|it| (it.image.as_str(), it.name.as_str(), it.session.as_deref())).collect();
    assert_eq!(told, [(snapshot.as_str(), "good", Some("origin"))]);
    assert!(listed[0].created.is_some());
    assert!(other.snapshots().await.unwrap().is_empty());
    // Another tenant's is like what is not, and images are no snapshots.
    for image in [snapshot.as_str(), BUSYBOX, "nothing"] {
        assert!(!other.delete_snapshot(image).await.unwrap(), "{image}");
    }
    let (engine, store) = (running.place.backend(), &running.store);
    let called = |text: &str| format!("gps-{}", store.digest(text));
    let lost = engine.snapshot(&own.id, &called("native/snapshot/lost")).await.unwrap();
    let theirs = engine.snapshot(&own.id, &called("two/snapshot/theirs")).await.unwrap();
    // The engine keeps what a sandbox runs from, and so does the gateway.
    let used = backend.delete_snapshot(&snapshot).await.unwrap_err().to_string();
    assert!(used.contains("container"), "{used}");
    assert_eq!(backend.snapshots().await.unwrap().len(), 1);
    assert!(backend.delete(&own.id).await.unwrap());
    assert!(backend.delete_snapshot(&snapshot).await.unwrap());
    assert!(!backend.delete_snapshot(&snapshot).await.unwrap());
    assert!(backend.snapshots().await.unwrap().is_empty());

    // One gateway died when it had made one, another one before, and a tenant is gone with what it kept.
    for (tenant, name) in [("native", "lost"), ("native", "never"), ("two", "theirs")] {
        store.reserve_snapshot(tenant, name, "own", Duration::ZERO).await.unwrap();
    }
    assert!(store.snapshot_made("two", "theirs", &theirs).await.unwrap());
    store.delete_tenant("two", true).await.unwrap();
    let (stop, serving) = running.beside().await;
    let settled = async {
        while !store.abandoned_snapshots().await.unwrap().is_empty() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, settled).await.unwrap();
    stop.cancel();
    serving.await.unwrap();
    let images: Vec<String> = backend.snapshots().await.unwrap().into_iter().map(|it| it.image).collect();
    assert_eq!((images, store.usage("native").await.unwrap().snapshots), (vec![lost.clone()], 1));
    assert!(engine.snapshots().await.unwrap().iter().all(|it| it.image != theirs));
    assert!(backend.delete_snapshot(&lost).await.unwrap());
    engine.close().await;
    assert!(!running.place.engine.docker(["images", "--quiet", &snapshot]).contains(|it: char| it.is_alphanumeric()));
    running.end().await;
}

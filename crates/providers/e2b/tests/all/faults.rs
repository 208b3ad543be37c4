//! What a service, a network or somebody at a dashboard can do at each call.

use std::time::Duration;

use gloveport_provider::{Progress, Provider as _, ProviderError, SandboxSpec, SandboxState};
use gloveport_provider_e2b::{E2b, E2bOptions};
use gloveport_testing::until;
use http::Method;
use tokio::time::timeout;

use crate::{
    standin::Fault,
    support::{Place, create, kept, spec},
};

const BUSY: Fault = Fault::Status(503, &[], "busy");

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_the_wish_there_is_one_sandbox_for_it() {
    for fault in [
        Fault::Lost,
        Fault::Dropped,
        BUSY,
        Fault::Status(429, &[("retry-after", "0")], "slow down"),
        Fault::Status(500, &[("should-retry", "true")], "sandbox_placement_timeout"),
        Fault::Status(500, &[], "internal"),
        Fault::Status(409, &[], "idempotency_in_progress"),
    ] {
        let place = Place::new().await;
        let backend = place.backend();
        place.service.fail(Method::POST, "/v2/sandboxes", fault.clone());
        let made = create(&backend, &spec("s")).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(place.service.ids(), [made.id.to_string()], "{fault:?}");
        assert_eq!(made.state, SandboxState::Running);
        backend.close().await;
        assert!(place.service.ids().is_empty(), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_whose_answer_was_lost_is_found_by_its_label_and_not_made_again() {
    let place = Place::new().await;
    let backend = place.backend();
    place.service.fail(Method::POST, "/v2/sandboxes", Fault::Lost);
    create(&backend, &spec("s")).await.unwrap();
    let seen = place.service.seen();
    let wishes = seen.iter().filter(|seen| seen.method == Method::POST && seen.path == "/v2/sandboxes").count();
    assert_eq!(wishes, 1);
    assert!(seen.iter().any(|seen| seen.path.contains("metadata=gloveport.e2b.wish%3D")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_wish_says_why_and_what_to_do() {
    for (status, expected) in [
        (400, "a wish of the sandbox cannot be used"),
        (401, "look at E2B_API_KEY"),
        (403, "the key may not do this"),
        (404, "E2B has no template `base`"),
    ] {
        let place = Place::new().await;
        let fault = Fault::Status(status, &[], "because");
        place.service.fail(Method::POST, "sandboxes", fault.clone());
        place.service.fail(Method::POST, "sandboxes", fault);
        let error = create(&place.backend(), &spec("s")).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("because"), "{status}: {error}");
        assert!(place.service.ids().is_empty());
    }
    let place = Place::new().await;
    let unknown = SandboxSpec { image: Some("nobody/has:this".to_owned()), ..spec("s") };
    let error = create(&place.backend(), &unknown).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Spec { field, .. } if field == "image"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stays_busy_is_told_as_such_after_a_few_tries() {
    let place = Place::new().await;
    for _ in 0..4 {
        place.service.fail(Method::GET, "/v2/sandboxes", Fault::Status(429, &[("retry-after", "0")], "too many"));
    }
    let error = create(&place.backend(), &spec("s")).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("as its plan allows"), "{error}");
    assert_eq!(place.service.seen().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_service_is_asked_by_its_older_calls() {
    let place = Place::new().await;
    place.service.be_old();
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    backend.pause(&made.id).await.unwrap();
    backend.resume(&made.id).await.unwrap();
    assert_eq!(backend.find(&made.id).await.unwrap().unwrap().state, SandboxState::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_call_of_a_creation_is_outlived_or_leaves_nothing() {
    for (method, part) in [
        (Method::GET, "/v2/sandboxes"),
        (Method::POST, "/process.Process/Start"),
        (Method::POST, "/files"),
        (Method::POST, "/process.Process/List"),
        (Method::GET, "/sandboxes/i"),
    ] {
        for fault in [BUSY, Fault::Dropped, Fault::Lost, Fault::Status(500, &[], "internal")] {
            let place = Place::new().await;
            let backend = place.backend();
            place.service.fail(method.clone(), part, fault.clone());
            match create(&backend, &spec("s")).await {
                Ok(made) => assert_eq!(place.service.ids(), [made.id.to_string()], "{part} {fault:?}"),
                Err(error) => {
                    assert_eq!(place.service.ids(), Vec::<String>::new(), "{part} {fault:?}: {error}");
                    // Whoever tries once more gets one.
                    create(&backend, &spec("s")).await.unwrap();
                }
            }
            backend.close().await;
            assert!(place.service.ids().is_empty(), "{part} {fault:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_call_is_sent_again_when_the_service_is_busy_or_its_answer_is_lost() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    let id = &made.id;
    for fault in [BUSY, Fault::Dropped, Fault::Status(502, &[("should-retry", "true")], "")] {
        let next = |method: Method, part: &str| place.service.fail(method, part, fault.clone());
        next(Method::GET, "/sandboxes/i");
        assert_eq!(backend.find(id).await.unwrap().unwrap().state, SandboxState::Running, "{fault:?}");
        next(Method::POST, "/timeout");
        backend.hold(id).await.unwrap();
        next(Method::POST, "/pause");
        backend.pause(id).await.unwrap();
        next(Method::POST, "/connect");
        backend.resume(id).await.unwrap();
        next(Method::GET, "/snapshots");
        backend.collect_garbage(&gloveport_provider::GcOptions::default()).await.unwrap();
    }
    place.service.fail(Method::DELETE, "/sandboxes", Fault::Lost);
    assert!(backend.delete(id).await.unwrap());
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_every_other_call_is_told_with_its_reason() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    let id = &made.id;
    let forbidden = || Fault::Status(403, &[], "because");
    let refused = |result: Result<(), ProviderError>, call: &str| {
        let error = result.unwrap_err();
        assert!(
            matches!(error, ProviderError::Access { .. }) && error.to_string().contains("because"),
            "{call}: {error}"
        );
    };
    for (method, part) in [(Method::GET, "/sandboxes/"), (Method::GET, "/v2/sandboxes")] {
        place.service.fail(method, part, forbidden());
        let listed = backend.list(&gloveport_provider::ListFilter::default()).await.map(drop);
        let found = backend.find(id).await.map(drop);
        refused(if found.is_err() { found } else { listed }, part);
    }
    place.service.fail(Method::POST, "/timeout", forbidden());
    refused(backend.hold(id).await, "hold");
    place.service.fail(Method::POST, "/snapshots", forbidden());
    refused(backend.snapshot(id, "x").await.map(drop), "snapshot");
    place.service.fail(Method::POST, "/snapshots", forbidden());
    refused(backend.fork(id, &crate::support::session("f"), &Progress::silent()).await.map(drop), "fork");
    place.service.fail(Method::POST, "/pause", forbidden());
    refused(backend.pause(id).await, "pause");
    backend.pause(id).await.unwrap();
    place.service.fail(Method::POST, "/connect", forbidden());
    refused(backend.resume(id).await, "resume");
    place.service.fail(Method::DELETE, "/sandboxes", forbidden());
    refused(backend.delete(id).await.map(drop), "delete");
    assert!(backend.delete(id).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_cannot_be_restored_is_told_and_nothing_is_lost() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    backend.pause(&made.id).await.unwrap();
    let message = "sandbox_snapshot_guest_agent_unresponsive";
    place.service.fail(Method::POST, "/connect", Fault::Status(409, &[], message));
    let error = backend.resume(&made.id).await.unwrap_err().to_string();
    assert!(error.contains("could not resume a sandbox") && error.contains(message), "{error}");
    backend.resume(&made.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_somebody_deletes_is_gone_for_every_call() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    backend.hold(&made.id).await.unwrap();
    place.service.delete(made.id.as_str());
    let id = &made.id;
    assert!(backend.find(id).await.unwrap().is_none() && !backend.delete(id).await.unwrap());
    for result in [backend.pause(id).await, backend.resume(id).await, backend.hold(id).await] {
        assert!(matches!(result, Err(ProviderError::NotFound(_))), "{result:?}");
    }
    // The session may have a new one.
    assert_ne!(create(&backend, &kept("s")).await.unwrap().id, made.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_agent_is_silent_is_unknown_and_not_gone() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    for _ in 0..8 {
        place.service.fail(
            Method::POST,
            "/List",
            Fault::Status(502, &[("should-retry", "false")], "The sandbox was not found"),
        );
    }
    let found = backend.find(&made.id).await.unwrap().unwrap();
    assert!(matches!(found.state, SandboxState::Unknown(_)) && found.session_key == made.session_key, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_leaves_nothing() {
    for (method, part) in [(Method::POST, "/v2/sandboxes"), (Method::POST, "/Start"), (Method::POST, "/files")] {
        let place = Place::new().await;
        let backend = E2b::new(E2bOptions { answer_within: Duration::from_millis(500), ..place.options() });
        place.service.fail(method, part, Fault::Silent);
        timeout(Duration::from_millis(250), create(&backend, &spec("s"))).await.unwrap_err();
        until("a request", || !place.service.seen().is_empty()).await;
        backend.close().await;
        until("the end of the sandbox", || place.service.ids().is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_service_is_not_waited_for_without_end() {
    let place = Place::new().await;
    let backend = E2b::new(E2bOptions { answer_within: Duration::from_millis(100), ..place.options() });
    for _ in 0..4 {
        place.service.fail(Method::GET, "/v2/sandboxes", Fault::Silent);
    }
    let error = create(&backend, &spec("s")).await.unwrap_err();
    assert!(matches!(error, ProviderError::Timeout { .. }), "{error}");
}

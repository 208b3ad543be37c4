//! What a service, a network or somebody at a dashboard can do at each call.

use std::time::Duration;

use gloveport_provider::{GcOptions, Progress, Provider as _, ProviderError, SandboxSpec, SandboxState};
use gloveport_provider_daytona::{Daytona, DaytonaOptions};
use gloveport_stand_ins::Fault;
use gloveport_testing::until;
use http::Method;
use tokio::time::timeout;

use crate::support::{Place, create, kept, running, session, spec};

fn busy() -> Fault {
    Fault::status(503, &[], "busy")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_the_wish_there_is_one_sandbox_for_it() {
    for fault in [
        Fault::Lost,
        Fault::Dropped,
        busy(),
        Fault::status(429, &[("retry-after-sandbox-create", "0")], "slow down"),
        Fault::status(500, &[], "internal"),
    ] {
        let place = Place::new().await;
        let backend = place.backend();
        place.service.fail(Method::POST, "/api/sandbox", fault.clone());
        let made = create(&backend, &spec("s")).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(place.service.ids(), [made.id.to_string()], "{fault:?}");
        backend.close().await;
        assert!(place.service.ids().is_empty(), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_whose_answer_was_lost_is_found_by_its_name_and_not_made_again() {
    let place = Place::new().await;
    let backend = place.backend();
    place.service.fail(Method::POST, "/api/sandbox", Fault::Lost);
    create(&backend, &spec("s")).await.unwrap();
    let seen = place.service.seen();
    let wishes = seen.iter().filter(|seen| seen.method == Method::POST && seen.path == "/api/sandbox").count();
    assert_eq!(wishes, 1);
    assert!(seen.iter().any(|seen| seen.path == "/api/sandbox/s"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_wish_says_why_and_what_to_do() {
    for (status, expected) in [
        (400, "a wish of the sandbox cannot be used"),
        (401, "look at DAYTONA_API_KEY"),
        (403, "the organization has all that its tier allows"),
        (402, "look at the billing"),
    ] {
        let place = Place::new().await;
        place.service.fail(Method::POST, "/api/sandbox", Fault::status(status, &[], "because"));
        let error = create(&place.backend(), &spec("s")).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("because"), "{status}: {error}");
        assert!(place.service.ids().is_empty());
    }
    let place = Place::new().await;
    let unbuilt = SandboxSpec { image: Some("image-that-does-not-build:1".to_owned()), ..spec("s") };
    let error = create(&place.backend(), &unbuilt).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Start { reason, .. } if reason.contains("failed to pull")), "{error}");
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stays_busy_is_told_as_such_after_a_few_tries() {
    let place = Place::new().await;
    for _ in 0..4 {
        let fault = Fault::status(429, &[("retry-after-authenticated", "0")], "too many");
        place.service.fail(Method::GET, "/api/sandbox", fault);
    }
    let error = place.backend().find_session(&session("s")).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("as its tier allows"), "{error}");
    assert_eq!(place.service.seen().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_call_of_a_creation_is_outlived_or_leaves_nothing() {
    for (method, part) in [
        (Method::GET, "/api/sandbox/"),
        (Method::GET, "/preview-url"),
        (Method::POST, "/process/execute"),
        (Method::POST, "/files/upload-v2"),
        (Method::POST, "/files/permissions"),
        (Method::POST, "/process/session"),
        (Method::POST, "/exec"),
    ] {
        for fault in [busy(), Fault::Dropped, Fault::Lost, Fault::status(500, &[], "internal")] {
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
    for fault in [busy(), Fault::Dropped, Fault::status(502, &[], ""), Fault::Lost] {
        let next = |method: Method, part: &str| place.service.fail(method, part, fault.clone());
        next(Method::GET, "/api/sandbox/");
        running(&backend, &made).await;
        next(Method::POST, "/last-activity");
        backend.hold(id).await.unwrap();
        next(Method::POST, "/stop");
        backend.pause(id).await.unwrap();
        next(Method::POST, "/start");
        backend.resume(id).await.unwrap();
        next(Method::GET, "/snapshots");
        backend.collect_garbage(&GcOptions::default()).await.unwrap();
    }
    place.service.fail(Method::DELETE, "/api/sandbox", Fault::Lost);
    assert!(backend.delete(id).await.unwrap());
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_every_other_call_is_told_with_its_reason() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    let id = &made.id;
    let forbidden = || Fault::status(403, &[], "because");
    let refused = |result: Result<(), ProviderError>, call: &str| {
        let error = result.unwrap_err();
        assert!(
            matches!(error, ProviderError::Access { .. }) && error.to_string().contains("because"),
            "{call}: {error}"
        );
    };
    place.service.fail(Method::GET, "/api/sandbox/", forbidden());
    refused(backend.find(id).await.map(drop), "find");
    place.service.fail(Method::GET, "/api/sandbox?", forbidden());
    refused(backend.list(&gloveport_provider::ListFilter::default()).await.map(drop), "list");
    place.service.fail(Method::POST, "/last-activity", forbidden());
    refused(backend.hold(id).await, "hold");
    place.service.fail(Method::POST, "/snapshot", forbidden());
    refused(backend.snapshot(id, "x").await.map(drop), "snapshot");
    place.service.fail(Method::POST, "/snapshot", forbidden());
    refused(backend.fork(id, &session("f"), &Progress::silent()).await.map(drop), "fork");
    place.service.fail(Method::POST, "/stop", forbidden());
    refused(backend.pause(id).await, "pause");
    backend.pause(id).await.unwrap();
    place.service.fail(Method::POST, "/start", forbidden());
    refused(backend.resume(id).await, "resume");
    place.service.fail(Method::DELETE, "/api/sandbox", forbidden());
    refused(backend.delete(id).await.map(drop), "delete");
    assert!(backend.delete(id).await.unwrap());
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
async fn a_sandbox_whose_daemon_is_silent_is_unknown_and_not_gone() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    for _ in 0..3 {
        place.service.fail(Method::POST, "/process/execute", Fault::status(400, &[], "no daemon"));
    }
    let found = backend.find(&made.id).await.unwrap().unwrap();
    assert!(matches!(found.state, SandboxState::Unknown(_)) && found.session_key == made.session_key, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_leaves_nothing() {
    for (method, part) in [(Method::POST, "/api/sandbox"), (Method::POST, "/exec"), (Method::POST, "/upload-v2")] {
        let place = Place::new().await;
        let backend = Daytona::new(DaytonaOptions { answer_within: Duration::from_millis(500), ..place.options() });
        place.service.fail(method, part, Fault::Silent);
        let wanted = spec("s");
        timeout(Duration::from_millis(250), create(&backend, &wanted)).await.unwrap_err();
        until("a request", || !place.service.seen().is_empty()).await;
        backend.close().await;
        until("the end of the sandbox", || place.service.ids().is_empty()).await;
    }
}

//! What a service, a network or somebody at a dashboard can do at each call.

use std::{fs, time::Duration};

use gloveport_provider::{GcOptions, ListFilter, Provider as _, ProviderError, SandboxState};
use gloveport_provider_runloop::{Runloop, RunloopOptions};
use gloveport_stand_ins::Fault;
use http::Method;
use tokio::time::timeout;

use crate::support::{Place, create, kept, spec, until};

fn busy() -> Fault {
    Fault::status(503, &[("retry-after-ms", "5")], "busy")
}

fn wishes(place: &Place) -> usize {
    let seen = place.service.seen();
    seen.iter().filter(|seen| seen.method == Method::POST && seen.path == "/v1/devboxes").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_the_wish_there_is_one_sandbox_for_it() {
    for fault in [
        Fault::Lost,
        Fault::Dropped,
        busy(),
        Fault::status(429, &[("retry-after", "0")], "slow down"),
        Fault::status(500, &[("x-should-retry", "true")], "no room"),
        Fault::status(500, &[], "internal"),
        Fault::status(409, &[], "the same request is at work"),
    ] {
        let place = Place::new().await;
        let backend = place.backend();
        place.service.fail(Method::POST, "/v1/devboxes", fault.clone());
        let made = create(&backend, &spec("s")).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(place.service.ids(), [made.id.to_string()], "{fault:?}");
        assert_eq!(made.state, SandboxState::Running);
        assert!(wishes(&place) <= 2);
        backend.close().await;
        assert!(place.service.ids().is_empty(), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_wish_says_why_and_what_to_do() {
    for (status, expected) in [
        (400, "a wish of the sandbox cannot be used"),
        (401, "look at RUNLOOP_API_KEY"),
        (402, "billing"),
        (403, "the key may not do this"),
        (404, "name another one"),
    ] {
        let place = Place::new().await;
        place.service.fail(Method::POST, "/v1/devboxes", Fault::status(status, &[], "because"));
        let error = create(&place.backend(), &spec("s")).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("because"), "{status}: {error}");
        assert!(place.service.ids().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_has_all_it_may_is_told_as_such_after_a_few_tries() {
    let place = Place::new().await;
    for _ in 0..4 {
        place.service.fail(Method::GET, "/v1/devboxes", Fault::status(429, &[("retry-after", "0")], "too many"));
    }
    let error = create(&place.backend(), &spec("s")).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("shut some down"), "{error}");
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_call_of_a_creation_is_outlived_or_leaves_nothing() {
    for (method, part) in [
        (Method::GET, "/v1/objects"),
        (Method::POST, "/v1/objects"),
        (Method::PUT, "/uploads/"),
        (Method::POST, "/complete"),
        (Method::GET, "/v1/devboxes"),
        (Method::POST, "/wait_for_status"),
        (Method::POST, "/execute"),
        (Method::GET, "/tunnels/"),
        (Method::GET, "/v1/devboxes/dbx_"),
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
    for fault in [busy(), Fault::Dropped, Fault::Lost] {
        let next = |method: Method, part: &str| place.service.fail(method, part, fault.clone());
        next(Method::GET, "/v1/devboxes/dbx_");
        assert_eq!(backend.find(id).await.unwrap().unwrap().state, SandboxState::Running, "{fault:?}");
        next(Method::POST, "/keep_alive");
        backend.hold(id).await.unwrap();
        next(Method::POST, "/suspend");
        backend.pause(id).await.unwrap();
        next(Method::POST, "/resume");
        backend.resume(id).await.unwrap();
        next(Method::GET, "/disk_snapshots");
        backend.collect_garbage(&GcOptions::default()).await.unwrap();
    }
    place.service.fail(Method::POST, "/shutdown", Fault::Lost);
    assert!(backend.delete(id).await.unwrap());
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_every_other_call_is_told_with_its_reason() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    let id = &made.id;
    let next = |method: Method, part: &str| place.service.fail(method, part, Fault::status(403, &[], "because"));
    let refused = |result: Result<(), ProviderError>, call: &str| {
        let error = result.unwrap_err();
        let is_access = matches!(error, ProviderError::Access { .. });
        assert!(is_access && error.to_string().contains("because"), "{call}: {error}");
    };
    next(Method::GET, "/v1/devboxes/dbx_");
    refused(backend.find(id).await.map(drop), "find");
    next(Method::GET, "/v1/devboxes?");
    refused(backend.list(&ListFilter::default()).await.map(drop), "list");
    next(Method::POST, "/keep_alive");
    refused(backend.hold(id).await, "hold");
    next(Method::POST, "/snapshot_disk_async");
    refused(backend.snapshot(id, "x").await.map(drop), "snapshot");
    next(Method::POST, "/suspend");
    refused(backend.pause(id).await, "pause");
    backend.pause(id).await.unwrap();
    next(Method::POST, "/resume");
    refused(backend.resume(id).await, "resume");
    next(Method::POST, "/shutdown");
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
async fn a_sandbox_in_which_nobody_answers_is_unknown_and_not_gone() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    place.service.fail(Method::POST, "/execute", Fault::status(500, &[], "the devbox does not answer"));
    let found = backend.find(&made.id).await.unwrap().unwrap();
    assert!(matches!(found.state, SandboxState::Unknown(_)) && found.session_key == made.session_key, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_start_fails_is_told_with_the_reason_and_leaves_nothing() {
    let place = Place::new().await;
    let backend = place.backend();
    // A file where the directory of all is to be.
    fs::write(place.service.directory(), "").unwrap();
    let error = create(&backend, &spec("s")).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Start { log, .. } if !log.is_empty()), "{error:?}");
    assert!(place.service.ids().is_empty());
    // The service tells of it for ever; it is none of ours any more.
    let all = ListFilter { ended: true, ..ListFilter::default() };
    assert!(backend.list(&all).await.unwrap().is_empty());
    fs::remove_file(place.service.directory()).unwrap();
    create(&backend, &spec("s")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_take_a_while_are_waited_for_but_not_without_end() {
    let place = Place::new().await;
    place.service.set_slow(Duration::from_millis(700));
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    backend.pause(&made.id).await.unwrap();
    backend.resume(&made.id).await.unwrap();
    assert_eq!(backend.find(&made.id).await.unwrap().unwrap().state, SandboxState::Running);
    place.service.set_slow(Duration::from_secs(30));
    let hasty = Runloop::new(RunloopOptions { start_within: Duration::from_millis(100), ..place.options() });
    let error = create(&hasty, &spec("t")).await.unwrap_err();
    assert!(matches!(error, ProviderError::Timeout { .. }), "{error}");
    until("the end of what was too slow", || place.service.ids() == [made.id.to_string()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_leaves_nothing() {
    for (method, part) in
        [(Method::POST, "/v1/devboxes"), (Method::POST, "/wait_for_status"), (Method::PUT, "/uploads/")]
    {
        let place = Place::new().await;
        let backend = Runloop::new(RunloopOptions { answer_within: Duration::from_millis(500), ..place.options() });
        place.service.fail(method, part, Fault::Silent);
        timeout(Duration::from_millis(250), create(&backend, &spec("s"))).await.unwrap_err();
        until("a request", || !place.service.seen().is_empty()).await;
        backend.close().await;
        until("the end of the sandbox", || place.service.ids().is_empty()).await;
    }
}

//! What a service, a network or somebody at a dashboard can do at each call.

use std::{fs, time::Duration};

use gloveport_provider::{GcOptions, ListFilter, Provider as _, ProviderError, SandboxState};
use gloveport_provider_modal::{Modal, ModalOptions};
use gloveport_stand_ins::Fault;
use http::Method;
use tokio::time::timeout;

use crate::support::{Place, create, kept, spec, until};

/// `{code 8, details [RPCRetryPolicy {retry_after_secs: 0.01}]}`.
const WAIT: &str = "CAgaOAovdHlwZS5nb29nbGVhcGlzLmNvbS9tb2RhbC5jbGllbnQuUlBDUmV0cnlQb2xpY3kSBQ0K1yM8";

fn busy() -> Fault {
    Fault::status(14, &[], "busy")
}

fn told_to_wait() -> Fault {
    Fault::status(8, &[("grpc-status-details-bin", WAIT)], "slow down")
}

fn wishes(place: &Place) -> usize {
    place.service.seen().iter().filter(|seen| seen.path.ends_with("/SandboxCreateV2")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_the_wish_there_is_one_sandbox_for_it() {
    for fault in [
        Fault::Lost,
        Fault::Dropped,
        busy(),
        told_to_wait(),
        Fault::status(13, &[], "internal"),
        Fault::status(2, &[], "unknown"),
        Fault::status(10, &[], "the same call is at work"),
        Fault::status(16, &[], "the token has expired"),
    ] {
        let place = Place::new().await;
        let backend = place.backend();
        place.service.fail(Method::POST, "/SandboxCreateV2", fault.clone());
        let made = create(&backend, &spec("s")).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(place.service.ids(), [made.id.to_string()], "{fault:?}");
        assert_eq!(made.state, SandboxState::Running);
        assert!(wishes(&place) <= 2);
        backend.close().await;
        assert!(place.service.ids().is_empty(), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_whose_every_answer_is_lost_is_found_by_its_name() {
    let place = Place::new().await;
    let backend = place.backend();
    for _ in 0..4 {
        place.service.fail(Method::POST, "/SandboxCreateV2", Fault::Lost);
    }
    let made = create(&backend, &spec("s")).await.unwrap();
    assert_eq!(place.service.ids(), [made.id.to_string()]);
    assert_eq!((made.state, wishes(&place)), (SandboxState::Running, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_wish_says_why_and_what_to_do() {
    for (code, expected) in [
        (3, "a wish of the sandbox cannot be used"),
        (5, "Name another one"),
        (7, "the token may not do this"),
        (8, "end some, or try it later"),
        (9, "try it again"),
        (12, "a newer gloveport"),
    ] {
        let place = Place::new().await;
        place.service.fail(Method::POST, "/SandboxCreateV2", Fault::status(code, &[], "because"));
        let error = create(&place.backend(), &spec("s")).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("because"), "{code}: {error}");
        assert!(place.service.ids().is_empty());
    }
    let place = Place::new().await;
    let wrong = Modal::new(ModalOptions { token_id: Some("ak-wrong".to_owned()), ..place.options() });
    let error = create(&wrong, &spec("s")).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Access { hint, .. } if hint.contains("MODAL_TOKEN_ID")), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_busy_for_long_is_told_as_such_after_a_few_tries() {
    let place = Place::new().await;
    for _ in 0..4 {
        place.service.fail(Method::POST, "/AppGetOrCreate", busy());
    }
    let error = create(&place.backend(), &spec("s")).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("busy"), "{error}");
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_call_of_a_creation_is_outlived_or_leaves_nothing() {
    for part in [
        "/AuthTokenGet",
        "/AppGetOrCreate",
        "/EnvironmentGetOrCreate",
        "/ImageGetOrCreate",
        "/ImageJoinStreaming",
        "/MountBatchedCheckExistence",
        "/MountPutFile",
        "/MountGetOrCreate",
        "/SandboxGetFromNameV2",
        "/SandboxWaitUntilReady",
        "/SandboxWaitV2",
        "/SandboxTagsGetV2",
        "/SandboxGetTunnelsV2",
    ] {
        for fault in [busy(), told_to_wait(), Fault::Dropped, Fault::Lost, Fault::status(7, &[], "no")] {
            let place = Place::new().await;
            let backend = place.backend();
            place.service.fail(Method::POST, part, fault.clone());
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
        let next = |part: &str| place.service.fail(Method::POST, part, fault.clone());
        next("/SandboxWaitV2");
        assert_eq!(backend.find(id).await.unwrap().unwrap().state, SandboxState::Running, "{fault:?}");
        next("/SandboxTagsGetV2");
        backend.hold(id).await.unwrap();
        next("/SandboxGetCommandRouterAccess");
        next("/TaskSnapshotFilesystem");
        backend.snapshot(id, "x").await.unwrap();
        next("/SandboxListV2");
        backend.collect_garbage(&GcOptions::default()).await.unwrap();
    }
    // A snapshot whose answer was lost is made once.
    assert_eq!(place.service.world().face.snapshots(), 3);
    place.service.fail(Method::POST, "/SandboxTerminateV2", Fault::Lost);
    assert!(backend.delete(id).await.unwrap());
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_every_other_call_is_told_with_its_reason() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    let id = &made.id;
    let next = |part: &str| place.service.fail(Method::POST, part, Fault::status(7, &[], "because"));
    let refused = |result: Result<(), ProviderError>, call: &str| {
        let error = result.unwrap_err();
        let is_access = matches!(error, ProviderError::Access { .. });
        assert!(is_access && error.to_string().contains("because"), "{call}: {error}");
    };
    next("/SandboxWaitV2");
    refused(backend.find(id).await.map(drop), "find");
    next("/SandboxListV2");
    refused(backend.list(&ListFilter::default()).await.map(drop), "list");
    next("/SandboxTagsGetV2");
    refused(backend.hold(id).await, "hold");
    next("/TaskSnapshotFilesystem");
    refused(backend.snapshot(id, "x").await.map(drop), "snapshot");
    next("/SandboxTerminateV2");
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
    for result in [backend.hold(id).await, backend.snapshot(id, "x").await.map(drop)] {
        assert!(matches!(result, Err(ProviderError::NotFound(_))), "{result:?}");
    }
    // The session may have a new one.
    assert_ne!(create(&backend, &kept("s")).await.unwrap().id, made.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_start_fails_is_told_with_its_last_words_and_leaves_nothing() {
    let place = Place::new().await;
    let program = fs::read_to_string(place.program()).unwrap().replace("echo start >>starts", "echo no luck; exit 3");
    fs::write(place.program(), program).unwrap();
    let backend = place.backend();
    let error = create(&backend, &spec("s")).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Start { log, .. } if log.ends_with("no luck")), "{error:?}");
    assert!(place.service.ids().is_empty());
    // The service tells of it for ever; it is none of ours any more.
    let all = ListFilter { ended: true, ..ListFilter::default() };
    assert!(backend.list(&all).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_take_a_while_are_waited_for_but_not_without_end() {
    let place = Place::new().await;
    place.service.set_slow(Duration::from_millis(700));
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    place.service.set_slow(Duration::from_millis(1500));
    let hasty = Modal::new(ModalOptions { start_within: Duration::from_millis(100), ..place.options() });
    let error = create(&hasty, &spec("t")).await.unwrap_err();
    assert!(matches!(error, ProviderError::Timeout { .. }), "{error}");
    until("the end of what was too slow", || place.service.ids() == [made.id.to_string()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_leaves_nothing() {
    for part in ["/SandboxCreateV2", "/SandboxWaitUntilReady", "/MountPutFile"] {
        let place = Place::new().await;
        let backend = Modal::new(ModalOptions { answer_within: Duration::from_millis(500), ..place.options() });
        place.service.fail(Method::POST, part, Fault::Silent);
        timeout(Duration::from_millis(250), create(&backend, &spec("s"))).await.unwrap_err();
        until("a request", || !place.service.seen().is_empty()).await;
        backend.close().await;
        until("the end of the sandbox", || place.service.ids().is_empty()).await;
    }
}

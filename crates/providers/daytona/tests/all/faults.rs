//! What a service, a network or somebody at a dashboard can do at each call.

use std::time::Duration;

use gloveport_hosted_checks::{
    faults,
    steps::{Act, create, session, spec},
};
use gloveport_provider::{Provider as _, ProviderError, SandboxSpec};
use gloveport_provider_daytona::DaytonaOptions;
use gloveport_stand_ins::Fault;
use http::Method;

use crate::support::{OnDaytona, Place};

fn busy() -> Fault {
    Fault::status(503, &[], "busy")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_the_wish_there_is_one_sandbox_for_it() {
    let slow_down = Fault::status(429, &[("retry-after-sandbox-create", "0")], "slow down");
    let faults = [busy(), slow_down, Fault::status(500, &[], "internal")];
    faults::one_sandbox_for_a_wish::<OnDaytona>(&faults).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_whose_answer_was_lost_is_found_by_its_name_and_not_made_again() {
    let seen = faults::lost_wish_is_found::<OnDaytona>(1).await;
    assert!(seen.iter().any(|seen| seen.path == "/api/sandbox/s"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_wish_says_why_and_what_to_do() {
    let refusals = [
        (400, "a wish of the sandbox cannot be used"),
        (401, "look at DAYTONA_API_KEY"),
        (403, "the organization has all that its tier allows"),
        (402, "look at the billing"),
    ];
    faults::refused_wish_is_told::<OnDaytona>(&[], &refusals).await;
    let place = Place::new().await;
    let unbuilt = SandboxSpec { image: Some("image-that-does-not-build:1".to_owned()), ..spec("s") };
    let error = create(&place.backend(), &unbuilt).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Start { reason, .. } if reason.contains("failed to pull")), "{error}");
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stays_busy_is_told_as_such_after_a_few_tries() {
    let place = Place::new().await;
    let fault = Fault::status(429, &[("retry-after-authenticated", "0")], "too many");
    let (backend, session) = (place.backend(), session("s"));
    let call = (Method::GET, "/api/sandbox");
    faults::busy_is_told(&place, call, &fault, "as its tier allows", backend.find_session(&session)).await;
    assert_eq!(place.service.seen().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_call_of_a_creation_is_outlived_or_leaves_nothing() {
    let calls = [
        (Method::GET, "/api/sandbox/"),
        (Method::GET, "/preview-url"),
        (Method::POST, "/process/execute"),
        (Method::POST, "/files/upload-v2"),
        (Method::POST, "/files/permissions"),
        (Method::POST, "/process/session"),
        (Method::POST, "/exec"),
    ];
    let faults = [busy(), Fault::status(500, &[], "internal")];
    faults::creation_outlives_faults::<OnDaytona>(&calls, &faults).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_call_is_sent_again_when_the_service_is_busy_or_its_answer_is_lost() {
    faults::calls_are_sent_again::<OnDaytona>(
        &[busy(), Fault::Dropped, Fault::status(502, &[], ""), Fault::Lost],
        faults::ACTS,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_every_other_call_is_told_with_its_reason() {
    faults::refusals_are_told::<OnDaytona>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_somebody_deletes_is_gone_for_every_call() {
    faults::deleted_is_gone::<OnDaytona>(&[Act::Pause, Act::Resume, Act::Hold]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_daemon_is_silent_is_unknown_and_not_gone() {
    let fault = Fault::status(400, &[], "no daemon");
    faults::silent_is_unknown::<OnDaytona>((Method::POST, "/process/execute"), &fault, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_leaves_nothing() {
    let calls = [(Method::POST, "/api/sandbox"), (Method::POST, "/exec"), (Method::POST, "/upload-v2")];
    let half_a_second = |options: &mut DaytonaOptions| options.answer_within = Duration::from_millis(500);
    faults::given_up_leaves_nothing::<OnDaytona>(&calls, half_a_second).await;
}

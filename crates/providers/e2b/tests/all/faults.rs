//! What a service, a network or somebody at a dashboard can do at each call.

use std::time::Duration;

use gloveport_hosted_checks::{
    Service as _, faults, runs,
    steps::{Act, create, kept, spec},
};
use gloveport_provider::{Provider as _, ProviderError, SandboxSpec};
use gloveport_provider_e2b::E2bOptions;
use gloveport_stand_ins::Fault;
use http::Method;

use crate::support::{OnE2b, Place};

fn busy() -> Fault {
    Fault::status(503, &[], "busy")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_the_wish_there_is_one_sandbox_for_it() {
    let faults = [
        busy(),
        Fault::status(429, &[("retry-after", "0")], "slow down"),
        Fault::status(500, &[("should-retry", "true")], "sandbox_placement_timeout"),
        Fault::status(500, &[], "internal"),
        Fault::status(409, &[], "idempotency_in_progress"),
    ];
    faults::one_sandbox_for_a_wish::<OnE2b>(&faults).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_whose_answer_was_lost_is_found_by_its_label_and_not_made_again() {
    let seen = faults::lost_wish_is_found::<OnE2b>(1).await;
    assert!(seen.iter().any(|seen| seen.path.contains("metadata=gloveport.e2b.wish%3D")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_wish_says_why_and_what_to_do() {
    let refusals = [
        (400, "a wish of the sandbox cannot be used"),
        (401, "look at E2B_API_KEY"),
        (403, "the key may not do this"),
        (404, "E2B has no template `base`"),
    ];
    faults::refused_wish_is_told::<OnE2b>(&["/sandboxes"], &refusals).await;
    let place = Place::new().await;
    let unknown = SandboxSpec { image: Some("nobody/has:this".to_owned()), ..spec("s") };
    let error = create(&place.backend(), &unknown).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Spec { field, .. } if field == "image"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stays_busy_is_told_as_such_after_a_few_tries() {
    let place = Place::new().await;
    let fault = Fault::status(429, &[("retry-after", "0")], "too many");
    let (backend, wanted) = (place.backend(), spec("s"));
    let call = (Method::GET, "/v2/sandboxes");
    faults::busy_is_told(&place, call, &fault, "as its plan allows", create(&backend, &wanted)).await;
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
    runs::<OnE2b>(&backend, &made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_call_of_a_creation_is_outlived_or_leaves_nothing() {
    let calls = [
        (Method::GET, "/v2/sandboxes"),
        (Method::POST, "/process.Process/Start"),
        (Method::POST, "/files"),
        (Method::POST, "/process.Process/List"),
        (Method::GET, "/sandboxes/i"),
    ];
    let faults = [busy(), Fault::status(500, &[], "internal")];
    faults::creation_outlives_faults::<OnE2b>(&calls, &faults).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_call_is_sent_again_when_the_service_is_busy_or_its_answer_is_lost() {
    faults::calls_are_sent_again::<OnE2b>(
        &[busy(), Fault::Dropped, Fault::status(502, &[("should-retry", "true")], "")],
        faults::ACTS,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_every_other_call_is_told_with_its_reason() {
    faults::refusals_are_told::<OnE2b>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_cannot_be_restored_is_told_and_nothing_is_lost() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    backend.pause(&made.id).await.unwrap();
    let message = "sandbox_snapshot_guest_agent_unresponsive";
    place.service.fail(Method::POST, "/connect", Fault::status(409, &[], message));
    let error = backend.resume(&made.id).await.unwrap_err().to_string();
    assert!(error.contains("could not resume a sandbox") && error.contains(message), "{error}");
    backend.resume(&made.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_somebody_deletes_is_gone_for_every_call() {
    faults::deleted_is_gone::<OnE2b>(&[Act::Pause, Act::Resume, Act::Hold]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_agent_is_silent_is_unknown_and_not_gone() {
    let fault = Fault::status(502, &[("should-retry", "false")], "The sandbox was not found");
    faults::silent_is_unknown::<OnE2b>((Method::POST, "/List"), &fault, 8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_leaves_nothing() {
    let calls = [(Method::POST, "/v2/sandboxes"), (Method::POST, "/Start"), (Method::POST, "/files")];
    let half_a_second = |options: &mut E2bOptions| options.answer_within = Duration::from_millis(500);
    faults::given_up_leaves_nothing::<OnE2b>(&calls, half_a_second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_service_is_not_waited_for_without_end() {
    let place = Place::new().await;
    let backend = place.backend_with(|options| options.answer_within = Duration::from_millis(100));
    for _ in 0..4 {
        place.service.fail(Method::GET, "/v2/sandboxes", Fault::Silent);
    }
    faults::creation_is_late(&backend).await;
}

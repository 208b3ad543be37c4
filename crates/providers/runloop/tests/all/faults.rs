//! What a service, a network or somebody at a dashboard can do at each call.

use std::{fs, time::Duration};

use gloveport_hosted_checks::{
    faults,
    steps::{Act, create, spec},
};
use gloveport_provider_runloop::RunloopOptions;
use gloveport_stand_ins::Fault;
use http::Method;

use crate::support::{OnRunloop, Place};

fn busy() -> Fault {
    Fault::status(503, &[("retry-after-ms", "5")], "busy")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_the_wish_there_is_one_sandbox_for_it() {
    let faults = [
        busy(),
        Fault::status(429, &[("retry-after", "0")], "slow down"),
        Fault::status(500, &[("x-should-retry", "true")], "no room"),
        Fault::status(500, &[], "internal"),
        Fault::status(409, &[], "the same request is at work"),
    ];
    faults::one_sandbox_for_a_wish::<OnRunloop>(&faults).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_wish_says_why_and_what_to_do() {
    let refusals = [
        (400, "a wish of the sandbox cannot be used"),
        (401, "look at RUNLOOP_API_KEY"),
        (402, "billing"),
        (403, "the key may not do this"),
        (404, "name another one"),
    ];
    faults::refused_wish_is_told::<OnRunloop>(&[], &refusals).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_has_all_it_may_is_told_as_such_after_a_few_tries() {
    let place = Place::new().await;
    let fault = Fault::status(429, &[("retry-after", "0")], "too many");
    let (backend, wanted) = (place.backend(), spec("s"));
    let call = (Method::GET, "/v1/devboxes");
    faults::busy_is_told(&place, call, &fault, "shut some down", create(&backend, &wanted)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_call_of_a_creation_is_outlived_or_leaves_nothing() {
    let calls = [
        (Method::GET, "/v1/objects"),
        (Method::POST, "/v1/objects"),
        (Method::PUT, "/uploads/"),
        (Method::POST, "/complete"),
        (Method::GET, "/v1/devboxes"),
        (Method::POST, "/wait_for_status"),
        (Method::POST, "/execute"),
        (Method::GET, "/tunnels/"),
        (Method::GET, "/v1/devboxes/dbx_"),
    ];
    let faults = [busy(), Fault::status(500, &[], "internal")];
    faults::creation_outlives_faults::<OnRunloop>(&calls, &faults).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_call_is_sent_again_when_the_service_is_busy_or_its_answer_is_lost() {
    faults::calls_are_sent_again::<OnRunloop>(&[busy(), Fault::Dropped, Fault::Lost], faults::ACTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_every_other_call_is_told_with_its_reason() {
    faults::refusals_are_told::<OnRunloop>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_somebody_deletes_is_gone_for_every_call() {
    faults::deleted_is_gone::<OnRunloop>(&[Act::Pause, Act::Resume, Act::Hold]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_in_which_nobody_answers_is_unknown_and_not_gone() {
    let fault = Fault::status(500, &[], "the devbox does not answer");
    faults::silent_is_unknown::<OnRunloop>((Method::POST, "/execute"), &fault, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_start_fails_is_told_with_the_reason_and_leaves_nothing() {
    let place = Place::new().await;
    let backend = place.backend();
    // A file where the directory of all is to be.
    fs::write(place.service.directory(), "").unwrap();
    let log = faults::failed_start_leaves_nothing(&place, &backend).await;
    assert!(!log.is_empty());
    fs::remove_file(place.service.directory()).unwrap();
    create(&backend, &spec("s")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_take_a_while_are_waited_for_but_not_without_end() {
    let hasty = |options: &mut RunloopOptions| options.start_within = Duration::from_millis(100);
    faults::slow_states_are_waited_for::<OnRunloop, _>(&[Act::Pause, Act::Resume], Duration::from_secs(30), hasty)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_leaves_nothing() {
    let calls = [(Method::POST, "/v1/devboxes"), (Method::POST, "/wait_for_status"), (Method::PUT, "/uploads/")];
    let half_a_second = |options: &mut RunloopOptions| options.answer_within = Duration::from_millis(500);
    faults::given_up_leaves_nothing::<OnRunloop>(&calls, half_a_second).await;
}

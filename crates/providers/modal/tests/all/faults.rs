//! What a service, a network or somebody at a dashboard can do at each call.

use std::{fs, time::Duration};

use gloveport_hosted_checks::{
    faults,
    steps::{Act, create, spec},
};
use gloveport_provider::ProviderError;
use gloveport_provider_modal::ModalOptions;
use gloveport_stand_ins::Fault;

use crate::support::{OnModal, Place, to};

/// `{code 8, details [RPCRetryPolicy {retry_after_secs: 0.01}]}`.
const WAIT: &str = "CAgaOAovdHlwZS5nb29nbGVhcGlzLmNvbS9tb2RhbC5jbGllbnQuUlBDUmV0cnlQb2xpY3kSBQ0K1yM8";

fn busy() -> Fault {
    Fault::status(14, &[], "busy")
}

fn told_to_wait() -> Fault {
    Fault::status(8, &[("grpc-status-details-bin", WAIT)], "slow down")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_the_wish_there_is_one_sandbox_for_it() {
    let faults = [
        busy(),
        told_to_wait(),
        Fault::status(13, &[], "internal"),
        Fault::status(2, &[], "unknown"),
        Fault::status(10, &[], "the same call is at work"),
        Fault::status(16, &[], "the token has expired"),
    ];
    faults::one_sandbox_for_a_wish::<OnModal>(&faults).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_whose_every_answer_is_lost_is_found_by_its_name() {
    faults::lost_wish_is_found::<OnModal>(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_wish_says_why_and_what_to_do() {
    let refusals = [
        (3, "a wish of the sandbox cannot be used"),
        (5, "Name another one"),
        (7, "the token may not do this"),
        (8, "end some, or try it later"),
        (9, "try it again"),
        (12, "a newer gloveport"),
    ];
    faults::refused_wish_is_told::<OnModal>(&[], &refusals).await;
    let place = Place::new().await;
    let wrong = place.backend_with(|options| options.token_id = Some("ak-wrong".to_owned()));
    let error = create(&wrong, &spec("s")).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Access { hint, .. } if hint.contains("MODAL_TOKEN_ID")), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_busy_for_long_is_told_as_such_after_a_few_tries() {
    let place = Place::new().await;
    let (backend, wanted) = (place.backend(), spec("s"));
    faults::busy_is_told(&place, to("/AppGetOrCreate"), &busy(), "busy", create(&backend, &wanted)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_call_of_a_creation_is_outlived_or_leaves_nothing() {
    let calls = [
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
    ];
    let faults = [busy(), told_to_wait(), Fault::status(7, &[], "no")];
    faults::creation_outlives_faults::<OnModal>(&calls.map(to), &faults).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_call_is_sent_again_when_the_service_is_busy_or_its_answer_is_lost() {
    let acts = [Act::Find, Act::Hold, Act::Snapshot, Act::Garbage];
    let place = faults::calls_are_sent_again::<OnModal>(&[busy(), Fault::Dropped, Fault::Lost], &acts).await;
    // A snapshot whose answer was lost is made once.
    assert_eq!(place.service.world().face.snapshots(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_every_other_call_is_told_with_its_reason() {
    faults::refusals_are_told::<OnModal>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_somebody_deletes_is_gone_for_every_call() {
    faults::deleted_is_gone::<OnModal>(&[Act::Hold, Act::Snapshot]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_start_fails_is_told_with_its_last_words_and_leaves_nothing() {
    let place = Place::new().await;
    let program = fs::read_to_string(place.program()).unwrap().replace("echo start >>starts", "echo no luck; exit 3");
    fs::write(place.program(), program).unwrap();
    let log = faults::failed_start_leaves_nothing(&place, &place.backend()).await;
    assert!(log.ends_with("no luck"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_take_a_while_are_waited_for_but_not_without_end() {
    let hasty = |options: &mut ModalOptions| options.start_within = Duration::from_millis(100);
    faults::slow_states_are_waited_for::<OnModal, _>(&[], Duration::from_millis(1500), hasty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_is_given_up_leaves_nothing() {
    let calls = [to("/SandboxCreateV2"), to("/SandboxWaitUntilReady"), to("/MountPutFile")];
    let half_a_second = |options: &mut ModalOptions| options.answer_within = Duration::from_millis(500);
    faults::given_up_leaves_nothing::<OnModal>(&calls, half_a_second).await;
}

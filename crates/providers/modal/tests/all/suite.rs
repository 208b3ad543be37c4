//! The runtime `modal` with our real server in its sandboxes: the suite of all providers.

use gloveport_hosted_checks::suite;

use crate::support::OnModal;

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_life() {
    suite::passes::<OnModal>(suite::LIFE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_lists() {
    suite::passes::<OnModal>(suite::LISTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_specs() {
    suite::passes::<OnModal>(suite::SPECS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_ends() {
    suite::passes::<OnModal>(suite::ENDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_garbage() {
    suite::passes::<OnModal>(suite::GARBAGE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_modal_passes_the_checks_of_options() {
    // The stand-in limits no memory: that takes groups of the kernel, which not every machine gives.
    let groups = [
        "optional/pause",
        "optional/logs",
        "optional/follow-logs",
        "optional/processes",
        "optional/ports",
        "optional/fork",
        "optional/warm",
    ];
    suite::passes::<OnModal>((&groups, &["optional/pause", "optional/processes", "optional/warm"])).await;
}

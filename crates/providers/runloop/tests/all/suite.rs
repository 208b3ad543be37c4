//! The runtime `runloop` with our real server in its sandboxes: the suite of all providers.

use gloveport_hosted_checks::suite;

use crate::support::OnRunloop;

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_runloop_passes_the_checks_of_life() {
    suite::passes::<OnRunloop>(suite::LIFE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_runloop_passes_the_checks_of_lists() {
    suite::passes::<OnRunloop>(suite::LISTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_runloop_passes_the_checks_of_specs() {
    suite::passes::<OnRunloop>(suite::SPECS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_runloop_passes_the_checks_of_ends() {
    suite::passes::<OnRunloop>(suite::ENDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_runloop_passes_the_checks_of_garbage() {
    suite::passes::<OnRunloop>(suite::GARBAGE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_runloop_passes_the_checks_of_options() {
    suite::passes::<OnRunloop>(suite::OPTIONS).await;
}

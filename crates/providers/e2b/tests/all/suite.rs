//! The runtime `e2b` with our real server in its sandboxes: the suite of all providers.

use gloveport_hosted_checks::suite;

use crate::support::OnE2b;

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_life() {
    suite::passes::<OnE2b>(suite::LIFE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_lists() {
    suite::passes::<OnE2b>(suite::LISTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_specs() {
    suite::passes::<OnE2b>(suite::SPECS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_ends() {
    suite::passes::<OnE2b>(suite::ENDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_garbage() {
    suite::passes::<OnE2b>(suite::GARBAGE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_e2b_passes_the_checks_of_options() {
    suite::passes::<OnE2b>(suite::OPTIONS).await;
}

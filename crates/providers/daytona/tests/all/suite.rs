//! The runtime `daytona` with our real server in its sandboxes: the suite of all providers.

use gloveport_hosted_checks::suite;

use crate::support::OnDaytona;

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_daytona_passes_the_checks_of_life() {
    suite::passes::<OnDaytona>(suite::LIFE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_daytona_passes_the_checks_of_lists() {
    suite::passes::<OnDaytona>(suite::LISTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_daytona_passes_the_checks_of_specs() {
    suite::passes::<OnDaytona>(suite::SPECS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_daytona_passes_the_checks_of_ends() {
    suite::passes::<OnDaytona>(suite::ENDS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_daytona_passes_the_checks_of_garbage() {
    suite::passes::<OnDaytona>(suite::GARBAGE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_daytona_passes_the_checks_of_options() {
    suite::passes::<OnDaytona>(suite::OPTIONS).await;
}

//! Sandboxes are made, found, rest, go on and end.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use gloveport_hosted_checks::{
    Service as _, ends, life, logs,
    steps::{A, Act, SECRET, create, kept, spec},
    wire,
};
use gloveport_provider::{GcOptions, ListFilter, Provider as _, ProviderError, SandboxId};
use http::Method;

use crate::support::{OnE2b, Place};

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_made_found_by_another_backend_and_deleted() {
    life::made_found_and_deleted::<OnE2b>(|made| {
        assert_eq!(made.headers["e2b-sandbox-id"].expose(), made.id.as_str());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_of_somebody_else_is_neither_shown_nor_touched() {
    let place = Place::new().await;
    let foreign = place.service.add_foreign();
    let backend = place.backend();
    let id = SandboxId::new(foreign.clone()).unwrap();
    assert!(backend.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap().is_empty());
    life::is_not_touched(&place, &backend, &id, &[Act::Pause, Act::Resume, Act::Snapshot]).await;
    let report = backend.collect_garbage(&GcOptions { all: true, dry_run: false }).await.unwrap();
    assert!(report.removed.is_empty() && report.failed.is_empty(), "{report:?}");
    assert_eq!(place.service.ids(), [foreign]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_uploaded_once_for_each_file_system_and_gets_its_secrets_on_standard_input() {
    let place = Place::new().await;
    let backend = place.backend();
    let (made, seen) = life::secret_is_told(&place, &backend, &backend).await;
    let uploads = seen.iter().filter(|seen| seen.method == Method::POST && seen.path.starts_with("/files?")).count();
    assert_eq!(uploads, 1);
    // The secret is in no label and no argument, and its one way is the standard input.
    wire::none_shows(&seen, SECRET);
    logs::has_no_secret(&backend, &made).await;
    backend.close().await;
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_from_its_end_and_followed_until_the_sandbox_is_gone() {
    logs::is_read_until_its_sandbox_is_gone::<OnE2b>(async |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_a_log_ends_what_reads_it_in_the_sandbox() {
    logs::whoever_leaves_ends_the_reader::<OnE2b>("/SendSignal").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_server_is_told_with_its_reason_and_its_session_gets_a_new_sandbox() {
    ends::reason_is_told::<OnE2b>(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_at_once_is_told_with_its_last_words_and_leaves_nothing() {
    let place = Place::new().await;
    fs::write(place.program(), "#!/bin/sh\necho no such library\nexit 127\n").unwrap();
    let backend = place.backend();
    match create(&backend, &spec("s")).await {
        Err(ProviderError::Start { reason, log }) => {
            assert!(reason.contains("code 127") && log == "no such library", "{reason}: {log}");
            assert!(place.service.ids().is_empty());
        }
        Err(error) => panic!("{error}"),
        // It was still there when it was looked at.
        Ok(made) => {
            let mut state = made.state;
            while state.is_live() {
                state = backend.find(&made.id).await.unwrap().unwrap().state;
            }
            assert!(state.reason().contains("code 127"), "{state}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rest_the_token_of_its_ports_is_read_anew_by_every_backend() {
    let place = Place::new().await;
    let (one, other) = (place.backend(), place.backend());
    let made = create(&one, &kept("s")).await.unwrap();
    let before = other.find(&made.id).await.unwrap().unwrap();
    assert_eq!(before.headers, made.headers);
    ends::rests::<OnE2b>(&one, &other, &made).await;
    for awake in ends::goes_on::<OnE2b>(&one, [&one, &other], &made).await {
        assert_eq!(awake.headers["e2b-traffic-access-token"].expose(), format!("traffic-{}-1", made.id));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_backend_holds_is_lengthened_and_what_it_leaves_rests_or_ends() {
    let place = Place::new().await;
    let backend = place.backend_with(|options| options.time_limit = Duration::from_secs(3));
    let (own, stays) = (create(&backend, &spec("own")).await.unwrap(), create(&backend, &kept("kept")).await.unwrap());
    assert!(own.expires.unwrap() <= SystemTime::now() + Duration::from_secs(4) && stays.expires.is_none());
    ends::held_outlive_their_limit(&place, backend, [&own, &stays], || {
        for id in [&own.id, &stays.id] {
            place.service.expire(id.as_str());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_died_leaves_garbage_and_a_kept_sandbox_stays_unless_all_are_to_go() {
    ends::of_a_dead_backend_is_garbage::<OnE2b>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_made_from_a_snapshot_that_ends_with_it() {
    life::fork_ends_with_its_snapshot::<OnE2b>("gloveport-fork-fork-1", |place| {
        let seen = place.service.seen();
        let snapshot = seen.iter().find(|seen| seen.path.ends_with("/snapshots")).unwrap();
        assert_eq!(snapshot.body["memory"], false);
        let is_launch = |path: &str| path.ends_with("/Start");
        let launched = seen.iter().rfind(|seen| is_launch(&seen.path) && seen.body.get("tag").is_some()).unwrap();
        assert_eq!((&launched.body["process"]["envs"]["A"], &launched.body["stdin"]), (&A.into(), &false.into()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_are_made_for_a_session_at_once_one_stays() {
    life::one_of_many_stays::<OnE2b>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_read_to_their_last_page() {
    life::all_pages_are_read::<OnE2b>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_on_this_side_is_told_before_or_without_a_sandbox() {
    life::what_is_missing_is_told::<OnE2b>(
        ("no key is set; set E2B_API_KEY", "E2B_API_KEY"),
        |options| options.key = None,
        |options| options.program = "/nonexistent/program".into(),
    )
    .await;
}

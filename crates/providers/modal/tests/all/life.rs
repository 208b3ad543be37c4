//! Sandboxes are made, found, rest, go on and end.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use futures_util::StreamExt as _;
use gloveport_hosted_checks::{
    ends, life, logs, runs,
    steps::{SECRET, create, end, kept, log_of, session, spec, workspace},
};
use gloveport_provider::{
    LogOptions, PhaseReport, Progress, Provider as _, ProviderError, Sandbox, SandboxSpec, SandboxState,
};
use gloveport_testing::within;
use http::Method;

use crate::support::{OnModal, Place};

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_made_found_by_another_backend_and_deleted() {
    life::made_found_and_deleted::<OnModal>(|made| {
        assert!(made.headers.is_empty() && made.url.as_ref().unwrap().starts_with("http://127.0.0.1:"), "{made:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_server_is_told_with_its_reason_and_its_session_gets_a_new_sandbox() {
    // The service calls ended what has.
    ends::reason_is_told::<OnModal>(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_died_leaves_garbage_and_a_kept_sandbox_stays_unless_all_are_to_go() {
    ends::of_a_dead_backend_is_garbage::<OnModal>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_are_made_for_a_session_at_once_one_stays() {
    life::one_of_many_stays::<OnModal>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_read_to_their_last_page() {
    life::all_pages_are_read::<OnModal>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_on_this_side_is_told_before_or_without_a_sandbox() {
    life::what_is_missing_is_told::<OnModal>(
        ("no key is set", "MODAL_TOKEN_ID"),
        |options| options.token_secret = None,
        |options| options.program = "/nonexistent/program".into(),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_stored_once_for_all_sandboxes_and_no_secret_is_where_others_can_read_it() {
    let place = Place::new().await;
    let backend = place.backend();
    let (made, all) = life::secret_is_told(&place, &backend, &place.backend()).await;
    assert_eq!(place.service.world().face.files().len(), 1);
    let key = made.session_key.clone().unwrap();
    for mut seen in all {
        // What the service tells nobody again.
        if let Some(wish) = seen.body.pointer_mut("/messages/0/6") {
            wish.take();
        }
        let body = seen.body.to_string();
        assert!(!body.contains(SECRET) && !body.contains(key.expose()), "{}", seen.path);
        assert!(!seen.path.contains(SECRET));
    }
    logs::has_no_secret(&backend, &made).await;
    backend.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_program_goes_to_the_store_of_blobs_without_the_token() {
    let place = Place::new().await;
    let mut program = fs::read(place.program()).unwrap();
    program.extend(std::iter::repeat_n(b'#', 5 * 1024 * 1024));
    fs::write(place.program(), program).unwrap();
    create(&place.backend(), &spec("s")).await.unwrap();
    let seen = place.service.seen();
    let upload = seen.iter().find(|seen| seen.method == Method::PUT).unwrap();
    for name in ["x-modal-token-id", "x-modal-token-secret", "x-modal-auth-token", "authorization"] {
        assert_eq!(upload.header(name), "", "{name}");
    }
    assert!(place.service.world().face.files()[0] > 5 * 1024 * 1024);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_from_its_end_followed_until_the_sandbox_is_gone_and_kept_afterwards() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    let (whole, mut followed) = logs::is_read_from_its_end(&backend, &made).await;
    end(&backend, &made, "3").await;
    assert!(within(followed.next()).await.is_none());
    assert_eq!(log_of(&backend, &made.id, LogOptions::default()).await, whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_ends_when_its_time_is_over_and_no_later() {
    let place = Place::new().await;
    let backend = place.backend();
    let ttl = Some(Duration::from_mins(10));
    let (short, long) = (
        create(&backend, &SandboxSpec { time_to_live: ttl, ..spec("short") }).await.unwrap(),
        create(&backend, &kept("long")).await.unwrap(),
    );
    let left = |sandbox: &Sandbox| sandbox.expires.unwrap().duration_since(SystemTime::now()).unwrap().as_secs();
    assert!((500..=600).contains(&left(&short)) && (3500..=3600).contains(&left(&long)));
    place.service.advance(Duration::from_secs(670));
    let ended = backend.find(&short.id).await.unwrap().unwrap();
    assert_eq!(ended.state, SandboxState::Stopped("its time is over".to_owned()));
    runs::<OnModal>(&backend, &long).await;
    place.service.advance(Duration::from_hours(1));
    assert!(!backend.find(&long.id).await.unwrap().unwrap().state.is_live());
    let error =
        create(&backend, &SandboxSpec { time_to_live: Some(Duration::from_hours(2)), ..spec("x") }).await.unwrap_err();
    assert!(error.to_string().contains("time_limit in [extended.modal]"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_rest_and_that_is_said() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    for refused in [backend.pause(&made.id).await, backend.resume(&made.id).await] {
        assert!(
            matches!(&refused, Err(ProviderError::Unsupported { what, .. }) if what == "pause and resume"),
            "{refused:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_made_from_the_files_of_a_sandbox_and_a_snapshot_is_an_image() {
    let place = Place::new().await;
    let backend = place.backend();
    let environment = [("A".to_owned(), "b".to_owned())].into();
    let origin = create(&backend, &SandboxSpec { environment, ..kept("Origin.1") }).await.unwrap();
    life::fork(&backend, &origin, "Fork.1").await;
    assert_eq!(fs::read_to_string(workspace(&origin).join("starts")).unwrap(), "start\nstart\n");
    let taken = backend.fork(&origin.id, &session("Fork.1"), &Progress::silent()).await.unwrap_err();
    assert!(matches!(taken, ProviderError::SessionExists { .. }), "{taken}");
    let image = backend.snapshot(&origin.id, "mine").await.unwrap();
    assert!(image.starts_with("image:im-"), "{image}");
    create(&backend, &SandboxSpec { image: Some(image), ..spec("of-snapshot") }).await.unwrap();
    assert_eq!(place.service.world().face.snapshots(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_built_once_with_progress_and_one_that_cannot_be_is_told() {
    let place = Place::new().await;
    let backend = place.backend();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let progress = Progress::to(Arc::new(move |report: &PhaseReport<'_>| {
        hear.lock().unwrap().push(report.detail.to_owned());
    }));
    for name in ["a", "b"] {
        let image = Some("python:3.13".to_owned());
        backend.create(&SandboxSpec { image, ..spec(name) }, &progress).await.unwrap();
    }
    assert_eq!(place.service.world().face.images(), ["FROM python:3.13"]);
    let steps = heard.lock().unwrap().iter().filter(|detail| detail.contains("FROM python:3.13")).count();
    assert_eq!(steps, 1);
    life::images_are_refused(
        &backend,
        &[
            ("nobody/x", "the registry has no such image"),
            ("image:im-none", "Name another one"),
            ("no image", "is no image of a registry"),
        ],
    )
    .await;
    place.service.world().face.builder = "2024.10".to_owned();
    let error = create(&backend, &spec("d")).await.unwrap_err().to_string();
    assert!(error.contains("2024.10") && error.contains("settings of the workspace"), "{error}");
    assert_eq!(place.service.ids().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_service_that_is_not_good_any_more_is_made_anew() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    place.service.world().face.forget_tokens();
    runs::<OnModal>(&backend, &made).await;
    place.service.seen();
    // It is made anew before it ends, too, and else once for many calls.
    for _ in 0..3 {
        backend.find(&made.id).await.unwrap();
    }
    assert!(!place.service.seen().iter().any(|seen| seen.path.ends_with("/AuthTokenGet")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_a_sandbox_of_somebody_else_has_is_not_touched() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    place.service.world().sandboxes.get_mut(made.id.as_str()).unwrap().labels.clear();
    let error = create(&backend, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("is not one of gloveport"), "{error}");
    life::is_not_touched(&place, &backend, &made.id, &[]).await;
}

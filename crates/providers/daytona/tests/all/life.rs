//! Sandboxes are made, found, rest, go on and end.

use std::{fs, io::Write as _, time::Duration};

use futures_util::StreamExt as _;
use gloveport_hosted_checks::{
    ends, faults, life, logs,
    steps::{
        A, Act, SECRET, create, kept, log_of, running, session, spec, was_told_the_secret, with_secret, workspace,
    },
    wire,
};
use gloveport_provider::{LogOptions, Provider as _, ProviderError, SandboxSpec, SandboxState};
use gloveport_testing::{until, within};
use http::Method;

use crate::support::{OnDaytona, Place};

const TOKEN: &str = "x-daytona-preview-token";

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_made_found_by_another_backend_and_deleted() {
    life::made_found_and_deleted::<OnDaytona>(|made| assert!(made.headers.contains_key(TOKEN))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_somebody_else_has_is_told_and_theirs_is_not_touched() {
    let place = Place::new().await;
    let backend = place.backend();
    // Somebody's own, by the same key.
    let made = create(&backend, &kept("s")).await.unwrap();
    place.service.world().sandboxes.get_mut(made.id.as_str()).unwrap().labels.clear();
    let error = create(&backend, &spec("s")).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Spec { field, .. } if field == "session"), "{error}");
    let other = place.backend();
    assert!(other.find_session(&session("s")).await.unwrap().is_none());
    life::is_not_touched(&place, &other, &made.id, &[Act::Pause, Act::Resume, Act::Snapshot]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_uploaded_once_and_secrets_are_nowhere_but_in_the_server() {
    let place = Place::new().await;
    let backend = place.backend();
    let (made, seen) = life::secret_is_told(&place, &backend, &backend).await;
    let uploads = seen.iter().filter(|seen| seen.path.contains("upload-v2") && seen.path.contains("program.new"));
    assert_eq!(uploads.count(), 1);
    // It is in no label, no command and no variable that the service is told, and in no file that stays.
    wire::none_shows(&seen, SECRET);
    let workspace = workspace(&made);
    let directory = workspace.parent().unwrap();
    for name in ["sealed", "log", "pid"] {
        assert!(!fs::read_to_string(directory.join(name)).unwrap_or_default().contains(SECRET), "{name}");
    }
    assert!(
        directory.join("sealed").exists() && !directory.join("start").exists() && !directory.join("started").exists()
    );
    logs::has_no_secret(&backend, &made).await;
    backend.close().await;
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_from_its_end_and_followed_until_the_sandbox_is_gone() {
    logs::is_read_until_its_sandbox_is_gone::<OnDaytona>(async |made, followed| {
        let mut log = fs::OpenOptions::new().append(true).open(logs::file(made)).unwrap();
        log.write_all("more \u{fc}\n".as_bytes()).unwrap();
        assert_eq!(within(followed.next()).await.unwrap().unwrap(), "more \u{fc}\n".as_bytes());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_server_is_told_with_its_reason_and_its_session_may_have_another_one() {
    ends::reason_is_told::<OnDaytona>(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_rests_gets_its_server_again_with_its_secrets_and_another_token() {
    let place = Place::new().await;
    let (one, other) = (place.backend(), place.backend());
    for (name, keep_alive) in [("kept", true), ("own", false)] {
        let wanted = with_secret(SandboxSpec { keep_alive, ..spec(name) });
        let made = create(&one, &wanted).await.unwrap();
        let made = running(&one, &made).await;
        ends::rests::<OnDaytona>(&one, &other, &made).await;
        fs::remove_file(workspace(&made).join("secrets")).unwrap();
        // Somebody else knows no secrets but the key of the service.
        for awake in ends::goes_on::<OnDaytona>(&other, [&one, &other], &made).await {
            assert_ne!(awake.headers[TOKEN], made.headers[TOKEN]);
        }
        until("the secrets of the server", || was_told_the_secret(&made)).await;
        let log = log_of(&one, &made.id, LogOptions::default()).await;
        assert_eq!(log.matches(&format!("key=set input= A={A}")).count(), 2, "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_machine_rests_with_its_processes() {
    let place = Place::new().await;
    place.service.world().face.have_machines();
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    running(&backend, &made).await;
    place.service.seen();
    backend.pause(&made.id).await.unwrap();
    assert_eq!(backend.find(&made.id).await.unwrap().unwrap().state, SandboxState::Paused);
    backend.resume(&made.id).await.unwrap();
    assert_eq!(backend.find(&made.id).await.unwrap().unwrap().state, SandboxState::Running);
    let seen = place.service.seen();
    assert!(seen.iter().any(|seen| seen.path.ends_with("/pause")));
    assert!(!seen.iter().any(|seen| seen.path.ends_with("/exec")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_backend_holds_stays_in_use_and_what_it_leaves_rests_or_ends() {
    let place = Place::new().await;
    let backend = place.backend_with(|options| options.time_limit = Duration::from_secs(3));
    // The service has whole minutes, and so does this: shorter ones only make the keeper quick.
    let (own, stays) = (create(&backend, &spec("own")).await.unwrap(), create(&backend, &kept("kept")).await.unwrap());
    backend.hold(&stays.id).await.unwrap();
    place.service.seen();
    until("the service to hear of both", || {
        let uses = place.service.seen();
        uses.iter().any(|seen| seen.path.ends_with("/last-activity"))
    })
    .await;
    drop(backend);
    let mortal = place.backend();
    let (own_2, kept_2) =
        (create(&mortal, &spec("own-2")).await.unwrap(), create(&mortal, &kept("kept-2")).await.unwrap());
    for made in [&own_2, &kept_2] {
        running(&mortal, made).await;
    }
    drop(mortal);
    place.service.advance(Duration::from_mins(16));
    let other = place.backend();
    ends::own_ends_and_kept_rests::<OnDaytona>(&other, [&own_2, &kept_2]).await;
    // Minutes of the service that are none never end.
    assert!(other.find(&own.id).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_died_leaves_garbage_and_a_kept_sandbox_stays_unless_all_are_to_go() {
    ends::of_a_dead_backend_is_garbage::<OnDaytona>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_made_from_a_snapshot_that_ends_with_it() {
    life::fork_ends_with_its_snapshot::<OnDaytona>("gloveport-fork-Fork.1", |_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_are_made_for_a_session_at_once_one_stays() {
    life::one_of_many_stays::<OnDaytona>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_read_to_their_last_page_and_show_what_was_just_made() {
    let (place, backend) = life::all_pages_are_read::<OnDaytona>().await;
    place.service.world().face.be_late();
    let late = create(&backend, &spec("s5")).await.unwrap();
    assert_eq!(life::listed(&backend).await, ["s0", "s1", "s2", "s3", "s4", "s5"]);
    // Another backend finds it by its name.
    let found = place.backend().find_session(&session("s5")).await.unwrap();
    assert_eq!(found.map(|found| found.id), Some(late.id));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_the_service_time_is_waited_for() {
    let place = Place::new().await;
    place.service.set_slow(Duration::from_millis(400));
    let backend = place.backend();
    let made = create(&backend, &kept("s")).await.unwrap();
    backend.pause(&made.id).await.unwrap();
    backend.resume(&made.id).await.unwrap();
    running(&backend, &made).await;
    assert!(backend.delete(&made.id).await.unwrap());
    // The name is free at once.
    create(&backend, &kept("s")).await.unwrap();
    let hasty = place.backend_with(|options| options.start_within = Duration::from_millis(100));
    faults::creation_is_late(&hasty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_on_this_side_is_told_before_or_without_a_sandbox() {
    life::what_is_missing_is_told::<OnDaytona>(
        ("no key is set; set DAYTONA_API_KEY", "DAYTONA_API_KEY"),
        |options| options.key = None,
        |options| options.program = "/nonexistent/program".into(),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_daemon_gets_a_form() {
    let place = Place::new().await;
    place.service.world().face.be_old();
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    running(&backend, &made).await;
    let seen = place.service.seen();
    assert!(seen.iter().any(|seen| seen.method == Method::POST && seen.path.ends_with("/files/bulk-upload")));
}

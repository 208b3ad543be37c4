//! Sandboxes are made, found, rest, go on and end.

use std::{fs, time::Duration};

use gloveport_hosted_checks::{
    ends, life, logs,
    steps::{SECRET, confined, create, kept, spec, was_told_the_secret, with_secret, workspace},
};
use gloveport_provider::{Provider as _, SandboxSpec, SandboxState};
use gloveport_testing::until;
use http::Method;

use crate::support::{OnRunloop, Place};

const TUNNEL: &str = "x-runloop-tunnel-authorization";

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_made_found_by_another_backend_and_deleted() {
    life::made_found_and_deleted::<OnRunloop>(|made| {
        assert!(made.headers[TUNNEL].expose().starts_with("Bearer token-of-"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_stored_once_for_all_sandboxes_and_no_secret_is_where_others_can_read_it() {
    let place = Place::new().await;
    let backend = place.backend();
    let (made, seen) = life::secret_is_told(&place, &backend, &place.backend()).await;
    assert_eq!(seen.iter().filter(|seen| seen.method == Method::PUT).count(), 1);
    let objects = place.service.world().face.objects();
    assert_eq!((objects.len(), objects[0].0.len()), (1, "gloveport-".len() + 64), "{objects:?}");
    let key = made.session_key.as_ref().unwrap();
    for seen in seen.iter().filter(|seen| seen.method == Method::POST) {
        let mut body = seen.body.clone();
        // What the service tells nobody again.
        body["environment_variables"].take();
        let body = body.to_string();
        assert!(!body.contains(SECRET) && !body.contains(key.expose()), "{}", seen.path);
    }
    logs::has_no_secret(&backend, &made).await;
    backend.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_from_its_end_and_followed_until_the_sandbox_is_gone() {
    logs::is_read_until_its_sandbox_is_gone::<OnRunloop>(async |_, _| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_a_log_ends_what_reads_it_in_the_sandbox() {
    logs::whoever_leaves_ends_the_reader::<OnRunloop>("/kill").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_server_is_told_with_its_reason_and_its_session_gets_a_new_sandbox() {
    ends::reason_is_told::<OnRunloop>(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rest_the_server_is_started_again_and_every_backend_has_the_new_token() {
    let place = Place::new().await;
    let (one, other) = (place.backend(), place.backend());
    let made = create(&one, &with_secret(kept("s"))).await.unwrap();
    let workspace = workspace(&made);
    until("the first start", || workspace.join("secrets").exists()).await;
    ends::rests::<OnRunloop>(&one, &other, &made).await;
    fs::remove_file(workspace.join("secrets")).unwrap();
    for awake in ends::goes_on::<OnRunloop>(&one, [&one, &other], &made).await {
        assert_eq!(awake.headers[TUNNEL].expose(), format!("{}-again", made.headers[TUNNEL].expose()));
    }
    // It has its secrets as at the first time.
    until("the second start", || was_told_the_secret(&made)).await;
    assert_eq!(fs::read_to_string(workspace.join("starts")).unwrap(), "start\nstart\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_backend_holds_lives_on_and_what_it_leaves_rests_or_ends() {
    let place = Place::new().await;
    let backend = place.backend_with(|options| options.time_limit = Duration::from_secs(3));
    let (own, stays) = (create(&backend, &spec("own")).await.unwrap(), create(&backend, &kept("kept")).await.unwrap());
    let over = || place.service.advance(Duration::from_secs(4));
    let other = ends::held_outlive_their_limit(&place, backend, [&own, &stays], over).await;
    // Who holds one that rests has no need to wake it.
    other.hold(&stays.id).await.unwrap();
    assert_eq!(other.find(&stays.id).await.unwrap().unwrap().state, SandboxState::Paused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_died_leaves_garbage_and_a_kept_sandbox_stays_unless_all_are_to_go() {
    ends::of_a_dead_backend_is_garbage::<OnRunloop>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_made_from_a_snapshot_that_ends_with_it() {
    life::fork_ends_with_its_snapshot::<OnRunloop>("gloveport-fork-Fork.1", |_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_and_networks_are_made_once_and_found_by_their_names() {
    let place = Place::new().await;
    let backend = place.backend();
    for name in ["a", "b"] {
        let image = Some("debian:13".to_owned());
        create(&backend, &SandboxSpec { image, ..confined(spec(name)) }).await.unwrap();
    }
    let (blueprints, policies) = {
        let world = place.service.world();
        (world.face.blueprints(), world.face.policies())
    };
    assert!(matches!(&blueprints[..], [one] if one.starts_with("gloveport-image-")), "{blueprints:?}");
    assert!(matches!(&policies[..], [one] if one.starts_with("gloveport-network-")), "{policies:?}");
    life::images_are_refused(
        &backend,
        &[
            ("blueprint:nobody", "name another one in [extended.runloop]"),
            ("snapshot:nobody", "look for it on the dashboard"),
            ("no image", "is no image of a registry"),
        ],
    )
    .await;
    assert_eq!(place.service.ids().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_are_made_for_a_session_at_once_one_stays() {
    life::one_of_many_stays::<OnRunloop>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_read_to_their_last_page() {
    life::all_pages_are_read::<OnRunloop>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_on_this_side_is_told_before_or_without_a_sandbox() {
    life::what_is_missing_is_told::<OnRunloop>(
        ("no key is set", "RUNLOOP_API_KEY"),
        |options| options.key = None,
        |options| options.program = "/nonexistent/program".into(),
    )
    .await;
}

//! Sandboxes are made, found, rest, go on and end.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt as _;
use gloveport_protocol::Secret;
use gloveport_provider::{
    GcOptions, Lifetime, ListFilter, LogOptions, NetworkPolicy, Progress, Provider as _, ProviderError, SandboxSpec,
    SandboxState,
};
use gloveport_provider_runloop::{Runloop, RunloopOptions};
use http::Method;

use crate::support::{Place, create, end, kept, session, spec, until, within};

const TUNNEL: &str = "x-runloop-tunnel-authorization";

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_made_found_by_another_backend_and_deleted() {
    let place = Place::new().await;
    let (one, other) = (place.backend(), place.backend());
    let wanted = SandboxSpec {
        labels: [("team".to_owned(), "a b&c=d".to_owned())].into(),
        session_key: Some(Secret::new("key-of-the-caller")),
        ..spec("s")
    };
    let made = create(&one, &wanted).await.unwrap();
    assert_eq!((&made.state, made.lifetime), (&SandboxState::Running, Lifetime::Backend));
    assert!(made.headers[TUNNEL].expose().starts_with("Bearer token-of-"));
    for found in [
        other.find(&made.id).await.unwrap().unwrap(),
        other.find_session(&session("s")).await.unwrap().unwrap(),
        other.list(&ListFilter::default()).await.unwrap().remove(0),
        other.list(&ListFilter { labels: wanted.labels.clone(), ended: false }).await.unwrap().remove(0),
    ] {
        assert_eq!(found.session_key, Some(Secret::new("key-of-the-caller")));
        assert_eq!((&found.id, &found.url, &found.labels), (&made.id, &made.url, &wanted.labels));
        assert_eq!(found.headers, made.headers);
        assert_eq!((found.created, &found.workspace, &found.state), (made.created, &made.workspace, &made.state));
    }
    let no_team = [("team".to_owned(), "b".to_owned())].into();
    assert!(other.list(&ListFilter { labels: no_team, ended: true }).await.unwrap().is_empty());
    assert!(other.delete(&made.id).await.unwrap() && !one.delete(&made.id).await.unwrap());
    assert!(one.find(&made.id).await.unwrap().is_none() && place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_stored_once_for_all_sandboxes_and_no_secret_is_where_others_can_read_it() {
    let place = Place::new().await;
    let backend = place.backend();
    let secrets = [("S".to_owned(), Secret::new("hunter2"))].into();
    let environment = [("A".to_owned(), "two words".to_owned())].into();
    let made = create(&backend, &SandboxSpec { secrets, environment, ..spec("s") }).await.unwrap();
    let told = PathBuf::from(made.workspace.as_ref().unwrap()).join("secrets");
    until("the secrets of the server", || {
        fs::read_to_string(&told).is_ok_and(|line| line == "{\"secrets\":{\"S\":\"hunter2\"}}\n")
    })
    .await;
    create(&place.backend(), &spec("t")).await.unwrap();
    let seen = place.service.seen();
    assert_eq!(seen.iter().filter(|seen| seen.method == Method::PUT).count(), 1);
    let objects = place.service.world().face.objects();
    assert_eq!((objects.len(), objects[0].0.len()), (1, "gloveport-".len() + 64), "{objects:?}");
    let key = made.session_key.unwrap();
    for seen in seen.iter().filter(|seen| seen.method == Method::POST) {
        let mut body = seen.body.clone();
        // What the service tells nobody again.
        body["environment_variables"].take();
        let body = body.to_string();
        assert!(!body.contains("hunter2") && !body.contains(key.expose()), "{}", seen.path);
    }
    let log = log_of(&backend, &made.id, LogOptions::default()).await;
    assert!(log.contains("key=set input= A=two words") && !log.contains("hunter2"), "{log}");
    backend.close().await;
}

async fn log_of(backend: &Runloop, id: &gloveport_provider::SandboxId, options: LogOptions) -> String {
    let pieces: Vec<_> = within(backend.logs(id, options).await.unwrap().collect::<Vec<_>>()).await;
    let bytes: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.unwrap().to_vec()).collect();
    String::from_utf8(bytes).unwrap()
}

/// What the server of a sandbox has written.
fn log_file(workspace: Option<&str>) -> Option<String> {
    fs::read_to_string(Path::new(workspace?).parent()?.join("log")).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_from_its_end_and_followed_until_the_sandbox_is_gone() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    until("the log of the server", || log_file(made.workspace.as_deref()).is_some_and(|log| log.lines().count() == 2))
        .await;
    let tail = |lines| LogOptions { follow: false, tail: Some(lines) };
    assert_eq!(log_of(&backend, &made.id, tail(0)).await, "");
    assert!(log_of(&backend, &made.id, tail(1)).await.starts_with("port="));
    let whole = log_of(&backend, &made.id, tail(usize::MAX)).await;
    assert!(whole.starts_with("started with: container-server --port "), "{whole}");
    let mut followed = backend.logs(&made.id, LogOptions { follow: true, tail: Some(1) }).await.unwrap();
    assert!(within(followed.next()).await.unwrap().unwrap().starts_with(b"port="));
    backend.delete(&made.id).await.unwrap();
    assert!(within(followed.next()).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_a_log_ends_what_reads_it_in_the_sandbox() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    let mut followed = backend.logs(&made.id, LogOptions { follow: true, tail: None }).await.unwrap();
    within(followed.next()).await.unwrap().unwrap();
    place.service.seen();
    drop(followed);
    until("the end of the reader", || place.service.seen().iter().any(|seen| seen.path.ends_with("/kill"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_server_is_told_with_its_reason_and_its_session_gets_a_new_sandbox() {
    let place = Place::new().await;
    let backend = place.backend();
    for (code, expected) in [("80", "its time is over"), ("81", "nobody used it"), ("3", "ended with code 3")] {
        let made = create(&backend, &spec("s")).await.unwrap();
        let ended = end(&backend, &made, code).await;
        assert!(ended.state.reason().contains(expected), "{ended:?}");
        assert!(backend.list(&ListFilter::default()).await.unwrap().is_empty());
        assert_eq!(backend.find_session(&session("s")).await.unwrap().unwrap().state, ended.state);
    }
    assert_eq!(place.service.ids().len(), 1);
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.removed[0].reason, "it has ended");
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rest_the_server_is_started_again_and_every_backend_has_the_new_token() {
    let place = Place::new().await;
    let (one, other) = (place.backend(), place.backend());
    let secrets = [("S".to_owned(), Secret::new("hunter2"))].into();
    let made = create(&one, &SandboxSpec { secrets, ..kept("s") }).await.unwrap();
    let workspace = PathBuf::from(made.workspace.as_ref().unwrap());
    until("the first start", || workspace.join("secrets").exists()).await;
    one.pause(&made.id).await.unwrap();
    one.pause(&made.id).await.unwrap();
    let resting = other.find(&made.id).await.unwrap().unwrap();
    assert_eq!((&resting.state, &resting.session_key), (&SandboxState::Paused, &made.session_key));
    fs::remove_file(workspace.join("secrets")).unwrap();
    one.resume(&made.id).await.unwrap();
    one.resume(&made.id).await.unwrap();
    for backend in [&one, &other] {
        let awake = backend.find(&made.id).await.unwrap().unwrap();
        assert_eq!((&awake.state, &awake.url), (&SandboxState::Running, &made.url));
        assert_eq!(awake.headers[TUNNEL].expose(), format!("{}-again", made.headers[TUNNEL].expose()));
    }
    // It has its secrets as at the first time.
    until("the second start", || fs::read_to_string(workspace.join("secrets")).is_ok_and(|it| it.contains("hunter2")))
        .await;
    assert_eq!(fs::read_to_string(workspace.join("starts")).unwrap(), "start\nstart\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_backend_holds_lives_on_and_what_it_leaves_rests_or_ends() {
    let place = Place::new().await;
    let backend = Runloop::new(RunloopOptions { time_limit: Duration::from_secs(3), ..place.options() });
    let (own, stays) = (create(&backend, &spec("own")).await.unwrap(), create(&backend, &kept("kept")).await.unwrap());
    backend.hold(&stays.id).await.unwrap();
    // Longer than the limit.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for id in [&own.id, &stays.id] {
        assert_eq!(backend.find(id).await.unwrap().unwrap().state, SandboxState::Running);
    }
    // As if its process died: nobody is told.
    drop(backend);
    place.service.advance(Duration::from_secs(4));
    let other = place.backend();
    assert!(other.find(&own.id).await.unwrap().is_none());
    assert_eq!(other.find(&stays.id).await.unwrap().unwrap().state, SandboxState::Paused);
    // Who holds one that rests has no need to wake it.
    other.hold(&stays.id).await.unwrap();
    assert_eq!(other.find(&stays.id).await.unwrap().unwrap().state, SandboxState::Paused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_died_leaves_garbage_and_a_kept_sandbox_stays_unless_all_are_to_go() {
    let place = Place::new().await;
    let (mortal, other) = (place.backend(), place.backend());
    let own = create(&mortal, &spec("own")).await.unwrap();
    let stays = create(&mortal, &kept("kept")).await.unwrap();
    let collect = async |all| {
        let report = other.collect_garbage(&GcOptions { all, dry_run: true }).await.unwrap();
        report.removed.into_iter().map(|removed| (removed.id.unwrap(), removed.reason)).collect::<Vec<_>>()
    };
    assert_eq!(collect(false).await, []);
    drop(mortal);
    assert_eq!(collect(false).await, [(own.id, "its backend has died".to_owned())]);
    assert_eq!(collect(true).await[1].0, stays.id);
    let report = other.collect_garbage(&GcOptions { all: true, dry_run: false }).await.unwrap();
    assert_eq!((report.removed.len(), report.failed.len()), (2, 0));
    assert!(place.service.ids().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_made_from_a_snapshot_that_ends_with_it() {
    let place = Place::new().await;
    let backend = place.backend();
    let environment = [("A".to_owned(), "b".to_owned())].into();
    let origin = create(&backend, &SandboxSpec { environment, ..kept("Origin.1") }).await.unwrap();
    let fork = backend.fork(&origin.id, &session("Fork.1"), &Progress::silent()).await.unwrap();
    assert_eq!((&fork.workspace, fork.lifetime), (&origin.workspace, Lifetime::Kept));
    assert!(fork.session_key.is_some() && fork.session_key != origin.session_key);
    let snapshots = || place.service.world().face.snapshots();
    assert_eq!(snapshots(), ["gloveport-fork-Fork.1"]);
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(report.removed.is_empty(), "{report:?}");
    assert!(backend.delete(&fork.id).await.unwrap() && snapshots().is_empty());

    // One that somebody deleted elsewhere leaves a snapshot, which is garbage.
    let fork = backend.fork(&origin.id, &session("fork-2"), &Progress::silent()).await.unwrap();
    place.service.delete(fork.id.as_str());
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.removed[0].path.as_deref(), Some(Path::new("gloveport-fork-fork-2")));
    assert!(snapshots().is_empty());

    // And one that is asked for stays.
    let image = backend.snapshot(&origin.id, "mine").await.unwrap();
    assert!(backend.collect_garbage(&GcOptions::default()).await.unwrap().removed.is_empty());
    create(&backend, &SandboxSpec { image: Some(image), ..spec("of-snapshot") }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn images_and_networks_are_made_once_and_found_by_their_names() {
    let place = Place::new().await;
    let backend = place.backend();
    let network = NetworkPolicy::Only(vec!["pypi.org".to_owned(), "10.0.0.0/8".to_owned()]);
    for name in ["a", "b"] {
        let image = Some("debian:13".to_owned());
        create(&backend, &SandboxSpec { image, network: network.clone(), ..spec(name) }).await.unwrap();
    }
    let (blueprints, policies) = {
        let world = place.service.world();
        (world.face.blueprints(), world.face.policies())
    };
    assert!(matches!(&blueprints[..], [one] if one.starts_with("gloveport-image-")), "{blueprints:?}");
    assert!(matches!(&policies[..], [one] if one.starts_with("gloveport-network-")), "{policies:?}");
    for (image, expected) in [
        ("blueprint:nobody", "name another one in [extended.runloop]"),
        ("snapshot:nobody", "look for it on the dashboard"),
        ("no image", "is no image of a registry"),
    ] {
        let error = create(&backend, &SandboxSpec { image: Some(image.to_owned()), ..spec("c") }).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(place.service.ids().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_are_made_for_a_session_at_once_one_stays() {
    let place = Place::new().await;
    let backends: Vec<Runloop> = (0..4).map(|_| place.backend()).collect();
    let wanted = spec("s");
    let made = futures_util::future::join_all(backends.iter().map(|backend| create(backend, &wanted))).await;
    let ids = place.service.ids();
    assert_eq!(ids.len(), 1, "{made:?}");
    for result in made {
        match result {
            Ok(winner) => assert_eq!(winner.id.as_str(), ids[0]),
            Err(ProviderError::SessionExists { sandbox, .. }) => assert_eq!(sandbox.as_str(), ids[0]),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_are_read_to_their_last_page() {
    let place = Place::new().await;
    place.service.set_page(2);
    let backend = place.backend();
    for number in 0..5 {
        create(&backend, &spec(&format!("s{number}"))).await.unwrap();
    }
    let listed = backend.list(&ListFilter::default()).await.unwrap();
    let sessions: Vec<&str> = listed.iter().map(|sandbox| sandbox.session_id.as_str()).collect();
    assert_eq!(sessions, ["s0", "s1", "s2", "s3", "s4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_on_this_side_is_told_before_or_without_a_sandbox() {
    let place = Place::new().await;
    let no_key = Runloop::new(RunloopOptions { key: None, ..place.options() });
    let error = create(&no_key, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("no key is set"), "{error}");
    let check = &no_key.check().await[0];
    assert!(!check.works && check.remedy.as_ref().unwrap().contains("RUNLOOP_API_KEY"), "{check:?}");
    let no_program = Runloop::new(RunloopOptions { program: "/nonexistent/program".into(), ..place.options() });
    let error = create(&no_program, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("cannot read the program for sandboxes, /nonexistent/program"), "{error}");
    assert!(place.service.ids().is_empty());
    let checks = place.backend().check().await;
    assert!(checks.iter().all(|check| check.works), "{checks:?}");
}

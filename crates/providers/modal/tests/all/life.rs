//! Sandboxes are made, found, rest, go on and end.

use std::{fs, path::PathBuf, time::Duration};

use futures_util::StreamExt as _;
use gloveport_protocol::Secret;
use gloveport_provider::{
    GcOptions, Lifetime, ListFilter, LogOptions, Progress, Provider as _, ProviderError, SandboxSpec, SandboxState,
};
use gloveport_provider_modal::{Modal, ModalOptions};
use http::Method;

use crate::support::{Place, create, end, kept, session, spec, within};

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
    assert!(made.headers.is_empty() && made.url.as_ref().unwrap().starts_with("http://127.0.0.1:"), "{made:?}");
    for found in [
        other.find(&made.id).await.unwrap().unwrap(),
        other.find_session(&session("s")).await.unwrap().unwrap(),
        other.list(&ListFilter::default()).await.unwrap().remove(0),
        other.list(&ListFilter { labels: wanted.labels.clone(), ended: false }).await.unwrap().remove(0),
    ] {
        assert_eq!(found.session_key, Some(Secret::new("key-of-the-caller")));
        assert_eq!((&found.id, &found.url, &found.labels), (&made.id, &made.url, &wanted.labels));
        assert_eq!((found.created, &found.workspace, &found.state), (made.created, &made.workspace, &made.state));
    }
    let no_team = [("team".to_owned(), "b".to_owned())].into();
    assert!(other.list(&ListFilter { labels: no_team, ended: true }).await.unwrap().is_empty());
    assert!(other.delete(&made.id).await.unwrap() && !one.delete(&made.id).await.unwrap());
    assert!(one.find(&made.id).await.unwrap().is_none() && place.service.ids().is_empty());
}

async fn log_of(backend: &Modal, id: &gloveport_provider::SandboxId, options: LogOptions) -> String {
    let pieces: Vec<_> = within(backend.logs(id, options).await.unwrap().collect::<Vec<_>>()).await;
    let bytes: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.unwrap().to_vec()).collect();
    String::from_utf8(bytes).unwrap()
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
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.removed[0].reason, "it has ended");
    assert!(place.service.ids().is_empty());
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
async fn of_many_that_are_made_for_a_session_at_once_one_stays() {
    let place = Place::new().await;
    let backends: Vec<Modal> = (0..4).map(|_| place.backend()).collect();
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
    let no_key = Modal::new(ModalOptions { token_secret: None, ..place.options() });
    let error = create(&no_key, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("no key is set"), "{error}");
    let check = &no_key.check().await[0];
    assert!(!check.works && check.remedy.as_ref().unwrap().contains("MODAL_TOKEN_ID"), "{check:?}");
    let no_program = Modal::new(ModalOptions { program: "/nonexistent/program".into(), ..place.options() });
    let error = create(&no_program, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("cannot read the program for sandboxes, /nonexistent/program"), "{error}");
    assert!(place.service.ids().is_empty());
    let checks = place.backend().check().await;
    assert!(checks.iter().all(|check| check.works), "{checks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_stored_once_for_all_sandboxes_and_no_secret_is_where_others_can_read_it() {
    let place = Place::new().await;
    let backend = place.backend();
    let secrets = [("S".to_owned(), Secret::new("hunter2"))].into();
    let environment = [("A".to_owned(), "two words".to_owned())].into();
    let made = create(&backend, &SandboxSpec { secrets, environment, ..spec("s") }).await.unwrap();
    let told = PathBuf::from(made.workspace.as_ref().unwrap()).join("secrets");
    assert_eq!(fs::read_to_string(&told).unwrap(), "{\"secrets\":{\"S\":\"hunter2\"}}\n");
    create(&place.backend(), &spec("t")).await.unwrap();
    assert_eq!(place.service.world().face.files().len(), 1);
    let key = made.session_key.clone().unwrap();
    for mut seen in place.service.seen() {
        // What the service tells nobody again.
        if let Some(wish) = seen.body.pointer_mut("/messages/0/6") {
            wish.take();
        }
        let body = seen.body.to_string();
        assert!(!body.contains("hunter2") && !body.contains(key.expose()), "{}", seen.path);
        assert!(!seen.path.contains("hunter2"));
    }
    let log = log_of(&backend, &made.id, LogOptions::default()).await;
    assert!(log.contains("key=set input= A=two words") && !log.contains("hunter2"), "{log}");
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
    let tail = |lines| LogOptions { follow: false, tail: Some(lines) };
    assert_eq!(log_of(&backend, &made.id, tail(0)).await, "");
    assert!(log_of(&backend, &made.id, tail(1)).await.starts_with("port="));
    let whole = log_of(&backend, &made.id, tail(usize::MAX)).await;
    assert!(whole.starts_with("started with: container-server --port "), "{whole}");
    let mut followed = backend.logs(&made.id, LogOptions { follow: true, tail: Some(1) }).await.unwrap();
    assert!(within(followed.next()).await.unwrap().unwrap().starts_with(b"port="));
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
    let left = |sandbox: &gloveport_provider::Sandbox| {
        sandbox.expires.unwrap().duration_since(std::time::SystemTime::now()).unwrap().as_secs()
    };
    assert!((500..=600).contains(&left(&short)) && (3500..=3600).contains(&left(&long)));
    place.service.advance(Duration::from_secs(670));
    let ended = backend.find(&short.id).await.unwrap().unwrap();
    assert_eq!(ended.state, SandboxState::Stopped("its time is over".to_owned()));
    assert_eq!(backend.find(&long.id).await.unwrap().unwrap().state, SandboxState::Running);
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
    let workspace = PathBuf::from(origin.workspace.as_ref().unwrap());
    let fork = backend.fork(&origin.id, &session("Fork.1"), &Progress::silent()).await.unwrap();
    assert_eq!((&fork.workspace, fork.lifetime), (&origin.workspace, Lifetime::Kept));
    assert!(fork.session_key.is_some() && fork.session_key != origin.session_key);
    assert_eq!(fs::read_to_string(workspace.join("starts")).unwrap(), "start\nstart\n");
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
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let hear = std::sync::Arc::clone(&heard);
    let progress = Progress::to(std::sync::Arc::new(move |report: &gloveport_provider::PhaseReport<'_>| {
        hear.lock().unwrap().push(report.detail.to_owned());
    }));
    for name in ["a", "b"] {
        let image = Some("python:3.13".to_owned());
        backend.create(&SandboxSpec { image, ..spec(name) }, &progress).await.unwrap();
    }
    assert_eq!(place.service.world().face.images(), ["FROM python:3.13"]);
    let steps = heard.lock().unwrap().iter().filter(|detail| detail.contains("FROM python:3.13")).count();
    assert_eq!(steps, 1);
    for (image, expected) in [
        ("nobody/x", "the registry has no such image"),
        ("image:im-none", "Name another one"),
        ("no image", "is no image of a registry"),
    ] {
        let error = create(&backend, &SandboxSpec { image: Some(image.to_owned()), ..spec("c") }).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
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
    assert_eq!(backend.find(&made.id).await.unwrap().unwrap().state, SandboxState::Running);
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
    assert!(backend.find(&made.id).await.unwrap().is_none() && !backend.delete(&made.id).await.unwrap());
    let error = create(&backend, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("is not one of gloveport"), "{error}");
    assert_eq!(place.service.ids(), [made.id.to_string()]);
}

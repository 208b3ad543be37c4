//! Sandboxes are made, found, rest, go on and end.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt as _;
use gloveport_protocol::Secret;
use gloveport_provider::{
    GcOptions, Lifetime, ListFilter, LogOptions, Progress, Provider as _, ProviderError, SandboxId, SandboxSpec,
    SandboxState,
};
use gloveport_provider_daytona::{Daytona, DaytonaOptions};
use gloveport_testing::{until, within};
use http::Method;

use crate::support::{Place, create, end, kept, running, session, spec};

const TOKEN: &str = "x-daytona-preview-token";

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_made_found_by_another_backend_and_deleted() {
    let place = Place::new().await;
    let (one, other) = (place.backend(), place.backend());
    let wanted = SandboxSpec {
        labels: [("team".to_owned(), "a b&c=d\"".to_owned())].into(),
        session_key: Some(Secret::new("key-of-the-caller")),
        ..spec("s")
    };
    let made = create(&one, &wanted).await.unwrap();
    let made = running(&one, &made).await;
    assert_eq!((made.lifetime, made.session_id.as_str()), (Lifetime::Backend, "s"));
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
    assert!(other.find_session(&session("t")).await.unwrap().is_none());
    assert!(other.delete(&made.id).await.unwrap() && !one.delete(&made.id).await.unwrap());
    assert!(one.find(&made.id).await.unwrap().is_none() && place.service.ids().is_empty());
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
    assert!(other.find(&made.id).await.unwrap().is_none() && !other.delete(&made.id).await.unwrap());
    assert!(other.find_session(&session("s")).await.unwrap().is_none());
    for refused in
        [other.pause(&made.id).await, other.resume(&made.id).await, other.snapshot(&made.id, "x").await.map(drop)]
    {
        assert!(matches!(refused, Err(ProviderError::NotFound(_))), "{refused:?}");
    }
    assert_eq!(place.service.ids(), [made.id.to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_uploaded_once_and_secrets_are_nowhere_but_in_the_server() {
    let place = Place::new().await;
    let backend = place.backend();
    let secrets = [("S".to_owned(), Secret::new("hunter2"))].into();
    let environment = [("A".to_owned(), "it's two words".to_owned())].into();
    let made = create(&backend, &SandboxSpec { secrets, environment, ..spec("s") }).await.unwrap();
    let told = PathBuf::from(made.workspace.as_ref().unwrap()).join("secrets");
    until("the secrets of the server", || {
        fs::read_to_string(&told).is_ok_and(|line| line == "{\"secrets\":{\"S\":\"hunter2\"}}\n")
    })
    .await;
    create(&backend, &spec("t")).await.unwrap();
    let seen = place.service.seen();
    let uploads = seen.iter().filter(|seen| seen.path.contains("upload-v2") && seen.path.contains("program.new"));
    assert_eq!(uploads.count(), 1);
    // It is in no label, no command and no variable that the service is told, and in no file that stays.
    let shown: Vec<&str> =
        seen.iter().filter(|seen| format!("{seen:?}").contains("hunter2")).map(|seen| seen.path.as_str()).collect();
    assert_eq!(shown, Vec::<&str>::new());
    let directory = told.parent().unwrap().parent().unwrap();
    for name in ["sealed", "log", "pid"] {
        assert!(!fs::read_to_string(directory.join(name)).unwrap_or_default().contains("hunter2"), "{name}");
    }
    assert!(
        directory.join("sealed").exists() && !directory.join("start").exists() && !directory.join("started").exists()
    );
    let log = log_of(&backend, &made.id, LogOptions::default()).await;
    assert!(log.contains("key=set A=it's two words") && !log.contains("hunter2"), "{log}");
    backend.close().await;
    assert!(place.service.ids().is_empty());
}

async fn log_of(backend: &Daytona, id: &SandboxId, options: LogOptions) -> String {
    let pieces: Vec<_> = within(backend.logs(id, options).await.unwrap().collect::<Vec<_>>()).await;
    let bytes: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.unwrap().to_vec()).collect();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_from_its_end_and_followed_until_the_sandbox_is_gone() {
    let place = Place::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    let file = Path::new(made.workspace.as_deref().unwrap()).parent().unwrap().join("log");
    until("the log of the server", || fs::read_to_string(&file).is_ok_and(|log| log.lines().count() == 2)).await;
    let tail = |lines| LogOptions { follow: false, tail: Some(lines) };
    assert_eq!(log_of(&backend, &made.id, tail(0)).await, "");
    assert!(log_of(&backend, &made.id, tail(1)).await.starts_with("port="));
    let whole = log_of(&backend, &made.id, tail(usize::MAX)).await;
    assert!(whole.starts_with("started with: container-server --port "), "{whole}");
    let mut followed = backend.logs(&made.id, LogOptions { follow: true, tail: Some(1) }).await.unwrap();
    assert!(within(followed.next()).await.unwrap().unwrap().starts_with(b"port="));
    let mut log = fs::OpenOptions::new().append(true).open(&file).unwrap();
    std::io::Write::write_all(&mut log, "more \u{fc}\n".as_bytes()).unwrap();
    assert_eq!(within(followed.next()).await.unwrap().unwrap(), "more \u{fc}\n".as_bytes());
    backend.delete(&made.id).await.unwrap();
    assert!(within(followed.next()).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_server_is_told_with_its_reason_and_its_session_may_have_another_one() {
    let place = Place::new().await;
    let backend = place.backend();
    for (code, word, reason) in
        [("80", "stopped", "its time is over"), ("81", "stopped", "nobody used it"), ("7", "failed", "code 7")]
    {
        let made = create(&backend, &spec("s")).await.unwrap();
        let found = end(&backend, &made, code).await;
        assert!(found.state.word() == word && found.state.reason().contains(reason), "{:?}", found.state);
        assert!(backend.list(&ListFilter::default()).await.unwrap().is_empty());
        assert_eq!(backend.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap().len(), 1);
    }
    assert_eq!(place.service.ids().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_rests_gets_its_server_again_with_its_secrets_and_another_token() {
    let place = Place::new().await;
    let (one, other) = (place.backend(), place.backend());
    let secrets = [("S".to_owned(), Secret::new("hunter2"))].into();
    let environment = [("A".to_owned(), "b".to_owned())].into();
    for (name, keep_alive) in [("kept", true), ("own", false)] {
        let wanted = SandboxSpec {
            secrets: Clone::clone(&secrets),
            environment: Clone::clone(&environment),
            keep_alive,
            ..spec(name)
        };
        let made = create(&one, &wanted).await.unwrap();
        let made = running(&one, &made).await;
        one.pause(&made.id).await.unwrap();
        one.pause(&made.id).await.unwrap();
        let resting = other.find(&made.id).await.unwrap().unwrap();
        assert_eq!((&resting.state, &resting.session_key), (&SandboxState::Paused, &made.session_key));
        let told = PathBuf::from(made.workspace.as_ref().unwrap()).join("secrets");
        fs::remove_file(&told).unwrap();
        // Somebody else knows no secrets but the key of the service.
        other.resume(&made.id).await.unwrap();
        other.resume(&made.id).await.unwrap();
        until("the secrets of the server", || fs::read_to_string(&told).is_ok_and(|line| line.contains("hunter2")))
            .await;
        for backend in [&one, &other] {
            let awake = running(backend, &made).await;
            assert_eq!((&awake.url, &awake.session_key), (&made.url, &made.session_key));
            assert_ne!(awake.headers[TOKEN], made.headers[TOKEN]);
        }
        let log = log_of(&one, &made.id, LogOptions::default()).await;
        assert_eq!(log.matches("key=set A=b").count(), 2, "{log}");
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
    let backend = Daytona::new(DaytonaOptions { time_limit: Duration::from_secs(3), ..place.options() });
    // The service has whole minutes, and so does this: shorter ones only make the keeper quick.
    let (own, stays) = (create(&backend, &spec("own")).await.unwrap(), create(&backend, &kept("kept")).await.unwrap());
    backend.hold(&stays.id).await.unwrap();
    place.service.seen();
    until("the service to hear of both", || {
        let seen = place.service.world();
        drop(seen);
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
    assert!(other.find(&own_2.id).await.unwrap().is_none());
    assert_eq!(other.find(&kept_2.id).await.unwrap().unwrap().state, SandboxState::Paused);
    // Minutes of the service that are none never end.
    assert!(other.find(&own.id).await.unwrap().is_some());
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
    assert_eq!(place.snapshots(), ["gloveport-fork-Fork.1"]);
    assert!(backend.collect_garbage(&GcOptions::default()).await.unwrap().removed.is_empty());
    assert!(backend.delete(&fork.id).await.unwrap() && place.snapshots().is_empty());

    // One that somebody deleted elsewhere leaves a snapshot, which is garbage.
    let fork = backend.fork(&origin.id, &session("fork-2"), &Progress::silent()).await.unwrap();
    place.service.delete(fork.id.as_str());
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.removed[0].path.as_deref(), Some(Path::new("gloveport-fork-fork-2")));
    assert!(place.snapshots().is_empty());

    // And one that is asked for stays.
    let image = backend.snapshot(&origin.id, "mine").await.unwrap();
    assert!(backend.collect_garbage(&GcOptions::default()).await.unwrap().removed.is_empty());
    create(&backend, &SandboxSpec { image: Some(image), ..spec("of-snapshot") }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_are_made_for_a_session_at_once_one_stays() {
    let place = Place::new().await;
    let backends: Vec<Daytona> = (0..4).map(|_| place.backend()).collect();
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
async fn long_lists_are_read_to_their_last_page_and_show_what_was_just_made() {
    let place = Place::new().await;
    place.service.set_page(2);
    let backend = place.backend();
    for number in 0..5 {
        create(&backend, &spec(&format!("s{number}"))).await.unwrap();
    }
    place.service.world().face.be_late();
    let late = create(&backend, &spec("s5")).await.unwrap();
    let listed = backend.list(&ListFilter::default()).await.unwrap();
    let sessions: Vec<&str> = listed.iter().map(|sandbox| sandbox.session_id.as_str()).collect();
    assert_eq!(sessions, ["s0", "s1", "s2", "s3", "s4", "s5"]);
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
    let late = Daytona::new(DaytonaOptions { start_within: Duration::from_millis(100), ..place.options() });
    let error = create(&late, &spec("late")).await.unwrap_err();
    assert!(matches!(error, ProviderError::Timeout { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_on_this_side_is_told_before_or_without_a_sandbox() {
    let place = Place::new().await;
    let no_key = Daytona::new(DaytonaOptions { key: None, ..place.options() });
    let error = create(&no_key, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("no key is set; set DAYTONA_API_KEY"), "{error}");
    let check = &no_key.check().await[0];
    assert!(!check.works && check.remedy.as_ref().unwrap().contains("DAYTONA_API_KEY"), "{check:?}");
    let no_program = Daytona::new(DaytonaOptions { program: "/nonexistent/program".into(), ..place.options() });
    let error = create(&no_program, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("cannot read the program for sandboxes, /nonexistent/program"), "{error}");
    until("the end of the sandbox", || place.service.ids().is_empty()).await;
    let checks = place.backend().check().await;
    assert!(checks.iter().all(|check| check.works), "{checks:?}");
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

//! What sandboxes do is recorded by their gates, on a real engine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt as _;
use gloveport_audit::{Event, Reader, Text};
use gloveport_protocol::{Observation, Secret};
use gloveport_provider::{
    GcOptions, NetworkChange, NetworkPolicy, Progress, Provider, ProviderError, SandboxSpec, SandboxState, SessionId,
};

use crate::{
    docker::{BUSYBOX, DEBIAN, Place, USER, alive, refused, run, start, try_run, until, write},
    network::{Other, ask, only},
};

const VALUE: &str = "hunter2hunter2";

/// Sends the lines that standard input has to a recorder, and prints what it says.
const TELL: &str = r#"$s = IO::Socket::INET->new(PeerAddr => $ARGV[0], Timeout => 5) or die "no recorder: $@";
$SIG{PIPE} = "IGNORE"; $s->autoflush(1); while (<STDIN>) { print $s $_; $a = <$s>; last unless defined $a; print $a }"#;

fn audited(place: &Place, name: &str, file: &Path) -> SandboxSpec {
    SandboxSpec { network: NetworkPolicy::None, audit: Some(file.to_owned()), ..place.spec(name, DEBIAN) }
}

/// The events of a whole log, and of nothing but this session.
fn recorded(log: &Path, session: &SessionId) -> Vec<Event> {
    let records = Reader::open(log).unwrap().map(|record| record.unwrap_or_else(|error| panic!("{error}")));
    records
        .map(|record| {
            assert_eq!(record.session, session.as_str());
            record.event
        })
        .collect()
}

/// The same of a sandbox that runs.
async fn recorded_by(backend: &dyn Provider, session: &SessionId) -> Vec<Event> {
    let mut pieces = backend.audit_log(session).await.unwrap();
    let (directory, mut text) = (tempfile::tempdir().unwrap(), Vec::new());
    while let Some(piece) = pieces.next().await {
        text.extend_from_slice(&piece.unwrap());
    }
    let file = directory.path().join("log");
    fs::write(&file, text).unwrap();
    recorded(&file, session)
}

fn commands(events: &[Event]) -> Vec<&str> {
    let texts = events.iter().map(|event| match event {
        Event::Command { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.flatten().collect()
}

/// The volume with the log of a session.
fn volume(place: &Place, session: &SessionId) -> String {
    let part = format!("{session}-audit-");
    let names = place.engine.docker(["volume", "ls", "--format", "{{.Name}}"]);
    names.lines().find(|name| name.contains(&part)).unwrap().to_owned()
}

#[tokio::test]
async fn what_a_container_does_is_recorded_by_its_gate_and_is_in_the_file_when_it_has_ended() {
    let place = Place::new();
    let backend = place.backend();
    let file = place.directory("logs").join("audit.jsonl");
    let other = Other::start(&place, 9011);
    let host = format!("{}:9011", other.address);
    let secrets = [("TOKEN".to_owned(), Secret::new(VALUE))].into();
    let spec = SandboxSpec { network: only(&["a.test"]), secrets, ..audited(&place, "recorded", &file) };
    let session = &spec.session_id;
    let sandbox = start(&*backend, &spec).await;
    assert_eq!(sandbox.labels.get("gloveport.audit"), Some(&file.display().to_string()));
    run(&sandbox, &format!("echo {VALUE} | wc -c; (exit 3)")).await;
    assert!(matches!(write(&sandbox, "/workspace/written", "words").await, Observation::Write(_)));
    assert!(run(&sandbox, &ask(&host)).await.contains("may not reach"));
    let change = NetworkChange { allow: vec![host.clone()], deny: Vec::new() };
    backend.network(&sandbox.id, &change).await.unwrap();
    assert_eq!(run(&sandbox, &ask(&host)).await, "200 other");

    // Another backend reads the same, and the sandbox has nothing of it.
    let second = place.backend();
    let events = recorded_by(&*second, session).await;
    let all = format!("{events:?}");
    assert!(matches!(&events[0], Event::Started { network, .. } if *network == ["a.test"]), "{all}");
    let masked = Text::new("echo <secret TOKEN> | wc -c; (exit 3)");
    let number = events.iter().find_map(|event| match event {
        Event::Command { command, text } if *text == masked => Some(*command),
        _ => None,
    });
    for event in [
        Event::CommandEnded { command: number.unwrap(), status: 3 },
        Event::Wrote { path: Text::new("/workspace/written"), bytes: 6 },
        Event::Connection { target: host.clone(), allowed: false },
        Event::Network { allow: vec![host.clone()], deny: Vec::new() },
        Event::Connection { target: host.clone(), allowed: true },
    ] {
        assert!(events.contains(&event), "{event:?} {all}");
    }
    assert!(!all.contains(VALUE) && events.iter().any(|event| matches!(event, Event::Program { .. })), "{all}");
    assert_eq!(run(&sandbox, "ls -A /.gloveport/audit 2>&1 | grep -c log").await, "0");
    let shown = place.engine.docker(["inspect", sandbox.id.as_str(), &format!("{}-gate", sandbox.id)]);
    assert!(shown.contains("--recorder-key") && !shown.contains(VALUE), "{shown}");
    assert!(!file.exists());
    second.close().await;

    let error = backend.fork(&sandbox.id, &place.session("fork"), &Progress::silent()).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Unsupported { what, .. } if what.contains("snapshot")), "{error}");
    assert!(backend.delete(&sandbox.id).await.unwrap());
    let at_end = recorded(&file, session);
    assert_eq!(at_end[..events.len()], events);
    assert!(matches!(at_end.last().unwrap(), Event::Ended { .. }), "{at_end:?}");
    assert!(matches!(backend.audit_log(session).await, Err(ProviderError::NotFound(_))));
    backend.close().await;
    drop(other);
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_sandbox_that_attacks_its_recorder_changes_and_loses_nothing_and_does_nothing_unrecorded() {
    let place = Place::new();
    let backend = place.backend();
    let file = place.directory("logs").join("audit.jsonl");
    // A kept one has the key in a file, for a later start of its server.
    let spec = SandboxSpec { keep_alive: true, ..audited(&place, "attack", &file) };
    let sandbox = start(&*backend, &spec).await;
    let input = "/.gloveport/state/input.json";
    let address = run(&sandbox, &format!("grep -o '10[.]213[.][0-9.:]*' {input}")).await;
    let tell = |lines: &str| format!("printf '{lines}' | timeout 20 perl -MIO::Socket -e '{TELL}' {address}");
    let before = recorded_by(&*backend, &spec.session_id).await;

    // Who does not know the key, and who does while the server records.
    let forged = r#"{"event":"ended","reason":"forged"}"#;
    assert_eq!(run(&sandbox, &tell("rubbish\\n")).await, "");
    assert_eq!(run(&sandbox, &tell(&format!("{forged}\\n{forged}\\n"))).await, "");
    let key = run(&sandbox, &format!("grep -o '\"key\":\"[0-9a-f]*' {input} | cut -d '\"' -f 4")).await;
    assert!(key.len() >= 32, "{key}");
    let told = run(&sandbox, &tell(&format!("{key}\\n{forged}\\n"))).await;
    assert!(told.contains("connected already") && !told.contains("kept"), "{told}");
    // Lines without an end, and more connections than anybody serves.
    let endless = format!(
        "timeout 20 perl -MIO::Socket -e '$SIG{{PIPE}} = \"IGNORE\"; $s = IO::Socket::INET->new(PeerAddr => $ARGV[0]); \
         $l = \"x\" x 1048576; for (1..1024) {{ print $s $l or last }} print \"done\"' {address}"
    );
    assert_eq!(run(&sandbox, &endless).await, "done");
    let many = format!(
        "ulimit -n 20000; timeout 30 perl -MIO::Socket -e '$| = 1; for (1..10000) {{ push @s, \
         IO::Socket::INET->new(PeerAddr => $ARGV[0], Timeout => 2) || (); print \".\" unless $_ % 500 }} \
         print \"opened\"' {address}"
    );
    // A slow machine does not get to the end of them.
    let told = run(&sandbox, &many).await;
    assert!(told.starts_with(".."), "{told}");
    assert_eq!(run(&sandbox, "echo recorded").await, "recorded");
    let events = recorded_by(&*backend, &spec.session_id).await;
    assert_eq!(events[..before.len()], before);
    assert!(commands(&events).contains(&"echo recorded") && !events.contains(&serde_json::from_str(forged).unwrap()));

    // Who ends the server ends the sandbox with it.
    let _cut_off = try_run(
        &sandbox,
        "kill -9 $(grep -l container-server /proc/[0-9]*/cmdline | cut -d / -f 3 | grep -vx 1 | sort -n)",
    )
    .await;
    until("it has ended", || {
        place.engine.docker(["ps", "--format", "{{.Names}}"]).lines().all(|it| it != sandbox.id.as_str())
    })
    .await;
    backend.delete(&sandbox.id).await.unwrap();
    let at_end = recorded(&file, &spec.session_id);
    assert_eq!(at_end[..events.len()], events);
    assert!(commands(&at_end).last().unwrap().starts_with("kill -9"), "{at_end:?}");
    backend.close().await;
    place.assert_nothing_left();
}

/// Has the server of a sandbox run a command, from beside it: its ports are those of a gate that may be gone.
fn run_inside(place: &Place, container: &str, key: &str, command: &str) {
    let body = format!(r#"{{"action":{{"action":"run","args":{{"command":"{command}"}}}}}}"#);
    let ask = r#"$s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:60000") or die; print $s "POST /execute_action HTTP/1.1\r\nhost: x\r\nX-Session-API-Key: $ARGV[0]\r\ncontent-type: application/json\r\ncontent-length: " . length($ARGV[1]) . "\r\nconnection: close\r\n\r\n$ARGV[1]"; print while <$s>"#;
    let arguments = ["exec", container, "timeout", "50", "perl", "-MIO::Socket", "-e", ask, key, &body];
    // Its answer may be cut off.
    let _answered = place.engine.try_docker(arguments);
}

/// Has a sandbox whose log is spoilt do something, which it does not. Its log, as far as there is one.
async fn ends(place: &Place, backend: &dyn Provider, name: &str, spoil: impl Fn(&SessionId)) -> PathBuf {
    let file = place.path().join(name);
    let spec = SandboxSpec { keep_alive: true, ..audited(place, name, &file) };
    let sandbox = start(backend, &spec).await;
    run(&sandbox, "echo recorded").await;
    spoil(&spec.session_id);
    let key = sandbox.session_key.clone().unwrap();
    run_inside(place, sandbox.id.as_str(), key.expose(), "touch /workspace/unrecorded");
    assert_eq!(place.engine.docker(["wait", sandbox.id.as_str()]), "83");
    let log = place.engine.command(["logs", sandbox.id.as_str()]).output().unwrap();
    let log = String::from_utf8_lossy(&[log.stdout, log.stderr].concat()).into_owned();
    assert!(log.contains("cannot be recorded, so the sandbox ends"), "{log}");
    let state = backend.find(&sandbox.id).await.unwrap().unwrap().state;
    assert!(matches!(&state, SandboxState::Failed(reason) if reason.contains("recorded")), "{state:?}");
    let changed = place.engine.docker(["diff", sandbox.id.as_str()]);
    assert!(changed.contains("/workspace") && !changed.contains("/workspace/unrecorded"), "{changed}");
    backend.delete(&sandbox.id).await.unwrap();
    file
}

#[tokio::test]
async fn a_container_does_no_more_when_nothing_can_be_recorded() {
    let place = Place::new();
    let backend = place.backend();
    let gone = |session: &SessionId| {
        place.engine.docker(["kill", &format!("openhands-runtime-{session}-gate")]);
    };
    let file = ends(&place, &*backend, "gone", gone).await;
    let events = recorded(&file, &place.session("gone"));
    assert!(commands(&events).contains(&"echo recorded"), "{events:?}");
    // What somebody else has done to the log is seen before anything is added.
    let broken = |session: &SessionId| {
        let bind = format!("{}:/log", volume(&place, session));
        place.engine.docker(["run", "--rm", "--volume", &bind, BUSYBOX, "sh", "-c", "printf x >> /log/log"]);
    };
    let file = ends(&place, &*backend, "broken", broken).await;
    assert!(Reader::open(&file).unwrap().last().unwrap().is_err());
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_log_goes_on_when_its_sandbox_or_its_gate_is_started_again() {
    let place = Place::new();
    let backend = place.backend();
    let file = place.directory("logs").join("audit.jsonl");
    let spec = SandboxSpec { keep_alive: true, ..audited(&place, "again", &file) };
    let sandbox = start(&*backend, &spec).await;
    run(&sandbox, "echo one").await;
    backend.pause(&sandbox.id).await.unwrap();
    backend.resume(&sandbox.id).await.unwrap();
    run(&sandbox, "echo two").await;
    let gate = format!("{}-gate", sandbox.id);
    place.engine.docker(["kill", &gate]);
    backend.resume(&sandbox.id).await.unwrap();
    let again = alive(&*backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await;
    run(&again, "echo three").await;
    // Whichever ends first, it is no failure.
    place.engine.docker(["stop", "--time", "9", sandbox.id.as_str(), &gate]);
    assert_eq!(backend.find(&sandbox.id).await.unwrap().unwrap().state, SandboxState::Paused);
    backend.resume(&sandbox.id).await.unwrap();
    let again = alive(&*backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await;
    run(&again, "echo four").await;
    backend.delete(&sandbox.id).await.unwrap();
    let events = recorded(&file, &spec.session_id);
    let said: Vec<_> = commands(&events).into_iter().filter(|text| text.starts_with("echo")).collect();
    assert_eq!(said, ["echo one", "echo two", "echo three", "echo four"], "{events:?}");
    let starts = events.iter().filter(|event| matches!(event, Event::Started { .. })).count();
    assert_eq!(starts, 2, "{events:?}");
    assert!(matches!(events.last().unwrap(), Event::Ended { .. }), "{events:?}");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn what_a_kept_container_does_is_recorded_whoever_its_server_works_as() {
    let place = Place::new();
    let backend = place.backend();
    let file = place.directory("logs").join("audit.jsonl");
    let spec = SandboxSpec { keep_alive: true, image: Some(USER.to_owned()), ..audited(&place, "user", &file) };
    let sandbox = start(&*backend, &spec).await;
    assert_eq!(run(&sandbox, "id -u").await, "1234");
    // Its server finds what it was told when it is started again.
    place.engine.docker(["stop", "--time", "9", sandbox.id.as_str()]);
    backend.resume(&sandbox.id).await.unwrap();
    let again = alive(&*backend, backend.find(&sandbox.id).await.unwrap().unwrap()).await;
    assert_eq!(run(&again, "echo again").await, "again");
    backend.delete(&sandbox.id).await.unwrap();
    let events = recorded(&file, &spec.session_id);
    assert!(["id -u", "echo again"].iter().all(|text| commands(&events).contains(text)), "{events:?}");
    backend.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_log_that_cannot_be_given_to_its_file_is_kept_and_named() {
    let place = Place::new();
    let backend = place.backend();
    let logs = place.directory("logs");
    let file: PathBuf = logs.join("audit.jsonl");
    let spec = audited(&place, "kept", &file);
    let sandbox = start(&*backend, &spec).await;
    run(&sandbox, "echo recorded").await;
    fs::write(&file, "of somebody else").unwrap();
    let volume = volume(&place, &spec.session_id);
    let error = backend.delete(&sandbox.id).await.unwrap_err().to_string();
    for part in [&volume, "something else is there", "gloveport session audit", "gloveport session gc"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "of somebody else");
    assert!(backend.find(&sandbox.id).await.unwrap().is_none());
    let events = recorded_by(&*backend, &spec.session_id).await;
    assert!(commands(&events).contains(&"echo recorded"), "{events:?}");
    backend.close().await;

    // Who removes garbage tries once more, and then nothing is left.
    let next = place.backend();
    let report = next.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(report.failed.iter().any(|failed| failed.contains(&volume)), "{report:?}");
    fs::remove_file(&file).unwrap();
    let report = next.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(!report.failed.iter().any(|failed| failed.contains(&volume)), "{report:?}");
    assert_eq!(recorded(&file, &spec.session_id), events);
    next.close().await;
    place.assert_nothing_left();
}

#[tokio::test]
async fn a_log_is_refused_where_nobody_would_keep_it() {
    let place = Place::new();
    let backend = place.backend();
    let file = place.directory("logs").join("audit.jsonl");
    let spec = audited(&place, "refused", &file);
    for (spec, part) in [
        (SandboxSpec { network: NetworkPolicy::Full, ..spec.clone() }, "--network HOSTS"),
        (
            SandboxSpec { command: Some(vec!["sleep".to_owned(), "9".to_owned()]), ..spec.clone() },
            "a server of your own",
        ),
        (SandboxSpec { audit: Some(place.path().join("none/log")), ..spec.clone() }, "cannot be entered"),
    ] {
        let error = refused(&*backend, &spec, Duration::from_secs(5)).await;
        assert!(matches!(&error, ProviderError::Spec { field, .. } if field == "audit"), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let open = start(&*backend, &place.spec("open", DEBIAN)).await;
    let error = backend.audit_log(&open.session_id).await.err().unwrap();
    assert!(matches!(&error, ProviderError::Unsupported { what, .. } if what.contains("--audit FILE")), "{error}");
    backend.close().await;
    place.assert_nothing_left();
}

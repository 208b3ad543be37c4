//! Sandboxes are made, found, listed and copied.

use std::path::Path;

use futures_util::future::join_all;
use gloveport_protocol::Secret;
use gloveport_provider::{
    GcOptions, Lifetime, ListFilter, Progress, Provider, ProviderError, Sandbox, SandboxId, SandboxSpec, SandboxState,
};
use gloveport_stand_ins::Seen;
use gloveport_testing::until;

use crate::{
    Hosted, Place, Service as _,
    steps::{Act, create, kept, running, session, spec, was_told_the_secret, with_secret},
};

/// A sandbox is made, found by another backend with all that belongs to it, and deleted. `check` looks at what is made.
pub async fn made_found_and_deleted<H: Hosted>(check: impl FnOnce(&Sandbox)) {
    let place = Place::<H>::new().await;
    let (one, other) = (place.backend(), place.backend());
    let wanted = SandboxSpec {
        labels: [("team".to_owned(), "a b&c=d\"".to_owned())].into(),
        session_key: Some(Secret::new("key-of-the-caller")),
        ..spec("s")
    };
    let mut made = create(&one, &wanted).await.unwrap();
    if H::AT_ONCE {
        assert_eq!(made.state, SandboxState::Running);
    } else {
        made = running(&one, &made).await;
    }
    assert_eq!((made.lifetime, made.session_id.as_str()), (Lifetime::Backend, "s"));
    check(&made);
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

/// Makes a sandbox with the secret, whose server is told it, and another one by the other backend. Gives the former and all
/// requests.
pub async fn secret_is_told<H: Hosted>(
    place: &Place<H>,
    backend: &H::Backend,
    other: &H::Backend,
) -> (Sandbox, Vec<Seen>) {
    let made = create(backend, &with_secret(spec("s"))).await.unwrap();
    if H::TOLD_AT_ONCE {
        assert!(was_told_the_secret(&made));
    } else {
        until("the secrets of the server", || was_told_the_secret(&made)).await;
    }
    create(other, &spec("t")).await.unwrap();
    (made, place.service.seen())
}

/// A sandbox of somebody else is not found, not deleted, and stays as it is where these acts are tried.
pub async fn is_not_touched<H: Hosted>(place: &Place<H>, backend: &H::Backend, id: &SandboxId, acts: &[Act]) {
    assert!(backend.find(id).await.unwrap().is_none() && !backend.delete(id).await.unwrap());
    for act in acts {
        act.finds_nothing(backend, id).await;
    }
    assert_eq!(place.service.ids(), [id.to_string()]);
}

/// Of many sandboxes that are made for a session at once one stays, and all who made one know which.
pub async fn one_of_many_stays<H: Hosted>() {
    let place = Place::<H>::new().await;
    let backends: Vec<H::Backend> = (0..4).map(|_| place.backend()).collect();
    let wanted = spec("s");
    let made = join_all(backends.iter().map(|backend| create(backend, &wanted))).await;
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

/// Lists of several pages are read to their last one. Gives the service, and the backend that has made `s0` to `s4`.
pub async fn all_pages_are_read<H: Hosted>() -> (Place<H>, H::Backend) {
    let place = Place::<H>::new().await;
    place.service.set_page(2);
    let backend = place.backend();
    for number in 0..5 {
        create(&backend, &spec(&format!("s{number}"))).await.unwrap();
    }
    assert_eq!(listed(&backend).await, ["s0", "s1", "s2", "s3", "s4"]);
    (place, backend)
}

/// Sessions of the sandboxes that are listed, in their order.
pub async fn listed(backend: &impl Provider) -> Vec<String> {
    let listed = backend.list(&ListFilter::default()).await.unwrap();
    listed.into_iter().map(|sandbox| sandbox.session_id.to_string()).collect()
}

/// A fork is made as its origin was, and has a key of its own.
pub async fn fork(backend: &impl Provider, origin: &Sandbox, name: &str) -> Sandbox {
    let fork = backend.fork(&origin.id, &session(name), &Progress::silent()).await.unwrap();
    assert_eq!((&fork.workspace, fork.lifetime), (&origin.workspace, Lifetime::Kept));
    assert!(fork.session_key.is_some() && fork.session_key != origin.session_key);
    fork
}

/// A fork is made from a snapshot that ends with it; `name` is that of the snapshot for the session `Fork.1`, and `check` looks at
/// what the service was asked for that fork.
pub async fn fork_ends_with_its_snapshot<H: Hosted>(name: &str, check: impl FnOnce(&Place<H>)) {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    let snapshots = || H::snapshots(&place.service);
    let origin = create(&backend, &with_secret(kept("Origin.1"))).await.unwrap();
    std::fs::write(crate::steps::workspace(&origin).join("file"), "").unwrap();
    place.service.seen();
    let forked = fork(&backend, &origin, "Fork.1").await;
    assert_eq!(snapshots(), [name]);
    check(&place);
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert!(report.removed.is_empty(), "{report:?}");
    assert!(backend.delete(&forked.id).await.unwrap() && snapshots().is_empty());

    // One that somebody deleted elsewhere leaves a snapshot, which is garbage.
    let forked = fork(&backend, &origin, "fork-2").await;
    place.service.delete(forked.id.as_str());
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.removed[0].path.as_deref(), Some(Path::new("gloveport-fork-fork-2")));
    assert!(snapshots().is_empty());

    // And one that is asked for stays.
    let image = backend.snapshot(&origin.id, "mine").await.unwrap();
    assert!(backend.collect_garbage(&GcOptions::default()).await.unwrap().removed.is_empty());
    create(&backend, &SandboxSpec { image: Some(image.clone()), ..spec("of-snapshot") }).await.unwrap();

    // It is listed beside no other, and deleted; what forks are made through is neither.
    let forked = fork(&backend, &origin, "fork-3").await;
    let listed = backend.snapshots().await.unwrap();
    let told: Vec<_> = listed.iter().map(|it| (it.image.as_str(), it.name.as_str())).collect();
    assert_eq!(told, [(image.as_str(), "mine")]);
    for other in ["nothing", "gloveport-fork-fork-3", ""] {
        assert!(!backend.delete_snapshot(other).await.unwrap(), "{other}");
    }
    assert!(backend.delete_snapshot(&image).await.unwrap());
    assert!(!backend.delete_snapshot(&image).await.unwrap());
    assert!(backend.snapshots().await.unwrap().is_empty());
    assert_eq!(snapshots(), ["gloveport-fork-fork-3"]);
    assert!(backend.delete(&forked.id).await.unwrap());
}

/// What is missing on this side is told before or without a sandbox: a key, whose absence `told` says and whose variable is named,
/// and the program.
pub async fn what_is_missing_is_told<H: Hosted>(
    (told, variable): (&str, &str),
    no_key: impl FnOnce(&mut H::Options),
    no_program: impl FnOnce(&mut H::Options),
) {
    let place = Place::<H>::new().await;
    let no_key = place.backend_with(no_key);
    let error = create(&no_key, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains(told), "{error}");
    let check = &no_key.check().await[0];
    assert!(!check.works && check.remedy.as_ref().unwrap().contains(variable), "{check:?}");
    let no_program = place.backend_with(no_program);
    let error = create(&no_program, &spec("s")).await.unwrap_err().to_string();
    assert!(error.contains("cannot read the program for sandboxes, /nonexistent/program"), "{error}");
    if H::AT_ONCE {
        assert!(place.service.ids().is_empty());
    } else {
        until("the end of the sandbox", || place.service.ids().is_empty()).await;
    }
    let checks = place.backend().check().await;
    assert!(checks.iter().all(|check| check.works), "{checks:?}");
}

/// Images of which there can be no sandbox, each with what is said about it.
pub async fn images_are_refused(backend: &impl Provider, images: &[(&str, &str)]) {
    for (image, expected) in images {
        let wanted = SandboxSpec { image: Some((*image).to_owned()), ..spec("c") };
        let error = create(backend, &wanted).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

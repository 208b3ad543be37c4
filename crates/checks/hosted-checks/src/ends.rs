//! Sandboxes rest, go on and end, and nothing is left of them.

use std::time::Duration;

use gloveport_provider::{GcOptions, ListFilter, Provider as _, Sandbox, SandboxState};

use crate::{
    Hosted, Place, Service as _, runs,
    steps::{create, end, kept, session, spec},
};

/// The end of a server is told with its reason, its session gets a new sandbox, and what is left is garbage. The service has `left`
/// sandboxes then that it does not call ended.
pub async fn reason_is_told<H: Hosted>(left: usize) {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    for (code, word, reason) in [
        ("80", "stopped", "its time is over"),
        ("81", "stopped", "nobody used it"),
        ("3", "failed", "ended with code 3"),
    ] {
        let made = create(&backend, &spec("s")).await.unwrap();
        let ended = end(&backend, &made, code).await;
        assert!(ended.state.word() == word && ended.state.reason().contains(reason), "{ended:?}");
        assert!(backend.list(&ListFilter::default()).await.unwrap().is_empty());
        let all = ListFilter { ended: true, ..ListFilter::default() };
        assert_eq!(backend.list(&all).await.unwrap().len(), 1);
        assert_eq!(backend.find_session(&session("s")).await.unwrap().unwrap().state, ended.state);
    }
    assert_eq!(place.service.ids().len(), left);
    let report = backend.collect_garbage(&GcOptions::default()).await.unwrap();
    assert_eq!(report.removed[0].reason, "it has ended");
    assert!(place.service.ids().is_empty());
}

/// A sandbox rests, which twice is no error, and its key is known.
pub async fn rests<H: Hosted>(backend: &H::Backend, other: &H::Backend, made: &Sandbox) {
    backend.pause(&made.id).await.unwrap();
    backend.pause(&made.id).await.unwrap();
    let resting = other.find(&made.id).await.unwrap().unwrap();
    assert_eq!((&resting.state, &resting.session_key), (&SandboxState::Paused, &made.session_key));
}

/// A sandbox that rests goes on, which twice is no error, at its URL and with its key. Gives what each of the others finds.
pub async fn goes_on<H: Hosted>(backend: &H::Backend, others: [&H::Backend; 2], made: &Sandbox) -> Vec<Sandbox> {
    backend.resume(&made.id).await.unwrap();
    backend.resume(&made.id).await.unwrap();
    let mut found = Vec::new();
    for other in others {
        let awake = runs::<H>(other, made).await;
        assert_eq!((&awake.url, &awake.session_key), (&made.url, &made.session_key));
        found.push(awake);
    }
    found
}

/// What a backend holds outlives its time limit, which is three seconds. When the backend is gone and `over` lets the time go by,
/// its own sandbox ends, and one that is kept rests. Gives another backend.
pub async fn held_outlive_their_limit<H: Hosted>(
    place: &Place<H>,
    backend: H::Backend,
    [own, stays]: [&Sandbox; 2],
    over: impl FnOnce(),
) -> H::Backend {
    backend.hold(&stays.id).await.unwrap();
    // Longer than the limit.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for id in [&own.id, &stays.id] {
        assert_eq!(backend.find(id).await.unwrap().unwrap().state, SandboxState::Running);
    }
    // As if its process died: nobody is told.
    drop(backend);
    over();
    let other = place.backend();
    own_ends_and_kept_rests::<H>(&other, [own, stays]).await;
    other
}

/// Of two sandboxes that nobody holds, a backend's own has ended, and one that is kept rests.
pub async fn own_ends_and_kept_rests<H: Hosted>(backend: &H::Backend, [own, stays]: [&Sandbox; 2]) {
    assert!(backend.find(&own.id).await.unwrap().is_none());
    assert_eq!(backend.find(&stays.id).await.unwrap().unwrap().state, SandboxState::Paused);
}

/// A backend that died leaves garbage, and a kept sandbox stays unless all are to go.
pub async fn of_a_dead_backend_is_garbage<H: Hosted>() {
    let place = Place::<H>::new().await;
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

//! What the server of a sandbox writes.

use std::{fs, path::PathBuf};

use futures_util::StreamExt as _;
use gloveport_provider::{LogOptions, LogStream, Provider, Sandbox};
use gloveport_testing::{until, within};

use crate::{
    Hosted, Place, Service as _,
    steps::{A, SECRET, create, log_of, spec, workspace},
};

/// Where a server that keeps its log in a file has it.
pub fn file(sandbox: &Sandbox) -> PathBuf {
    workspace(sandbox).parent().unwrap().join("log")
}

/// Waits until a server that keeps its log in a file has written all that it writes.
async fn is_written(sandbox: &Sandbox) {
    let file = file(sandbox);
    until("the log of the server", || fs::read_to_string(&file).is_ok_and(|log| log.lines().count() == 2)).await;
}

/// The log of a sandbox [`with_secret`](crate::steps::with_secret) has its variable, and not its secret.
pub async fn has_no_secret(backend: &impl Provider, sandbox: &Sandbox) {
    let log = log_of(backend, &sandbox.id, LogOptions::default()).await;
    assert!(log.contains(&format!("key=set input= A={A}")) && !log.contains(SECRET), "{log}");
}

/// A log is read from its end, and followed. Gives all of it, and what follows.
pub async fn is_read_from_its_end(backend: &impl Provider, sandbox: &Sandbox) -> (String, LogStream) {
    let id = &sandbox.id;
    let tail = |lines| LogOptions { follow: false, tail: Some(lines) };
    assert_eq!(log_of(backend, id, tail(0)).await, "");
    assert!(log_of(backend, id, tail(1)).await.starts_with("port="));
    let whole = log_of(backend, id, tail(usize::MAX)).await;
    assert!(whole.starts_with("started with: container-server --port "), "{whole}");
    let mut followed = backend.logs(id, LogOptions { follow: true, tail: Some(1) }).await.unwrap();
    assert!(within(followed.next()).await.unwrap().unwrap().starts_with(b"port="));
    (whole, followed)
}

/// The log of a server that keeps it in a file is read from its end, followed, and ends with its sandbox. `more` looks at what
/// follows.
pub async fn is_read_until_its_sandbox_is_gone<H: Hosted>(more: impl AsyncFnOnce(&Sandbox, &mut LogStream)) {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    is_written(&made).await;
    let (_, mut followed) = is_read_from_its_end(&backend, &made).await;
    more(&made, &mut followed).await;
    backend.delete(&made.id).await.unwrap();
    assert!(within(followed.next()).await.is_none());
}

/// Whoever leaves a log that is followed ends what reads it in the sandbox, by a request to a path that ends so.
pub async fn whoever_leaves_ends_the_reader<H: Hosted>(path: &str) {
    let place = Place::<H>::new().await;
    let backend = place.backend();
    let made = create(&backend, &spec("s")).await.unwrap();
    let mut followed = backend.logs(&made.id, LogOptions { follow: true, tail: None }).await.unwrap();
    within(followed.next()).await.unwrap().unwrap();
    place.service.seen();
    drop(followed);
    until("the end of the reader", || place.service.seen().iter().any(|seen| seen.path.ends_with(path))).await;
}

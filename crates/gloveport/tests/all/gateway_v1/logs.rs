//! What servers of sandboxes write.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use gloveport_client::{Certificates, Pool};
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Progress, Provider, ProviderError,
    Sandbox, SandboxId, SandboxSpec, SessionId,
};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    gateway::{KEY, Running},
    sandboxes::LIMIT,
    support::text,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_log_comes_as_it_is_written_and_ends_with_its_sandbox_and_with_the_gateway() {
    let running = Running::start().await;
    let ids = [running.create(json!({"session_id": "a"})).await, running.create(json!({"session_id": "b"})).await];
    let pool = Pool::new(Certificates::Checked).unwrap();
    let log = async |id: &str, query: &str| {
        let url = format!("{}/v1/sandboxes/{id}/logs{query}", running.url());
        let answer = pool.http().get(url).header("X-API-Key", KEY).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &"text/plain; charset=utf-8".parse().unwrap())
        );
        answer
    };
    let file = |id: &str| running.place.state().join("sandboxes").join(id).join("log");
    for id in &ids {
        std::fs::OpenOptions::new().append(true).open(file(id)).unwrap().write_all(b"one\ntwo\n").unwrap();
    }
    assert!(log(&ids[0], "").await.text().await.unwrap().ends_with("one\ntwo\n"));
    assert_eq!(log(&ids[0], "?tail=1").await.text().await.unwrap(), "two\n");
    let mut followed = Vec::new();
    for id in &ids {
        let mut answer = log(id, "?follow=true&tail=1").await;
        assert_eq!(answer.chunk().await.unwrap().unwrap(), "two\n");
        std::fs::OpenOptions::new().append(true).open(file(id)).unwrap().write_all(b"three\n").unwrap();
        assert_eq!(timeout(LIMIT, answer.chunk()).await.unwrap().unwrap().unwrap(), "three\n");
        followed.push(answer);
    }
    let [first, second] = <[_; 2]>::try_from(followed).unwrap();
    assert_eq!(running.v1("DELETE", &format!("/sandboxes/{}", ids[0]), None).await.0, 204);
    timeout(LIMIT, first.bytes()).await.unwrap().unwrap();
    let ending = tokio::spawn(async move { timeout(LIMIT, second.bytes()).await.unwrap().unwrap() });
    running.end().await;
    ending.await.unwrap();
}

/// An engine whose logs never end, and which counts the pieces that are taken.
#[derive(Debug)]
struct Flooding {
    inner: Arc<dyn Provider>,
    taken: Arc<AtomicUsize>,
}

type Answer<'a, T> = BoxFuture<'a, Result<T, ProviderError>>;

impl Provider for Flooding {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create<'a>(&'a self, spec: &'a SandboxSpec, progress: &'a Progress) -> Answer<'a, Sandbox> {
        self.inner.create(spec, progress)
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, Option<Sandbox>> {
        self.inner.find(id)
    }

    fn find_session<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Option<Sandbox>> {
        self.inner.find_session(session)
    }

    fn list<'a>(&'a self, filter: &'a ListFilter) -> Answer<'a, Vec<Sandbox>> {
        self.inner.list(filter)
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        self.inner.pause(id)
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, ()> {
        self.inner.resume(id)
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> Answer<'a, bool> {
        self.inner.delete(id)
    }

    fn logs<'a>(&'a self, _: &'a SandboxId, _: LogOptions) -> Answer<'a, LogStream> {
        let taken = Arc::clone(&self.taken);
        let piece = move |()| {
            taken.fetch_add(1, SeqCst);
            Ok(vec![b'x'; 64 * 1024].into())
        };
        Box::pin(async { Ok(stream::repeat(()).map(piece).boxed()) })
    }

    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> Answer<'a, GcReport> {
        self.inner.collect_garbage(options)
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        self.inner.check()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_reads_a_log_or_events_slowly_is_waited_for_and_nobody_else_notices() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let running = Running::over(
        |inner| Arc::new(Flooding { inner, taken: counter }),
        |options| options.drain = Duration::from_secs(1),
    )
    .await;
    let id = running.create(json!({"session_id": "a"})).await;
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(running.address).unwrap();
        write!(stream, "GET /v1/sandboxes/{path} HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n").unwrap();
        stream
    };
    // They ask and read nothing.
    let slow = [ask(&format!("{id}/logs?follow=true")), ask("events"), ask(&format!("{id}/events"))];
    let steady = async {
        let mut before = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let now = taken.load(SeqCst);
            if now > 0 && now == before {
                break now;
            }
            before = now;
        }
    };
    // What is between both ends is full: buffers of the system, a few MiB.
    let pieces = timeout(LIMIT, steady).await.unwrap();
    assert!(pieces < 512, "{pieces} pieces of 64 KiB were taken");
    assert_eq!(running.v1("GET", "/sandboxes", None).await.0, 200);
    assert_eq!(running.v1("POST", &format!("/sandboxes/{id}/pause"), None).await.0, 200);
    let [mut log, mut events, _] = slow;
    let mut read = vec![0; 64 * 1024];
    log.read_exact(&mut read).unwrap();
    assert!(text(&read).contains(" 200 OK") && read.ends_with(b"xxx"));
    let mut seen = String::new();
    while !seen.contains("\"paused\"") {
        let count = events.read(&mut read).unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&text(&read[..count]));
    }
    running.end().await;
}

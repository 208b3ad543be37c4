//! Histories in stores that are no directory, and in stores that fail.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::behaviour::common::within;
use crate::behaviour::listen::{Callback, Listener, message};
use bytes::Bytes;
use gloveport_event_stream::{
    AddEventError, BoxFuture, EventStore, EventStream, FileStore, HistoryError, Search, StoreError, SubscriberId,
};
use gloveport_protocol::EventSource;
use tokio::sync::Semaphore;

/// Contents in memory, some of which cannot be written or read for now.
#[derive(Default)]
struct Fragile {
    contents: Mutex<BTreeMap<String, Bytes>>,
    /// Ends of the paths that cannot be written.
    unwritable: Mutex<Vec<String>>,
    /// How many reads of event files fail.
    unreadable: AtomicUsize,
    writing: AtomicUsize,
    most_writing: AtomicUsize,
}

impl Fragile {
    fn failure(path: &str) -> StoreError {
        StoreError::Io { operation: "reach", path: path.into(), source: std::io::ErrorKind::TimedOut.into() }
    }

    fn names(&self) -> Vec<String> {
        self.contents.lock().unwrap().keys().cloned().collect()
    }
}

impl FileStore for Fragile {
    fn write<'a>(&'a self, path: &'a str, content: Bytes) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let now = self.writing.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_writing.fetch_max(now, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.writing.fetch_sub(1, Ordering::SeqCst);
            if self.unwritable.lock().unwrap().iter().any(|end| path.ends_with(end)) {
                return Err(Self::failure(path));
            }
            self.contents.lock().unwrap().insert(path.to_owned(), content);
            Ok(())
        })
    }

    fn read<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        Box::pin(async move {
            let fails = |left: usize| left.checked_sub(1);
            if path.contains("/events/")
                && self.unreadable.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok()
            {
                return Err(Self::failure(path));
            }
            let found = self.contents.lock().unwrap().get(path).cloned();
            found.ok_or_else(|| StoreError::NotFound { path: path.to_owned(), detail: None })
        })
    }

    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move { Ok(self.names().into_iter().filter(|name| name.starts_with(path)).collect()) })
    }

    fn delete<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.contents.lock().unwrap().retain(|name, _| !name.starts_with(path));
            Ok(())
        })
    }
}

async fn open(store: &Arc<Fragile>) -> EventStream {
    EventStream::open(store.clone(), "s", None).await.unwrap()
}

#[tokio::test]
async fn a_history_in_any_store_has_events_and_aligned_pages() {
    let store = Arc::new(Fragile::default());
    for _ in 0..3 {
        let stream = open(&store).await;
        for _ in 0..10 {
            within(stream.add(message("x"), EventSource::User)).await.unwrap();
        }
        within(stream.close()).await;
    }
    let mut expected: Vec<_> = (0..30).map(|id| format!("sessions/s/events/{id}.json")).collect();
    expected.push("sessions/s/event_cache/0-25.json".to_owned());
    expected.sort();
    assert_eq!(store.names(), expected);
    let reader = EventStore::new(store, "s", None);
    let events = reader.search(Search { reverse: true, ..Search::default() }).collect(100).await.unwrap();
    assert_eq!(events.iter().map(|event| event.id().unwrap()).collect::<Vec<_>>(), (0..30).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn an_event_that_cannot_be_stored_is_not_announced_and_its_number_is_given_again() {
    let store = Arc::new(Fragile::default());
    let stream = open(&store).await;
    let (listener, mut told) = Listener::new();
    stream.subscribe(SubscriberId::Test, "a", listener).unwrap();
    within(stream.add(message("a"), EventSource::User)).await.unwrap();
    store.unwritable.lock().unwrap().push("1.json".to_owned());
    let was_assigned = Arc::new(AtomicUsize::new(0));
    let assigned = {
        let count = Arc::clone(&was_assigned);
        move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        }
    };
    let error = within(stream.add_with(message("b"), EventSource::User, assigned)).await.unwrap_err();
    assert!(matches!(error, AddEventError::Store(_)));
    assert_eq!(was_assigned.load(Ordering::SeqCst), 0);
    assert_eq!(error.to_string(), "the event cannot be stored: cannot reach 'sessions/s/events/1.json': timed out");
    assert_eq!(stream.store().next_id().await.unwrap(), 1);
    store.unwritable.lock().unwrap().clear();
    assert_eq!(within(stream.add(message("c"), EventSource::User)).await.unwrap().id(), Some(1));
    within(stream.delivered()).await;
    within(stream.close()).await;
    let mut announced = Vec::new();
    while let Some(event) = told.recv().await {
        announced.push(crate::behaviour::common::said(&event));
    }
    assert_eq!(announced, ["a", "c"]);
}

#[tokio::test]
async fn readers_and_subscribers_pass_over_the_gap_that_a_failure_leaves() {
    let store = Arc::new(Fragile::default());
    let stream = open(&store).await;
    let (listener, mut told) = Listener::new();
    stream.subscribe(SubscriberId::Test, "a", listener).unwrap();
    store.unwritable.lock().unwrap().push("/3.json".to_owned());
    // They come so close together that they are stored together.
    let adds = (0..10).map(|at| stream.add(message(at.to_string()), EventSource::User));
    let results = within(futures_util::future::join_all(adds)).await;
    let failed: Vec<_> = results.iter().map(Result::is_err).collect();
    assert_eq!(failed.iter().filter(|failed| **failed).count(), 1, "{results:?}");
    assert!(store.most_writing.load(Ordering::SeqCst) <= 8);
    within(stream.delivered()).await;
    let expected: Vec<i64> = (0..10).filter(|id| *id != 3).collect();
    let found = stream.store().search(Search::default()).collect(100).await.unwrap();
    assert_eq!(found.iter().map(|event| event.id().unwrap()).collect::<Vec<_>>(), expected);
    for id in expected {
        assert_eq!(within(told.recv()).await.unwrap().id(), Some(id));
    }
    within(stream.close()).await;
}

#[tokio::test]
async fn a_subscriber_that_is_behind_waits_for_a_store_that_fails() {
    const COUNT: i64 = 1_100;
    let store = Arc::new(Fragile::default());
    let stream = open(&store).await;
    let gate = Arc::new(Semaphore::new(0));
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let waits = Arc::clone(&gate);
    let handler = move |event: Arc<gloveport_protocol::Event>| {
        let (gate, sender) = (Arc::clone(&waits), sender.clone());
        async move {
            gate.acquire().await?.forget();
            sender.send(event.id())?;
            Ok(())
        }
    };
    stream.subscribe(SubscriberId::Test, "a", Arc::new(Callback(handler))).unwrap();
    for _ in 0..COUNT {
        within(stream.add(message("x"), EventSource::User)).await.unwrap();
    }
    // The pages are gone, so each of the missed events is read from its own file.
    store.contents.lock().unwrap().retain(|path, _| path.contains("/events/"));
    store.unreadable.store(3, Ordering::SeqCst);
    gate.add_permits(2_000);
    for id in 0..COUNT {
        assert_eq!(within(told.recv()).await, Some(Some(id)));
    }
    assert_eq!(store.unreadable.load(Ordering::SeqCst), 0);
    within(stream.close()).await;
}

#[tokio::test]
async fn a_search_tells_that_the_store_failed_and_goes_on_where_it_was() {
    let store = Arc::new(Fragile::default());
    let stream = open(&store).await;
    for _ in 0..3 {
        within(stream.add(message("x"), EventSource::User)).await.unwrap();
    }
    let mut events = stream.store().search(Search::default());
    assert_eq!(events.next().await.unwrap().unwrap().id(), Some(0));
    store.unreadable.store(1, Ordering::SeqCst);
    assert!(matches!(events.next().await, Err(HistoryError::Store(StoreError::Io { .. }))));
    assert_eq!(events.next().await.unwrap().unwrap().id(), Some(1));
    within(stream.close()).await;
}

//! Who is told of events, in which order, and what one does to another.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use crate::behaviour::common::{open, within};
use crate::behaviour::listen::{Callback, Listener, message};
use gloveport_event_stream::{EventStream, SubscribeError, Subscriber, SubscriberId};
use gloveport_protocol::{Event, EventSource};
use tokio::sync::{Notify, Semaphore, mpsc};
use tracing_subscriber::fmt::MakeWriter;

/// What is logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Logged {
    /// Collects what this thread logs while the guard lives.
    fn here() -> (Self, tracing::subscriber::DefaultGuard) {
        let logged = Self::default();
        let subscriber =
            tracing_subscriber::fmt().with_writer(logged.clone()).with_ansi(false).without_time().with_target(false);
        (logged, tracing::subscriber::set_default(subscriber.finish()))
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        text.lines().map(|line| line.trim_start().to_owned()).collect()
    }
}

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Logged {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

async fn add(stream: &EventStream, count: usize) {
    let mut adds: Vec<_> = (0..count).map(|_| stream.add(message("x"), EventSource::User)).collect();
    while !adds.is_empty() {
        let some = adds.drain(..adds.len().min(100));
        for added in within(futures_util::future::join_all(some)).await {
            added.unwrap();
        }
    }
}

async fn ids(told: &mut mpsc::UnboundedReceiver<Arc<Event>>, count: usize) -> Vec<i64> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(within(told.recv()).await.unwrap().id().unwrap());
    }
    ids
}

#[tokio::test]
async fn a_slow_subscriber_holds_nobody_up_and_misses_nothing() {
    const COUNT: usize = 2_500;
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    let (sender, mut slow) = mpsc::unbounded_channel();
    let waits = Arc::clone(&gate);
    let handler = move |event: Arc<Event>| {
        let (gate, sender) = (Arc::clone(&waits), sender.clone());
        async move {
            gate.acquire().await?.forget();
            sender.send(event)?;
            Ok(())
        }
    };
    let (listener, mut quick) = Listener::new();
    stream.subscribe(SubscriberId::AgentController, "slow", Arc::new(Callback(handler))).unwrap();
    stream.subscribe(SubscriberId::Test, "quick", listener).unwrap();
    let everything: Vec<i64> = (0..).take(COUNT).collect();
    add(&stream, COUNT).await;
    assert_eq!(ids(&mut quick, COUNT).await, everything);
    assert!(slow.try_recv().is_err());
    // More events come while it reads back those that did not fit into its queue.
    gate.add_permits(1_500);
    let mut told = ids(&mut slow, 1_500).await;
    gate.add_permits(COUNT);
    add(&stream, 10).await;
    told.extend(ids(&mut slow, COUNT - 1_490).await);
    assert_eq!(told, (0..).take(COUNT + 10).collect::<Vec<i64>>());
    within(stream.close()).await;
}

#[tokio::test]
async fn a_subscriber_that_fails_or_panics_is_logged_and_told_of_the_next_event() {
    let (logged, _guard) = Logged::here();
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (listener, mut told) = Listener::new();
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let panics = move |_| {
        calls.fetch_add(1, Ordering::Relaxed);
        panic!("it had no idea");
        #[expect(unreachable_code, reason = "it says what the function gives")]
        async {
            Ok(())
        }
    };
    let fails = |_| async { Err("it did not want to".into()) };
    stream.subscribe(SubscriberId::AgentController, "panics", Arc::new(Callback(panics))).unwrap();
    stream.subscribe(SubscriberId::Memory, "fails", Arc::new(Callback(fails))).unwrap();
    stream.subscribe(SubscriberId::Test, "listens", listener).unwrap();
    add(&stream, 2).await;
    assert_eq!(ids(&mut told, 2).await, [0, 1]);
    within(stream.delivered()).await;
    assert_eq!(count.load(Ordering::Relaxed), 2);
    let mut lines = logged.lines();
    lines.sort();
    let failed = "ERROR Error in event callback fails for subscriber memory: it did not want to";
    let panicked = "ERROR Error in event callback panics for subscriber agent_controller: it panicked: it had no idea";
    assert_eq!(lines, [failed, failed, panicked, panicked]);
    within(stream.close()).await;
}

#[tokio::test]
async fn what_was_added_by_somebody_who_did_not_wait_is_settled_as_well() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let counts = move |_| {
        calls.fetch_add(1, Ordering::Relaxed);
        async { Ok(()) }
    };
    stream.subscribe(SubscriberId::Test, "counts", Arc::new(Callback(counts))).unwrap();
    for expected in 1..=50 {
        let mut adding = Box::pin(stream.add(message("given up"), EventSource::User));
        // It is on its way when it has been asked once.
        let is_done = std::future::poll_fn(|context| Poll::Ready(adding.as_mut().poll(context).is_ready())).await;
        assert!(!is_done);
        drop(adding);
        within(stream.settled()).await;
        assert_eq!(count.load(Ordering::Relaxed), expected);
    }
    within(stream.close()).await;
    within(stream.settled()).await;
}

#[tokio::test]
async fn subscribers_are_told_in_the_order_of_their_names_and_callbacks_in_that_of_their_coming() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let all = [
        SubscriberId::Test,
        SubscriberId::Server,
        SubscriberId::Runtime,
        SubscriberId::OpenhandsResolver,
        SubscriberId::Memory,
        SubscriberId::Main,
        SubscriberId::AgentController,
    ];
    for subscriber in all {
        for callback in ["b", "a"] {
            let calls = Arc::clone(&calls);
            let handler = move |_| {
                calls.lock().unwrap().push(format!("{subscriber} {callback}"));
                async { Ok(()) }
            };
            stream.subscribe(subscriber, callback, Arc::new(Callback(handler))).unwrap();
        }
    }
    add(&stream, 1).await;
    within(stream.delivered()).await;
    let sorted = ["agent_controller", "main", "memory", "openhands_resolver", "runtime", "server", "test"];
    let expected: Vec<_> = sorted.iter().flat_map(|name| [format!("{name} b"), format!("{name} a")]).collect();
    // One thread runs the tasks in the order in which they are woken.
    assert_eq!(*calls.lock().unwrap(), expected);
    within(stream.close()).await;
}

#[tokio::test]
async fn a_name_is_taken_once_and_an_unknown_one_is_a_warning() {
    let (logged, _guard) = Logged::here();
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (listener, _told) = Listener::new();
    stream.subscribe(SubscriberId::Test, "a", listener.clone()).unwrap();
    let error = stream.subscribe(SubscriberId::Test, "a", listener.clone()).unwrap_err();
    assert_eq!(error.to_string(), "Callback ID on subscriber test already exists: a");
    stream.subscribe(SubscriberId::Main, "a", listener.clone()).unwrap();
    within(stream.unsubscribe(SubscriberId::Runtime, "a")).await;
    within(stream.unsubscribe(SubscriberId::Main, "b")).await;
    assert_eq!(
        logged.lines(),
        ["WARN Subscriber not found during unsubscribe: runtime", "WARN Callback not found during unsubscribe: b",]
    );
    within(stream.unsubscribe(SubscriberId::Main, "a")).await;
    stream.subscribe(SubscriberId::Main, "a", listener.clone()).unwrap();
    within(stream.close()).await;
    assert_eq!(stream.subscribe(SubscriberId::Main, "c", listener), Err(SubscribeError::Closed));
}

#[tokio::test]
async fn unsubscribing_waits_for_the_callback_that_runs_and_drops_what_comes_after() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (begun, go, calls) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (tell, wait, count) = (Arc::clone(&begun), Arc::clone(&go), Arc::clone(&calls));
    let handler = move |_| {
        let (tell, wait, count) = (Arc::clone(&tell), Arc::clone(&wait), Arc::clone(&count));
        async move {
            tell.notify_one();
            wait.notified().await;
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    };
    stream.subscribe(SubscriberId::Test, "a", Arc::new(Callback(handler))).unwrap();
    add(&stream, 3).await;
    within(begun.notified()).await;
    let mut gone = tokio::spawn({
        let stream = stream.clone();
        async move { stream.unsubscribe(SubscriberId::Test, "a").await }
    });
    tokio::select! {
        _ = &mut gone => panic!("it did not wait"),
        () = tokio::task::yield_now() => {}
    }
    go.notify_one();
    within(gone).await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    within(stream.close()).await;
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_never_ends_is_dropped_after_a_while() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let begun = Arc::new(Notify::new());
    let tell = Arc::clone(&begun);
    let handler = move |_| {
        tell.notify_one();
        std::future::pending()
    };
    stream.subscribe(SubscriberId::Test, "a", Arc::new(Callback(handler))).unwrap();
    stream.add(message("x"), EventSource::User).await.unwrap();
    begun.notified().await;
    stream.unsubscribe(SubscriberId::Test, "a").await;
    // It would hold the function that it called otherwise.
    while Arc::strong_count(&begun) > 1 {
        tokio::task::yield_now().await;
    }
    stream.close().await;
}

#[tokio::test]
async fn a_callback_can_remove_itself_close_the_stream_and_add_events() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (sender, mut done) = mpsc::unbounded_channel();
    let inner = stream.clone();
    let handler = move |event: Arc<Event>| {
        let (stream, sender) = (inner.clone(), sender.clone());
        async move {
            if event.id() == Some(0) {
                stream.add(message("y"), EventSource::Agent).await?;
                stream.unsubscribe(SubscriberId::Test, "a").await;
                stream.delivered().await;
                stream.close().await;
            }
            sender.send(event.id())?;
            Ok(())
        }
    };
    stream.subscribe(SubscriberId::Test, "a", Arc::new(Callback(handler))).unwrap();
    add(&stream, 1).await;
    assert_eq!(within(done.recv()).await, Some(Some(0)));
    within(stream.close()).await;
    assert_eq!(stream.store().next_id().await.unwrap(), 2);
    // The event that it added itself is not told any more.
    assert_eq!(within(done.recv()).await, None);
}

#[tokio::test]
async fn who_subscribes_in_a_callback_is_told_of_later_events_only() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (listener, mut told) = Listener::new();
    let (inner, subscribed) = (stream.clone(), Mutex::new(false));
    let handler = move |_| {
        if !std::mem::replace(&mut *subscribed.lock().unwrap(), true) {
            inner.subscribe(SubscriberId::Test, "later", listener.clone()).unwrap();
        }
        async { Ok(()) }
    };
    stream.subscribe(SubscriberId::Main, "first", Arc::new(Callback(handler))).unwrap();
    add(&stream, 1).await;
    within(stream.delivered()).await;
    add(&stream, 2).await;
    assert_eq!(ids(&mut told, 2).await, [1, 2]);
    within(stream.close()).await;
}

#[tokio::test]
async fn closing_ends_every_task() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (listener, mut told) = Listener::new();
    let handler: Arc<dyn Subscriber> = listener;
    for subscriber in [SubscriberId::Test, SubscriberId::Main] {
        stream.subscribe(subscriber, "a", Arc::clone(&handler)).unwrap();
    }
    add(&stream, 5).await;
    within(stream.delivered()).await;
    within(stream.close()).await;
    within(stream.close()).await;
    // Whoever still ran would have it.
    assert_eq!(Arc::strong_count(&handler), 1);
    drop(handler);
    assert_eq!(ids(&mut told, 10).await.len(), 10);
    assert!(within(told.recv()).await.is_none());
}

#[tokio::test]
async fn dropping_the_stream_ends_every_task() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (listener, mut told) = Listener::new();
    stream.subscribe(SubscriberId::Test, "a", listener).unwrap();
    add(&stream, 1).await;
    drop(stream);
    // What it was told of before may still come.
    within(async { while told.recv().await.is_some() {} }).await;
}

//! Streams whose queues and journals are full soon.

use std::{sync::Mutex, time::Duration};

use gloveport_protocol::{Action, MessageAction};

use super::*;
use crate::{store::BoxFuture, subscribers::SubscriberError};

const SMALL: StreamLimits = StreamLimits {
    queue: QueueLimits { events: 3, bytes: 1_000 },
    journal: JournalLimits { length: 5_000, count: 20 },
};

fn message() -> Action {
    Action::Message(MessageAction::new("x"))
}

/// Writes down the numbers of what it is told, and takes its time.
struct Scribe {
    ids: Mutex<Vec<i64>>,
    /// Every so many events, it waits.
    waits: usize,
}

impl Subscriber for Scribe {
    fn on_event(&self, event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>> {
        Box::pin(async move {
            let count = {
                let mut ids = self.ids.lock().map_err(|_| "poisoned")?;
                ids.push(event.id().ok_or("no number")?);
                ids.len()
            };
            if count.is_multiple_of(self.waits) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_subscriber_sees_every_event_in_order_however_slow_it_is() {
    const WRITERS: usize = 6;
    const EACH: usize = 60;
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::new(root.path(), None).unwrap());
    let stream = EventStream::open_with(store, "s", None, SMALL).await.unwrap();
    let scribes: Vec<_> = [1, 3, 20, 1_000].map(|waits| Arc::new(Scribe { ids: Mutex::default(), waits })).into();
    for (at, scribe) in scribes.iter().enumerate() {
        stream.subscribe(SubscriberId::Test, &at.to_string(), scribe.clone()).unwrap();
    }
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let stream = stream.clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    stream.add(message(), EventSource::User).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    tokio::time::timeout(Duration::from_mins(1), stream.delivered()).await.unwrap();
    stream.close().await;
    let expected: Vec<i64> = (0..).take(WRITERS * EACH).collect();
    for scribe in scribes {
        assert_eq!(*scribe.ids.lock().unwrap(), expected, "waits every {}", scribe.waits);
    }
}

#[tokio::test]
async fn an_event_gets_another_number_when_another_program_has_taken_its_own() {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::new(root.path(), None).unwrap());
    let stream = EventStream::open_with(store, "s", None, SMALL).await.unwrap();
    stream.add(message(), EventSource::User).await.unwrap();
    let other = "{\"id\": 1, \"action\": \"null\", \"args\": {}}";
    std::fs::write(root.path().join("sessions/s/events/1.json"), other).unwrap();
    let added = stream.add(message(), EventSource::User).await.unwrap();
    assert_eq!(added.id(), Some(2));
    let kinds = [stream.store().event(1).await.unwrap().kind(), stream.store().event(2).await.unwrap().kind()];
    assert_eq!(kinds, ["null", "message"]);
    stream.close().await;
}

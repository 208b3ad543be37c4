//! Events are added, stored, read back and announced.

use std::{collections::BTreeMap, sync::Arc, sync::Mutex};

use crate::behaviour::common::{local, open, said, within};
use crate::behaviour::listen::{Callback, Listener, message};
use gloveport_event_stream::{AddEventError, EventStore, HistoryError, Search, SubscriberId};
use gloveport_protocol::{Action, Event, EventSource, Observation, RunAction, Secret};
use serde_json::{Value, json};

#[tokio::test]
async fn an_event_is_stored_as_the_reference_stores_it() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let event = within(stream.add(Observation::Null, EventSource::Agent)).await.unwrap();
    let text = std::fs::read_to_string(root.path().join("sessions/s/events/0.json")).unwrap();
    let timestamp = event.timestamp().unwrap();
    assert_eq!(
        text,
        format!(
            "{{\"id\": 0, \"timestamp\": \"{timestamp}\", \"source\": \"agent\", \"message\": \"No observation\", \
             \"observation\": \"null\", \"content\": \"\", \"extras\": {{}}}}"
        )
    );
    assert_eq!(stream.store().event(0).await.unwrap(), *event);
    within(stream.close()).await;
}

#[tokio::test]
async fn events_have_numbers_in_the_order_in_which_they_were_added_and_go_on_after_a_restart() {
    let root = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let stream = open(root.path()).await;
        for at in 0..10 {
            let event = within(stream.add(message("x"), EventSource::User)).await.unwrap();
            assert_eq!(event.id(), Some(round * 10 + at));
        }
        assert_eq!(stream.store().next_id().await.unwrap(), round * 10 + 10);
        assert_eq!(stream.store().latest_event().await.unwrap().id(), Some(round * 10 + 9));
        within(stream.close()).await;
    }
    let mut names: Vec<_> = std::fs::read_dir(root.path().join("sessions/s"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // No journal, and a page that was begun before the last restart.
    assert_eq!(names, ["event_cache", "events"]);
    assert!(root.path().join("sessions/s/event_cache/0-25.json").is_file());
}

#[tokio::test]
async fn a_subscriber_is_told_of_every_event_in_order() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (listener, mut told) = Listener::new();
    stream.subscribe(SubscriberId::Test, "a", listener).unwrap();
    let adding: Vec<_> = (0..8)
        .map(|_| {
            let stream = stream.clone();
            tokio::spawn(async move {
                for _ in 0..50 {
                    stream.add(message("x"), EventSource::User).await.unwrap();
                }
            })
        })
        .collect();
    for id in 0..400 {
        let event = within(told.recv()).await.unwrap();
        assert_eq!(event.id(), Some(id));
        // It is durable and can be read before anybody is told.
        assert_eq!(stream.store().event(id).await.unwrap(), *event);
    }
    for task in adding {
        within(task).await.unwrap();
    }
    within(stream.close()).await;
}

#[tokio::test]
async fn who_adds_an_event_knows_its_number_before_anybody_is_told() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let known = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&known);
    let (done, told) = tokio::sync::oneshot::channel();
    let done = Mutex::new(Some(done));
    let handler = Callback(move |event: Arc<Event>| {
        let knew = seen.lock().unwrap().contains(&event.id().unwrap());
        if let Some(done) = done.lock().unwrap().take() {
            done.send(knew).unwrap();
        }
        async { Ok(()) }
    });
    stream.subscribe(SubscriberId::Test, "a", Arc::new(handler)).unwrap();
    let assigned = move |id| known.lock().unwrap().push(id);
    within(stream.add_with(message("x"), EventSource::User, assigned)).await.unwrap();
    assert!(within(told).await.unwrap());
    within(stream.close()).await;
}

#[tokio::test]
async fn an_event_that_has_a_number_is_refused_with_the_text_of_the_reference() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let event = within(stream.add(message("x"), EventSource::User)).await.unwrap();
    let error = within(stream.add((*event).clone(), EventSource::User)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Event already has an ID:0. It was probably added back to the EventStream from inside a handler, triggering a \
         loop."
    );
    let mut event = gloveport_protocol::ActionEvent::from(message("y"));
    event.id = Some(-1);
    assert_eq!(within(stream.add(event, EventSource::User)).await.unwrap().id(), Some(1));
    within(stream.close()).await;
    assert!(matches!(stream.add(message("x"), EventSource::User).await, Err(AddEventError::Closed)));
}

#[tokio::test]
async fn no_secret_is_stored_or_announced() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    let (listener, mut told) = Listener::new();
    stream.subscribe(SubscriberId::Test, "a", listener).unwrap();
    stream.set_secrets(BTreeMap::from([("a".to_owned(), Secret::new("hunter2"))]));
    stream.update_secrets(BTreeMap::from([("b".to_owned(), Secret::new("swordfish"))]));
    let event = Event::from_value(json!({
        "action": "run", "args": {"command": "login hunter2", "thought": "swordfish"},
        "llm_metrics": {"list": ["hunter2"]},
    }));
    let added = within(stream.add(event.unwrap(), EventSource::Agent)).await.unwrap();
    let announced = within(told.recv()).await.unwrap();
    assert_eq!(added, announced);
    assert_eq!(said(&added), "Running command: login <secret_hidden>");
    let text = std::fs::read_to_string(root.path().join("sessions/s/events/0.json")).unwrap();
    let mut stored: Value = serde_json::from_str(&text).unwrap();
    stored["timestamp"].take();
    assert_eq!(
        stored,
        json!({
            "id": 0, "timestamp": null, "source": "agent", "message": "Running command: login <secret_hidden>",
            "action": "run", "llm_metrics": {"list": ["<secret_hidden>"]},
            "args": {
                "command": "login <secret_hidden>", "is_input": false, "thought": "<secret_hidden>", "blocking": false,
                "is_static": false, "cwd": null, "hidden": false, "confirmation_state": "confirmed",
                "security_risk": -1,
            },
        })
    );
    within(stream.close()).await;
}

#[tokio::test]
async fn a_secret_that_takes_away_what_makes_an_event_keeps_it_from_being_added() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    stream.set_secrets(BTreeMap::from([("a".to_owned(), Secret::new("confirmed"))]));
    let error = within(stream.add(Action::Run(RunAction::new("x")), EventSource::Agent)).await.unwrap_err();
    assert!(matches!(error, AddEventError::Masked { .. }), "{error}");
    within(stream.close()).await;
}

#[tokio::test]
async fn a_conversation_is_open_for_writing_once_and_for_reading_always() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    within(stream.add(message("x"), EventSource::User)).await.unwrap();
    let store = local(root.path());
    let error = gloveport_event_stream::EventStream::open(store.clone(), "s", None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the conversation in '{}' is open for writing already, by another process or another part of this one; \
             close it there first",
            root.path().join("sessions/s").display()
        )
    );
    let other = gloveport_event_stream::EventStream::open(store.clone(), "s", Some("u")).await.unwrap();
    within(other.close()).await;
    let reader = EventStore::new(store, "s", None);
    assert_eq!(reader.next_id().await.unwrap(), 1);
    assert_eq!(reader.search(Search::default()).collect(10).await.unwrap().len(), 1);
    assert!(matches!(reader.event(1).await, Err(HistoryError::NoEvent { id: 1, .. })));
    within(stream.close()).await;
    let stream = open(root.path()).await;
    within(stream.close()).await;
}

#[tokio::test]
async fn a_stream_that_is_dropped_can_be_opened_again() {
    let root = tempfile::tempdir().unwrap();
    let stream = open(root.path()).await;
    within(stream.add(message("x"), EventSource::User)).await.unwrap();
    drop(stream);
    let stream = within(async {
        loop {
            match gloveport_event_stream::EventStream::open_local(root.path(), None, "s", None).await {
                Ok(stream) => break stream,
                Err(HistoryError::Locked { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await;
    assert_eq!(stream.store().next_id().await.unwrap(), 1);
    within(stream.close()).await;
}

#[tokio::test]
async fn a_conversation_cannot_be_outside_of_the_store() {
    let root = tempfile::tempdir().unwrap();
    let error = gloveport_event_stream::EventStream::open_local(root.path(), None, "../../x", None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "'sessions/../../x/' cannot be a path in the file store: the name of a conversation or a user leads out of \
         the store"
    );
}

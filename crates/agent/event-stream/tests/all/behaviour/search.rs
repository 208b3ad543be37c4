//! What readers find.

use std::{fs, path::Path, sync::Arc};

use gloveport_event_stream::{EventFilter, EventStore, EventType, History, HistoryError, Search, session_exists};
use gloveport_protocol::EventSource;
use serde_json::json;

use crate::behaviour::common::local;

/// Writes events as the reference does: user messages with even numbers, thoughts of the agent with odd ones.
fn write(root: &Path, ids: impl IntoIterator<Item = i64>) {
    let directory = root.join("sessions/s/events");
    fs::create_dir_all(&directory).unwrap();
    for id in ids {
        fs::write(directory.join(format!("{id}.json")), text(id)).unwrap();
    }
}

fn text(id: i64) -> String {
    let (action, source, args) = match id % 2 {
        0 => ("message", "user", json!({"content": format!("number {id}")})),
        _ => ("think", "agent", json!({"thought": format!("number {id}")})),
    };
    json!({"id": id, "timestamp": format!("2025-01-01T00:00:{:02}.000000", id % 60), "source": source,
           "action": action, "args": args})
    .to_string()
}

/// Writes a page with events that have other texts than their files.
fn write_page(root: &Path, start: i64) {
    let directory = root.join("sessions/s/event_cache");
    fs::create_dir_all(&directory).unwrap();
    let events: Vec<_> = (start..start + 25).map(|id| text(id).replace("number", "paged")).collect();
    fs::write(directory.join(format!("{start}-{}.json", start + 25)), format!("[{}]", events.join(", "))).unwrap();
}

fn store(root: &Path) -> EventStore {
    EventStore::new(local(root), "s", None)
}

async fn ids(store: &EventStore, search: Search) -> Vec<i64> {
    let found = store.search(search).collect(10_000).await.unwrap();
    found.iter().map(|event| event.id().unwrap()).collect()
}

#[tokio::test]
async fn a_search_gives_the_range_in_the_wanted_order() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), (0..60).filter(|id| *id != 7));
    write_page(root.path(), 25);
    let store = store(root.path());
    let search = |start, end, reverse, limit| Search { start, end, reverse, limit, ..Search::default() };
    for (search, expected) in [
        (search(0, None, false, None), (0..60).filter(|id| *id != 7).collect::<Vec<_>>()),
        (search(0, None, true, None), (0..60).rev().filter(|id| *id != 7).collect()),
        (search(5, Some(9), false, None), vec![5, 6, 8, 9]),
        (search(5, Some(9), true, None), vec![9, 8, 6, 5]),
        (search(58, Some(1_000_000_000_000), false, None), vec![58, 59]),
        (search(0, Some(i64::MAX), true, Some(2)), vec![59, 58]),
        (search(100, None, false, None), vec![]),
        (search(9, Some(5), false, None), vec![]),
        (search(-5, Some(1), false, None), vec![0, 1]),
        (search(0, Some(-1), false, None), vec![]),
        (search(0, None, false, Some(3)), vec![0, 1, 2]),
        (search(56, None, false, Some(0)), vec![56, 57, 58, 59]),
        (search(24, Some(26), true, None), vec![26, 25, 24]),
    ] {
        assert_eq!(ids(&store, search.clone()).await, expected, "{search:?}");
    }
}

#[tokio::test]
async fn a_page_is_used_if_it_is_right_and_one_event_never_comes_from_it() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 0..60);
    write_page(root.path(), 25);
    let store = store(root.path());
    let paged = || EventFilter { query: Some("paged".to_owned()), ..EventFilter::default() };
    let search = || Search { filter: paged(), ..Search::default() };
    assert_eq!(ids(&store, search()).await, (25..50).collect::<Vec<_>>());
    assert!(!paged().includes(&store.event(30).await.unwrap()));
    let page = root.path().join("sessions/s/event_cache/25-50.json");
    for damage in ["", "null", "[]", "[1]", "{"] {
        fs::write(&page, damage).unwrap();
        assert_eq!(ids(&store, search()).await, Vec::<i64>::new(), "{damage}");
        assert_eq!(ids(&store, Search::default()).await.len(), 60, "{damage}");
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_named_and_hides_no_other() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 0..6);
    let path = |id: i64| root.path().join(format!("sessions/s/events/{id}.json"));
    fs::write(path(1), "").unwrap();
    fs::write(path(2), "{\"id\": 2, \"acti").unwrap();
    fs::write(path(3), "{\"id\": 3, \"action\": \"unheard_of\"}").unwrap();
    fs::write(path(4), "[]").unwrap();
    let store = store(root.path());
    assert_eq!(ids(&store, Search::default()).await, [0, 5]);
    for (id, reason) in [
        (1, "it is empty"),
        (2, "it is not JSON: EOF while parsing a string at line 1 column 15"),
        (4, "an event must be an object, not an array"),
    ] {
        let expected = format!("the event in 'sessions/s/events/{id}.json' cannot be read: {reason}");
        assert_eq!(store.event(id).await.unwrap_err().to_string(), expected);
    }
    assert!(store.event(3).await.unwrap_err().to_string().starts_with(
        "the event in 'sessions/s/events/3.json' cannot be read: 'action['action']='unheard_of'' is not defined."
    ));
    fs::remove_file(path(1)).unwrap();
    fs::create_dir(path(1)).unwrap();
    assert!(matches!(store.event(1).await, Err(HistoryError::Store(_))));
}

#[tokio::test]
async fn the_next_number_is_one_more_than_the_highest() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    assert!(!session_exists(&*local(root.path()), "s", None).await.unwrap());
    assert_eq!(store.next_id().await.unwrap(), 0);
    assert_eq!(store.latest_id().await.unwrap(), -1);
    assert!(matches!(store.latest_event().await, Err(HistoryError::NoEvent { id: -1, .. })));
    write(root.path(), [3, 11]);
    fs::write(root.path().join("sessions/s/events/readme.txt"), "").unwrap();
    assert!(session_exists(&*local(root.path()), "s", None).await.unwrap());
    assert_eq!(store.next_id().await.unwrap(), 12);
    assert_eq!(store.latest_event().await.unwrap().id(), Some(11));
}

#[tokio::test]
async fn events_can_be_told_apart_by_source_and_sort() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 0..10);
    let store = store(root.path());
    let agent = store.by_source(EventSource::Agent).collect(100).await.unwrap();
    assert_eq!(agent.iter().map(|event| event.id().unwrap()).collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
    let filter = EventFilter { include_types: vec![EventType::action("message")], ..EventFilter::default() };
    let search = Search { filter, reverse: true, limit: Some(2), ..Search::default() };
    assert_eq!(ids(&store, search).await, [8, 6]);
}

#[tokio::test]
async fn at_most_a_hundred_events_match_at_once() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 0..120);
    let store: Arc<dyn History> = Arc::new(store(root.path()));
    let limited = |limit| Search { limit, ..Search::default() };
    for (limit, count) in [(None, 100), (Some(1), 1), (Some(100), 100)] {
        assert_eq!(store.matching(limited(limit)).await.unwrap().len(), count);
    }
    for limit in [0, 101] {
        let error = store.matching(limited(Some(limit))).await.unwrap_err();
        assert_eq!(error.to_string(), "Limit must be between 1 and 100");
    }
}

//! The events of another server, which here is a small one that serves the same routes.

use std::sync::{Arc, Mutex};

use gloveport_event_stream::{EventFilter, EventType, HistoryError, NestedEventStore, Search};
use gloveport_protocol::Secret;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::behaviour::common::within;

/// What was asked: the path with the query, and the key.
type Asked = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// Serves the events with these numbers, a few at a time, at the returned URL.
async fn serve(ids: Vec<i64>) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/conversations/s", listener.local_addr().unwrap());
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (ids, log) = (ids.clone(), Arc::clone(&log));
            tokio::spawn(async move { answer(stream, &ids, &log).await });
        }
    });
    (url, asked)
}

async fn answer(stream: TcpStream, ids: &[i64], asked: &Asked) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut path, mut key) = (None, None);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            match line.trim_end() {
                "" => break,
                line => {
                    path = path.or_else(|| line.strip_prefix("GET ")?.split(' ').next().map(str::to_owned));
                    key = key.or_else(|| line.to_lowercase().strip_prefix("x-session-api-key: ").map(str::to_owned));
                }
            }
        }
        let path = path.unwrap();
        let (status, body) = respond(&path, ids);
        asked.lock().unwrap().push((path, key));
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

fn respond(path: &str, ids: &[i64]) -> (&'static str, String) {
    let Some(query) = path.strip_prefix("/api/conversations/s/events?") else {
        return ("404 Not Found", "{}".to_owned());
    };
    let value = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    let number = |key: &str| value(key).map(|text| text.parse::<i64>().unwrap());
    let (start, end) = (number("start_id").unwrap(), number("end_id").unwrap_or(i64::MAX));
    let mut found: Vec<_> = ids.iter().copied().filter(|id| (start..=end).contains(id)).collect();
    if value("reverse") == Some("True") {
        found.reverse();
    }
    let limit = usize::try_from(number("limit").unwrap_or(4)).unwrap().min(4);
    let has_more = found.len() > limit;
    found.truncate(limit);
    let event = |id: &i64| {
        json!({"id": id, "source": "user", "action": if id % 2 == 0 { "null" } else { "think" },
                                  "args": if id % 2 == 0 { json!({}) } else { json!({"thought": "x"}) }})
    };
    let events: Vec<Value> = found.iter().map(event).collect();
    ("200 OK", json!({"events": events, "has_more": has_more}).to_string())
}

/// The HTTP client. Its certificates are not used; making it needs a provider all the same.
fn http() -> reqwest::Client {
    // It fails if another test was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().tls_certs_only([]).build().unwrap()
}

async fn ids(store: &NestedEventStore, search: Search) -> Vec<i64> {
    let found = within(store.search(search).collect(1_000)).await.unwrap();
    found.iter().map(|event| event.id().unwrap()).collect()
}

#[tokio::test]
async fn events_are_asked_for_as_the_reference_asks() {
    let (url, asked) = serve((0..10).collect()).await;
    let store = NestedEventStore::new(http(), &url, Some(Secret::new("k")));
    assert_eq!(ids(&store, Search::default()).await, (0..10).collect::<Vec<_>>());
    let search = Search { start: 2, reverse: true, limit: Some(6), ..Search::default() };
    assert_eq!(ids(&store, search).await, [9, 8, 7, 6, 5, 4]);
    let queries = [
        "start_id=0&reverse=False",
        "start_id=4&reverse=False",
        "start_id=8&reverse=False",
        "start_id=2&reverse=True&limit=6",
        "start_id=2&reverse=True&end_id=5&limit=2",
    ];
    let expected = queries.map(|query| (format!("/api/conversations/s/events?{query}"), Some("k".to_owned())));
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_search_means_the_same_as_in_a_store() {
    let (url, _asked) = serve((0..20).filter(|id| *id != 7).collect()).await;
    let store = NestedEventStore::new(http(), &url, None);
    let nulls = || EventFilter { include_types: vec![EventType::action("null")], ..EventFilter::default() };
    let search = |start, end, reverse, limit| Search { start, end, reverse, limit, ..Search::default() };
    for (search, expected) in [
        (search(5, Some(9), false, None), vec![5, 6, 8, 9]),
        (search(5, Some(9), true, None), vec![9, 8, 6, 5]),
        (search(5, Some(7), false, None), vec![5, 6]),
        (search(9, Some(5), false, None), vec![]),
        (search(17, None, false, Some(0)), vec![17, 18, 19]),
        (search(-3, Some(1), false, None), vec![0, 1]),
        (search(100, None, false, None), vec![]),
        (Search { filter: nulls(), limit: Some(3), ..Search::default() }, vec![0, 2, 4]),
        (Search { filter: nulls(), reverse: true, limit: Some(3), ..Search::default() }, vec![18, 16, 14]),
    ] {
        assert_eq!(ids(&store, search.clone()).await, expected, "{search:?}");
    }
    assert_eq!(store.event(6).await.unwrap().id(), Some(6));
    assert!(matches!(store.event(7).await, Err(HistoryError::NoEvent { id: 7, .. })));
    assert_eq!(store.latest_event().await.unwrap().id(), Some(19));
    assert_eq!(store.latest_id().await.unwrap(), 19);
}

#[tokio::test]
async fn an_unknown_conversation_has_no_events() {
    let (url, _asked) = serve(vec![0]).await;
    let store = NestedEventStore::new(http(), &format!("{url}-unknown"), None);
    assert_eq!(ids(&store, Search::default()).await, Vec::<i64>::new());
    assert!(matches!(store.latest_event().await, Err(HistoryError::NoEvent { .. })));
    assert_eq!(store.latest_id().await.unwrap(), -1);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_or_understood_is_an_error_that_names_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let store = NestedEventStore::new(http(), &url, Some(Secret::new("hunter2")));
    for (status, body, reason) in [
        ("500 Oh", "", "the server answered with status 500 Internal Server Error"),
        ("200 OK", "{\"events\": [], \"has_more\": true}", "the server says that there is more, and gives nothing"),
        (
            "200 OK",
            "[]",
            "the answer is no list of events: invalid length 0, expected struct Answer with 2 elements at line 1 \
             column 2",
        ),
        (
            "200 OK",
            "{\"events\": [{\"action\": \"null\", \"args\": {}}], \"has_more\": true}",
            "an event has no number",
        ),
    ] {
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        let mut events = store.search(Search::default());
        let (result, ()) = tokio::join!(within(events.next()), async {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).await.unwrap();
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let expected = format!("the events at {url}/events?start_id=0&reverse=False cannot be read: {reason}");
        assert_eq!(result.unwrap_err().to_string(), expected);
    }
    drop(listener);
    let error = within(store.event(0)).await.unwrap_err();
    let expected = format!("the events at {url}/events?start_id=0&reverse=False&limit=1 cannot be read: ");
    assert!(error.to_string().starts_with(&expected) && error.to_string().contains("Connection refused"), "{error}");
    assert!(!format!("{error} {error:?} {store:?}").contains("hunter2"));
}

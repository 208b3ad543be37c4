//! The history of a conversation that another server has (event-stream 3.2).

use std::{collections::VecDeque, fmt};

use bytes::BytesMut;
use gloveport_protocol::{Event, SESSION_KEY_HEADER, Secret};
use reqwest::{Client, StatusCode, header::HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::HistoryError,
    history::{EventFilter, Events, History, Remaining, Search},
    store::BoxFuture,
};

/// Most events that are asked for at a time.
const PAGE_LIMIT: usize = 100;
/// Most bytes of an answer.
const ANSWER_LIMIT: usize = 256 << 20;

/// The events of a conversation behind another server. Clones are cheap.
#[derive(Clone)]
pub struct NestedEventStore {
    http: Client,
    base_url: String,
    key: Option<Secret>,
}

impl NestedEventStore {
    /// The events at `{base_url}/events`. Nothing is sent yet; time limits are those of the HTTP client.
    pub fn new(http: Client, base_url: &str, session_key: Option<Secret>) -> Self {
        Self { http, base_url: base_url.to_owned(), key: session_key }
    }

    /// The events that a search finds. Nothing is sent before the first is asked for.
    ///
    /// Unlike in the reference, a search backwards begins at its `end`, as it does in a store.
    pub fn search(&self, search: Search) -> Events {
        let Search { start, end, reverse, filter, limit } = search;
        Events::nested(NestedEvents {
            store: self.clone(),
            start: start.max(0),
            end,
            reverse,
            filter,
            remaining: Remaining::new(limit),
            fetched: VecDeque::new(),
            has_more: true,
        })
    }

    /// One event.
    pub async fn event(&self, id: i64) -> Result<Event, HistoryError> {
        let search = Search { start: id, limit: Some(1), ..Search::default() };
        let event = self.search(search).next().await?;
        // A server gives the next one if this one is missing.
        event.filter(|event| event.id() == Some(id)).ok_or_else(|| self.no_event(id))
    }

    /// The event with the highest number.
    pub async fn latest_event(&self) -> Result<Event, HistoryError> {
        let search = Search { reverse: true, limit: Some(1), ..Search::default() };
        self.search(search).next().await?.ok_or_else(|| self.no_event(-1))
    }

    /// The number of the last event; -1 if there is none.
    pub async fn latest_id(&self) -> Result<i64, HistoryError> {
        match self.latest_event().await {
            Ok(event) => Ok(event.id().unwrap_or(-1)),
            Err(HistoryError::NoEvent { .. }) => Ok(-1),
            Err(error) => Err(error),
        }
    }

    fn no_event(&self, id: i64) -> HistoryError {
        HistoryError::NoEvent { id, sid: self.base_url.clone() }
    }

    /// Asks for events. Nothing is an empty answer.
    async fn fetch(&self, query: &str) -> Result<Answer, HistoryError> {
        let url = format!("{}/events?{query}", self.base_url);
        let failed = |source: reqwest::Error| HistoryError::Request { url: url.clone(), source: source.without_url() };
        let refused = |reason: String| HistoryError::Answer { url: url.clone(), reason };
        let mut request = self.http.get(&url);
        if let Some(key) = self.key.as_ref().filter(|key| !key.is_empty()) {
            let mut value = HeaderValue::from_str(key.expose())
                .map_err(|_| refused("the session key cannot be sent in a header".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(SESSION_KEY_HEADER, value);
        }
        let mut response = request.send().await.map_err(failed)?;
        match response.status() {
            StatusCode::NOT_FOUND => return Ok(Answer { events: Vec::new(), has_more: false }),
            status if !status.is_success() => return Err(refused(format!("the server answered with status {status}"))),
            _ => {}
        }
        let mut body = BytesMut::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > ANSWER_LIMIT {
                return Err(refused(format!("the answer has more than {ANSWER_LIMIT} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        serde_json::from_slice(&body).map_err(|error| refused(format!("the answer is no list of events: {error}")))
    }
}

impl History for NestedEventStore {
    fn search(&self, search: Search) -> Events {
        self.search(search)
    }

    fn event(&self, id: i64) -> BoxFuture<'_, Result<Event, HistoryError>> {
        Box::pin(self.event(id))
    }

    fn latest_event(&self) -> BoxFuture<'_, Result<Event, HistoryError>> {
        Box::pin(self.latest_event())
    }
}

impl fmt::Debug for NestedEventStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.is_some();
        formatter
            .debug_struct("NestedEventStore")
            .field("base_url", &self.base_url)
            .field("key", &key)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
struct Answer {
    events: Vec<Value>,
    has_more: bool,
}

/// The events that a search finds behind a server.
#[derive(Debug)]
pub(crate) struct NestedEvents {
    store: NestedEventStore,
    /// First number that is asked for.
    start: i64,
    /// Last number that is wanted; in a search backwards, last number that is asked for.
    end: Option<i64>,
    reverse: bool,
    filter: EventFilter,
    remaining: Remaining,
    fetched: VecDeque<Event>,
    has_more: bool,
}

impl NestedEvents {
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, HistoryError> {
        while !self.remaining.is_none_left() {
            let Some(event) = self.fetched.pop_front() else {
                if !self.has_more {
                    break;
                }
                self.fetch().await?;
                continue;
            };
            if !self.reverse && event.id() > self.end.or(Some(i64::MAX)) {
                self.has_more = false;
                self.fetched.clear();
                break;
            }
            if self.filter.includes(&event) {
                self.remaining.count_one();
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Gets the next events.
    async fn fetch(&mut self) -> Result<(), HistoryError> {
        if self.end.is_some_and(|end| end < self.start) {
            self.has_more = false;
            return Ok(());
        }
        let query = self.query();
        let Answer { events, has_more } = self.store.fetch(&query).await?;
        let refused =
            |reason: String| HistoryError::Answer { url: format!("{}/events?{query}", self.store.base_url), reason };
        for value in events {
            let event = Event::from_value(value).map_err(|error| refused(error.to_string()))?;
            let Some(id) = event.id() else { return Err(refused("an event has no number".to_owned())) };
            if self.reverse {
                self.end = Some(self.end.map_or(id - 1, |end| end.min(id - 1)));
            } else {
                self.start = self.start.max(id + 1);
            }
            self.fetched.push_back(event);
        }
        if has_more && self.fetched.is_empty() {
            return Err(refused("the server says that there is more, and gives nothing".to_owned()));
        }
        self.has_more = has_more;
        Ok(())
    }

    /// The query as the reference sends it.
    fn query(&self) -> String {
        let reverse = if self.reverse { "True" } else { "False" };
        let end = self.end.filter(|_| self.reverse).map(|end| format!("&end_id={end}")).unwrap_or_default();
        let limit = self.remaining.get().map(|limit| format!("&limit={}", limit.min(PAGE_LIMIT))).unwrap_or_default();
        format!("start_id={}&reverse={reverse}{end}{limit}", self.start)
    }
}

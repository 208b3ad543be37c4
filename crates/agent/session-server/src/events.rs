//! The history of a session: in pages, or as it grows.
//!
//! Everybody reads the history itself, so nobody who is slow is told less, and nothing is kept for those who read.

use std::{
    convert::Infallible,
    sync::{Arc, PoisonError},
    time::Duration,
};

use axum::{
    Extension, Json,
    extract::{Path, State},
    response::{
        IntoResponse as _, Response,
        sse::{self, KeepAlive, Sse},
    },
};
use futures_util::stream;
use gloveport_event_stream::{EventStore, Events, HistoryError, Search};
use http::{HeaderMap, StatusCode, Uri, header::ACCEPT};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    ask::{self, Handle, Who},
    fault::Fault,
    record::Key,
    sessions::Sessions,
};

/// Most events on a page, and how many there are unless it is said.
const MOST: usize = 500;
const USUAL: usize = 100;
/// A page with so many bytes is full.
const FULL: usize = 4 * 1024 * 1024;
/// Pause between two signs of life.
const ALIVE: Duration = Duration::from_secs(15);
/// Pause between two looks at a history that another server writes.
const LOOK: Duration = Duration::from_millis(300);
/// So many looks at the next event alone come before one at all of them.
const SOMETIMES: usize = 8;
/// The event of a stream after which no more come.
const END: &str = "end";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    from: Option<i64>,
    limit: Option<usize>,
}

/// Events from a number on: a page of them, or those that come, too, for whoever accepts an event stream.
pub(crate) async fn events(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    let Page { from, limit } = ask::query(&uri)?;
    let key = ask::key(&owner, &session)?;
    let record = sessions.record(&key).await?;
    let follows =
        headers.get_all(ACCEPT).iter().any(|accept| accept.to_str().is_ok_and(|it| it.contains("text/event-stream")));
    let reader = sessions.files.events(&key);
    let from = from.unwrap_or(0).max(0);
    if !follows {
        return page(&reader, from, limit.unwrap_or(USUAL)).await;
    }
    // A client that comes back has seen this one.
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<i64>().ok());
    let from = seen.map_or(from, |seen| seen.saturating_add(1).max(0));
    if record.state.is_over() && reader.latest_id().await? < from {
        // With this status, browsers do not come back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let follower = Follower::new(&sessions, key, reader, from)?;
    let events = stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response())
}

async fn page(reader: &EventStore, from: i64, limit: usize) -> Result<Response, Fault> {
    if !(1..=MOST).contains(&limit) {
        return Err(Fault::wrong(format!("`limit` must be 1 to {MOST}")));
    }
    let mut found = reader.search(Search { start: from, ..Search::default() });
    let (mut page, mut bytes, mut next): (Vec<Value>, usize, i64) = (Vec::new(), 0, from);
    while page.len() < limit && bytes < FULL {
        let Some(event) = found.next().await? else { break };
        next = event.id().map_or(next, |id| id + 1);
        let value = event.to_value();
        bytes = bytes.saturating_add(value.to_string().len());
        page.push(value);
    }
    let last = reader.latest_id().await?;
    Ok(Json(json!({"events": page, "next": next, "last_event_id": last})).into_response())
}

/// Reads a history as it grows.
struct Follower {
    sessions: Arc<Sessions>,
    key: Key,
    reader: EventStore,
    /// The number of the next event.
    next: i64,
    /// What is being read.
    found: Option<Events>,
    has_ended: bool,
}

impl Follower {
    fn new(sessions: &Arc<Sessions>, key: Key, reader: EventStore, next: i64) -> Result<Self, Fault> {
        {
            let mut followers = sessions.followers.lock().unwrap_or_else(PoisonError::into_inner);
            let count = followers.entry(key.clone()).or_default();
            if *count >= sessions.options.followers {
                return Err(Fault::too_many(format!("{count} followers read this session already")));
            }
            *count += 1;
        }
        Ok(Self { sessions: Arc::clone(sessions), key, reader, next, found: None, has_ended: false })
    }

    /// The next event; nothing after the last one of a session that is over, or of a server that ends.
    async fn next(&mut self) -> Option<sse::Event> {
        if self.has_ended {
            return None;
        }
        let stop = self.sessions.stop.clone();
        match stop.run_until_cancelled(self.read()).await? {
            Ok(event) => Some(event),
            Err(fault) => {
                tracing::warn!(session = %self.key.id, error = fault.detail, "a history cannot be followed any more");
                None
            }
        }
    }

    async fn read(&mut self) -> Result<sse::Event, Fault> {
        loop {
            let found =
                self.found.get_or_insert_with(|| self.reader.search(Search { start: self.next, ..Search::default() }));
            if let Some(event) = found.next().await? {
                let id = event.id().unwrap_or(self.next);
                self.next = id + 1;
                return Ok(sse::Event::default().id(id.to_string()).data(event.to_value().to_string()));
            }
            self.found = None;
            // The history of one that is over has all its events.
            let state = match self.sessions.files.record(&self.key).await? {
                Some(record) if record.state.is_over() => Some(json!({"state": record.state})),
                Some(_) => None,
                None => Some(json!({"state": "deleted"})),
            };
            if let Some(state) = state
                && self.reader.latest_id().await? < self.next
            {
                self.has_ended = true;
                return Ok(sse::Event::default().event(END).data(state.to_string()));
            }
            self.wait().await?;
        }
    }

    /// Waits until there may be more.
    async fn wait(&self) -> Result<(), Fault> {
        if let Some(mut latest) = self.sessions.latest(&self.key) {
            let _either = timeout(ALIVE, latest.wait_for(|latest| *latest >= self.next)).await;
            return Ok(());
        }
        // Its server is another one, or there is none. Now and then all is looked at, should a number have been left out.
        for _ in 0..SOMETIMES {
            sleep(LOOK).await;
            match self.reader.event(self.next).await {
                Err(HistoryError::NoEvent { .. }) => {}
                Ok(_) | Err(_) => break,
            }
        }
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut followers = self.sessions.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = followers.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                followers.remove(&self.key);
            }
        }
    }
}

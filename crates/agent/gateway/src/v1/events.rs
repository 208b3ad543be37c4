//! What happens to sandboxes, as it happens: server-sent events. A reader holds a position and nothing else, so one that is slow
//! costs nothing, and is told when it has missed something.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Path, RawQuery, State},
    response::{
        IntoResponse as _, Response,
        sse::{Event as Sent, KeepAlive, Sse},
    },
};
use futures_util::{Stream, StreamExt as _, stream};
use gloveport_provider::SandboxId;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use tokio::{sync::watch, time::sleep};

use super::{
    context::{Handle, Who, own},
    query::Query,
    view,
};
use crate::{
    fault::Fault,
    hub::{Event, Kind, Listener, Position, Read},
    shared::Shared,
    streams::Ticket,
    watch::listen,
};

/// Time without an event after which a comment is sent.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a stream lasts. Clients come again, and are asked for their key again.
const LONGEST: Duration = Duration::from_hours(1);
/// The header with the id of the last event that a client has seen.
const LAST: &str = "last-event-id";

/// What happens to the sandboxes of the tenant.
pub(super) async fn of_all(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Fault> {
    Query::read(query.as_deref(), &[])?;
    answer(shared, who.name(), None, &headers).await
}

/// What happens to one of them, until it is deleted.
pub(super) async fn of_one(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    Path(id): Path<String>,
) -> Result<Response, Fault> {
    Query::read(query.as_deref(), &[])?;
    let sandbox = own(&shared, &who, &id).await?;
    answer(shared, who.name(), Some(sandbox.id), &headers).await
}

async fn answer(
    shared: Arc<Shared>,
    tenant: &str,
    of: Option<SandboxId>,
    headers: &HeaderMap,
) -> Result<Response, Fault> {
    let from = headers.get(LAST).map(position).transpose()?;
    let ticket = shared.streams.take(tenant)?;
    let listener = listen(&shared).await?;
    let end = shared.hub.end(tenant).ok_or_else(|| Fault::wrong("the gateway ends; try again").passes())?;
    // The first event tells a client where it is, even if nothing ever happens.
    let first = from.is_none().then(|| sent("start", &end).data("{}"));
    let reader = Reader {
        ticks: shared.hub.ticks(),
        at: from.unwrap_or(end),
        tenant: tenant.to_owned(),
        of,
        ready: first.into_iter().collect(),
        is_over: false,
        shared: Arc::clone(&shared),
        _held: (ticket, listener),
    };
    let draining = shared.draining.clone();
    let events = reader.events().take_until(async move {
        draining.run_until_cancelled(sleep(LONGEST)).await;
    });
    let heartbeat = KeepAlive::new().interval(HEARTBEAT).text("heartbeat");
    let mut response = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(heartbeat).into_response();
    // Asks a proxy in between not to collect events.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

/// The position that an id stands for.
fn position(id: &HeaderValue) -> Result<Position, Fault> {
    let read = id.to_str().ok().and_then(|text| text.split_once('-')).and_then(|(epoch, next)| {
        let is_epoch = epoch.len() <= 32 && epoch.bytes().all(|byte| byte.is_ascii_hexdigit());
        let next = next.parse().ok().filter(|_| next.bytes().all(|byte| byte.is_ascii_digit()))?;
        is_epoch.then(|| Position { epoch: epoch.to_owned(), next })
    });
    read.ok_or_else(|| Fault::wrong("Last-Event-ID must be the id of an event of this gateway"))
}

fn sent(name: &str, at: &Position) -> Sent {
    Sent::default().event(name).id(format!("{}-{}", at.epoch, at.next))
}

struct Reader {
    shared: Arc<Shared>,
    ticks: watch::Receiver<u64>,
    tenant: String,
    of: Option<SandboxId>,
    at: Position,
    ready: VecDeque<Sent>,
    is_over: bool,
    _held: (Ticket, Listener),
}

impl Reader {
    fn events(self) -> impl Stream<Item = Sent> + Send {
        stream::unfold(self, async |mut reader| {
            let event = reader.next().await?;
            Some((event, reader))
        })
    }

    async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            self.ticks.mark_unchanged();
            if !self.read() {
                self.ticks.changed().await.ok()?;
            }
        }
    }

    /// Reads on. Whether there was anything.
    fn read(&mut self) -> bool {
        match self.shared.hub.read(&self.tenant, &self.at) {
            Read::Reset(at) => {
                let data = json!({"message": "events are missing; list the sandboxes again"});
                self.ready.push_back(sent("reset", &at).data(data.to_string()));
                self.at = at;
                true
            }
            Read::Events(events) => {
                let is_any = !events.is_empty();
                for (at, event) in events {
                    if self.of.as_ref().is_none_or(|of| *of == event.sandbox.id) {
                        self.ready.push_back(told(&event, &at));
                        self.is_over |= self.of.is_some() && event.kind == Kind::Deleted;
                    }
                    self.at = at;
                    if self.is_over {
                        break;
                    }
                }
                is_any
            }
        }
    }
}

fn told(event: &Event, at: &Position) -> Sent {
    let name = match event.kind {
        Kind::Created => "created",
        Kind::StateChanged => "state_changed",
        Kind::Deleted => "deleted",
    };
    let seen = &event.sandbox;
    let data = json!({
        "id": seen.id,
        "session_id": seen.session,
        "state": view::word(&seen.state),
        "reason": seen.state.reason(),
        "previous_state": event.before.as_ref().map(view::word),
        "at": view::time(event.at),
    });
    sent(name, at).data(data.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_an_event_is_a_position_and_everything_else_is_refused() {
        let read = |text: &str| position(&HeaderValue::from_str(text).unwrap()).ok();
        assert_eq!(read("0a1b-17"), Some(Position { epoch: "0a1b".to_owned(), next: 17 }));
        for wrong in ["", "17", "0a1b-", "0a1b--1", "0a1b-+1", "xyz-1", "0a-18446744073709551616", "a-1-2"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

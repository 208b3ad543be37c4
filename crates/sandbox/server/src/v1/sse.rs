//! Answers that are streams of server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse as _, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, StreamExt as _};
use http::{HeaderName, HeaderValue};
use serde::Serialize;

/// Type of a stream of events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// Time without an event after which a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Data of an event that tells of an error.
#[derive(Debug, Serialize)]
pub(super) struct Failure {
    pub(super) message: String,
}

/// The answer that sends these events.
pub(super) fn answer(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    let mut response = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive).into_response();
    // Asks a proxy in between not to collect events.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// An event whose data is JSON.
pub(super) fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).json_data(data).unwrap_or_else(|error| {
        tracing::error!(%error, name, "an event can not be written as JSON");
        Event::default().comment("an event was lost")
    })
}

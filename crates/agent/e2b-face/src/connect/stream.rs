//! Answers that are streams of messages.

use std::{convert::Infallible, future::pending, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    envelope::{END, envelope},
    error::{Code, ConnectError},
};
use crate::headers::text;

/// What a stream tells, to its end or to an error.
pub(crate) type Events = BoxStream<'static, Result<Value, ConnectError>>;

const INTERVAL: HeaderName = HeaderName::from_static("keepalive-ping-interval");
/// The type of a stream.
pub(super) const STREAM: &str = "application/connect+json";
/// Pause between two signs of life, if the client does not say how long it may be.
const PAUSE: Duration = Duration::from_secs(90);

/// A message that says nothing, and how long the pauses between them are.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    pause: Duration,
    message: Value,
}

impl KeepAlive {
    /// As the client asks for it.
    pub(crate) fn new(headers: &HeaderMap, message: Value) -> Self {
        let asked = text(headers, &INTERVAL).and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
        Self { pause: asked.map_or(PAUSE, Duration::from_secs), message }
    }
}

struct State {
    events: Events,
    keep_alive: KeepAlive,
    deadline: Option<Instant>,
    is_over: bool,
}

impl State {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let deadline = self.deadline;
        let over = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => pending().await,
            }
        };
        let event = tokio::select! {
            event = self.events.next() => event,
            () = sleep(self.keep_alive.pause) => Some(Ok(self.keep_alive.message.clone())),
            () = over => Some(Err(ConnectError::new(Code::DeadlineExceeded, "the time of the call is over"))),
        };
        Some(match event {
            Some(Ok(message)) => envelope(0, message.to_string().as_bytes()),
            None => self.last(&json!({})),
            Some(Err(error)) => self.last(&json!({"error": error.json()})),
        })
    }

    fn last(&mut self, end: &Value) -> Bytes {
        self.is_over = true;
        envelope(END, end.to_string().as_bytes())
    }
}

/// The answer that tells these events, for at most a time. A stream has status 200, whatever its end is.
pub(crate) fn stream(events: Result<Events, ConnectError>, keep_alive: KeepAlive, limit: Option<Duration>) -> Response {
    let events = events.unwrap_or_else(|error| futures_util::stream::once(std::future::ready(Err(error))).boxed());
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let state = State { events, keep_alive, deadline, is_over: false };
    let body = futures_util::stream::unfold(state, async |mut state| {
        let bytes = state.next().await?;
        Some((Ok::<_, Infallible>(bytes), state))
    });
    with_type(Body::from_stream(body))
}

/// The answer to a stream of a client: one message.
pub(crate) fn answer_one(outcome: Result<Value, ConnectError>) -> Response {
    let mut bytes = Vec::new();
    let end = match outcome {
        Ok(message) => {
            bytes.extend_from_slice(&envelope(0, message.to_string().as_bytes()));
            json!({})
        }
        Err(error) => json!({"error": error.json()}),
    };
    bytes.extend_from_slice(&envelope(END, end.to_string().as_bytes()));
    with_type(Body::from(bytes))
}

fn with_type(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(STREAM));
    // Asks a proxy in between not to collect messages.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

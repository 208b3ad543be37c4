//! A command as a stream of server-sent events.
//!
//! The id of each event is the offset behind it in the command's output, so a client that reconnects with `Last-Event-ID` misses nothing and
//! gets nothing twice.

use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::stream;
use gloveport_executor::Execution;
use gloveport_protocol::exec::ExecState;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CACHE_CONTROL};
use serde::Serialize;

use super::{
    error::ApiError,
    follower::{Follower, Found},
    text::{Piece, whole_characters},
};
use crate::answer::with_type;

/// Type of a stream of events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// Header with the id of the command, which is known before its first event.
pub(super) const EXEC_ID: HeaderName = HeaderName::from_static("x-exec-id");
/// Time without an event after which a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Most bytes of output in one event.
const PIECE: usize = 32 * 1024;

#[derive(Debug, Serialize)]
struct Start<'a> {
    id: &'a str,
    offset: u64,
    repeated: bool,
}

#[derive(Debug, Serialize)]
struct TextOutput<'a> {
    offset: u64,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct BinaryOutput {
    offset: u64,
    base64: String,
}

#[derive(Debug, Serialize)]
struct Waiting {
    waiting_for_input: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hides_input: bool,
}

#[derive(Debug, Serialize)]
struct Gap {
    from: u64,
    to: u64,
}

#[derive(Debug, Serialize)]
struct Failure {
    message: String,
}

/// The offset that a reconnecting client continues from.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    text.trim().parse().map(Some).map_err(|_| ApiError::LastEventId(text.into_owned()))
}

/// The answer that follows a command from an offset, or from its beginning.
pub(super) fn answer(execution: Arc<Execution>, repeated: bool, from: Option<u64>) -> Result<Response, ApiError> {
    let id = HeaderValue::from_str(execution.id());
    let events = Events {
        follower: Follower::new(execution, from)?,
        repeated,
        stage: Stage::Before,
        waiting: (false, false),
        held: 0,
    };
    let frames = stream::unfold(events, async |mut events| {
        let frame = events.next().await?;
        Some((Ok::<_, Infallible>(frame), events))
    });
    let mut response = with_type(StatusCode::OK, EVENT_STREAM, Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Asks a proxy in between not to collect events.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    if let Ok(id) = id {
        headers.insert(EXEC_ID, id);
    }
    Ok(response)
}

/// How far the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the `start` event.
    Before,
    /// Behind it.
    Begun,
    /// Behind the last event.
    Over,
}

struct Events {
    follower: Follower,
    repeated: bool,
    stage: Stage,
    /// What the last `waiting` event said.
    waiting: (bool, bool),
    /// Bytes at the cursor that are the beginning of a character.
    held: usize,
}

impl Events {
    /// The next events, as soon as there are some; `None` behind the last one.
    async fn next(&mut self) -> Option<Bytes> {
        if self.stage == Stage::Over {
            return None;
        }
        loop {
            let state = self.follower.state();
            let mut frames = String::new();
            self.step(&state, &mut frames);
            if !frames.is_empty() {
                return Some(frames.into());
            }
            if tokio::time::timeout(KEEP_ALIVE, self.follower.changed(self.held)).await.is_err() {
                return Some(Bytes::from_static(b": keep-alive\n\n"));
            }
        }
    }

    /// Writes what there is to tell.
    fn step(&mut self, state: &ExecState, frames: &mut String) {
        let found = match self.follower.look(state, PIECE) {
            Ok(found) => found,
            Err(error) => {
                self.stage = Stage::Over;
                let cursor = self.follower.cursor().unwrap_or(0);
                return event(frames, "error", cursor, &Failure { message: error.to_string() });
            }
        };
        let Some(offset) = self.follower.cursor() else { return };
        if matches!(found, Found::Nothing) {
            return;
        }
        if self.stage == Stage::Before {
            self.stage = Stage::Begun;
            let id = self.follower.execution().id();
            event(frames, "start", offset, &Start { id, offset, repeated: self.repeated });
        }
        match found {
            Found::Nothing => {}
            Found::Bytes(bytes) => self.output(frames, offset, &bytes, state),
            Found::Gap(to) => {
                self.follower.advance(to);
                event(frames, "gap", to, &Gap { from: offset, to });
            }
            Found::End => {
                if let ExecState::Ended(end) = state.clone().counted_from_its_start() {
                    self.stage = Stage::Over;
                    event(frames, "exit", offset, &end);
                }
            }
        }
    }

    fn output(&mut self, frames: &mut String, offset: u64, bytes: &[u8], state: &ExecState) {
        let piece = match whole_characters(bytes) {
            // The rest of the character does not come any more, or its beginning would stand there for ever.
            Piece::Text("") | Piece::Binary([]) if matches!(state, ExecState::Ended(_)) => Piece::Binary(bytes),
            piece => piece,
        };
        let length = match piece {
            Piece::Text(text) => text.len(),
            Piece::Binary(bytes) => bytes.len(),
        };
        self.held = bytes.len() - length;
        if length > 0 {
            let behind = offset + length as u64;
            self.follower.advance(behind);
            match piece {
                Piece::Text(text) => event(frames, "output", behind, &TextOutput { offset, text }),
                Piece::Binary(bytes) => {
                    event(frames, "output", behind, &BinaryOutput { offset, base64: STANDARD.encode(bytes) });
                }
            }
            return;
        }
        // Only what was written before the question counts as shown when a program waits for the answer.
        if let ExecState::Running { waiting_for_input, hides_input, .. } = *state
            && (waiting_for_input, hides_input) != self.waiting
        {
            self.waiting = (waiting_for_input, hides_input);
            event(frames, "waiting", offset, &Waiting { waiting_for_input, hides_input });
        }
    }
}

fn event(frames: &mut String, name: &str, id: u64, data: &impl Serialize) {
    match serde_json::to_string(data) {
        Ok(data) => {
            // Writing to a `String` cannot fail.
            let _written = write!(frames, "event: {name}\nid: {id}\ndata: {data}\n\n");
        }
        Err(error) => tracing::error!(%error, name, "an event can not be written as JSON"),
    }
}

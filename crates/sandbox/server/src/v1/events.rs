//! A command as a stream of server-sent events.
//!
//! The id of each event is the offset behind it in the command's output, so a client that reconnects with `Last-Event-ID` misses nothing and
//! gets nothing twice.

use std::{collections::VecDeque, sync::Arc};

use axum::response::{Response, sse::Event};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::stream;
use gloveport_executor::Execution;
use gloveport_protocol::exec::ExecState;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

use super::{
    error::ApiError,
    follower::{Follower, Found},
    sse::{self, Failure},
    text::{Piece, whole_characters},
};

/// Header with the id of the command, which is known before its first event.
pub(super) const EXEC_ID: HeaderName = HeaderName::from_static("x-exec-id");
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
        found: VecDeque::new(),
    };
    let mut response = sse::answer(stream::unfold(events, async |mut events| Some((events.next().await?, events))));
    if let Ok(id) = id {
        response.headers_mut().insert(EXEC_ID, id);
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
    /// What there is to tell.
    found: VecDeque<Event>,
}

impl Events {
    /// The next event, as soon as there is one; `None` behind the last one.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.found.pop_front() {
                return Some(event);
            }
            if self.stage == Stage::Over {
                return None;
            }
            let state = self.follower.state();
            self.step(&state);
            if self.found.is_empty() {
                self.follower.changed(self.held).await;
            }
        }
    }

    fn tell(&mut self, name: &str, id: u64, data: &impl Serialize) {
        self.found.push_back(sse::event(name, data).id(id.to_string()));
    }

    /// Looks for what there is to tell.
    fn step(&mut self, state: &ExecState) {
        let found = match self.follower.look(state, PIECE) {
            Ok(found) => found,
            Err(error) => {
                self.stage = Stage::Over;
                let cursor = self.follower.cursor().unwrap_or(0);
                return self.tell("error", cursor, &Failure { message: error.to_string() });
            }
        };
        let Some(offset) = self.follower.cursor() else { return };
        if matches!(found, Found::Nothing) {
            return;
        }
        if self.stage == Stage::Before {
            self.stage = Stage::Begun;
            let id = self.follower.execution().id();
            let start = sse::event("start", &Start { id, offset, repeated: self.repeated });
            self.found.push_back(start.id(offset.to_string()));
        }
        match found {
            Found::Nothing => {}
            Found::Bytes(bytes) => self.output(offset, &bytes, state),
            Found::Gap(to) => {
                self.follower.advance(to);
                self.tell("gap", to, &Gap { from: offset, to });
            }
            Found::End => {
                if let ExecState::Ended(end) = state.clone().counted_from_its_start() {
                    self.stage = Stage::Over;
                    self.tell("exit", offset, &end);
                }
            }
        }
    }

    fn output(&mut self, offset: u64, bytes: &[u8], state: &ExecState) {
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
                Piece::Text(text) => self.tell("output", behind, &TextOutput { offset, text }),
                Piece::Binary(bytes) => {
                    self.tell("output", behind, &BinaryOutput { offset, base64: STANDARD.encode(bytes) });
                }
            }
            return;
        }
        // Only what was written before the question counts as shown when a program waits for the answer.
        if let ExecState::Running { waiting_for_input, hides_input, .. } = *state
            && (waiting_for_input, hides_input) != self.waiting
        {
            self.waiting = (waiting_for_input, hides_input);
            self.tell("waiting", offset, &Waiting { waiting_for_input, hides_input });
        }
    }
}

//! A process as a stream of server-sent events: `output`, `lost`, and one `exit` at last.

use axum::response::{Response, sse::Event};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::stream;
use gloveport_executor::processes::Follower;
use gloveport_protocol::processes::{ProcessEvent, ProcessStream};
use serde::Serialize;

use super::super::sse::{self, event};

#[derive(Debug, Serialize)]
struct Text<'a> {
    stream: ProcessStream,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct Binary {
    stream: ProcessStream,
    base64: String,
}

#[derive(Debug, Serialize)]
struct Lost {
    bytes: u64,
}

/// The answer that tells what a process does.
pub(super) fn answer(follower: Follower) -> Response {
    sse::answer(stream::unfold(follower, async |mut follower| Some((told(&follower.next().await?), follower))))
}

fn told(happened: &ProcessEvent) -> Event {
    match happened {
        // A character may be cut in two, and then both of its pieces are bytes.
        ProcessEvent::Output { stream, bytes } => match std::str::from_utf8(bytes) {
            Ok(text) => event("output", &Text { stream: *stream, text }),
            Err(_) => event("output", &Binary { stream: *stream, base64: STANDARD.encode(bytes) }),
        },
        ProcessEvent::Lost(bytes) => event("lost", &Lost { bytes: *bytes }),
        ProcessEvent::Ended(end) => event("exit", end),
    }
}

//! `GET /v1/exec/{id}/output`: the raw bytes of a command.

use std::{io, sync::Arc};

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream;
use gloveport_protocol::exec::ExecState;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::ACCEPT};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    Id,
    error::ApiError,
    events, find,
    follower::{Follower, Found},
    sse::EVENT_STREAM,
};
use crate::{
    answer::{ErrorEnvelope, with_type},
    app::App,
    docs::Binary,
};

/// Bytes of an answer that does not follow the command, unless `max` says less.
const ANSWER: u64 = 1024 * 1024;
/// Bytes that are read at once for one that does.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OutputQuery {
    /// Where to begin; where the output does, if it is absent.
    offset: Option<u64>,
    /// Goes on until the command has ended.
    #[serde(default)]
    #[param(default = false)]
    follow: bool,
    /// Most bytes; at most 1 MiB without follow.
    max: Option<u64>,
}

#[utoipa::path(
    get,
    path = "/v1/exec/{id}/output",
    tag = "commands",
    operation_id = "read_output",
    summary = "Read the output of a command",
    description = "Offsets count from the beginning of its output. With `Accept: text/event-stream` the answer is the stream of \
        events from that offset.",
    params(
        ("id" = String, Path, description = "Id of the command.", min_length = 1, max_length = 128),
        OutputQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "Offset to continue a stream of events from.", minimum = 0),
    ),
    responses(
        (status = 200, description = "The bytes, or the events.",
            content((Binary = "application/octet-stream"), (String = "text/event-stream")),
            headers(
                ("X-Output-Offset" = u64, description = "Offset of the first byte; absent for a command that waits."),
                ("X-Output-Next" = u64, description = "Offset behind the last byte; absent with follow=true."),
                ("X-Output-State" = String, description = "queued, running or ended, when the answer began."),
            )),
        (status = 404, description = "No command has this id.", body = ErrorEnvelope),
        (status = 410, description = "The bytes are no longer kept.", body = ErrorEnvelope),
        (status = 416, description = "The offset is behind the end.", body = ErrorEnvelope),
        (status = 500, description = "The output cannot be read.", body = ErrorEnvelope),
    ),
)]
pub(super) async fn output(
    State(app): State<Arc<App>>,
    id: Id,
    query: Result<Query<OutputQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let execution = find(&app, id)?;
    let wants_events = headers
        .get_all(ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.split([',', ';']).any(|kind| kind.trim() == EVENT_STREAM)));
    if wants_events {
        let from = events::last_event_id(&headers)?.or(query.offset);
        return events::answer(execution, true, from);
    }

    let mut follower = Follower::new(execution, query.offset)?;
    let state = follower.state();
    let most = query.max.unwrap_or(if query.follow { u64::MAX } else { ANSWER });
    let most_now = if query.follow { 0 } else { usize::try_from(most.min(ANSWER)).unwrap_or(0) };
    let bytes = match follower.look(&state, most_now)? {
        Found::Bytes(bytes) => bytes,
        Found::Nothing | Found::End => Vec::new(),
        Found::Gap(oldest) => {
            let id = follower.execution().id().to_owned();
            return Err(ApiError::Gone { id, asked: follower.cursor().unwrap_or(0), oldest });
        }
    };
    let cursor = follower.cursor();
    let next = cursor.map(|cursor| cursor + bytes.len() as u64).filter(|_| !query.follow);
    let body = if query.follow { following(follower, most) } else { bytes.into() };
    let mut response = with_type(StatusCode::OK, "application/octet-stream", body);
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("x-output-state"), HeaderValue::from_static(name(&state)));
    for (name, offset) in [("x-output-offset", cursor), ("x-output-next", next)] {
        if let Some(offset) = offset {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(offset));
        }
    }
    Ok(response)
}

fn name(state: &ExecState) -> &'static str {
    match state {
        ExecState::Queued => "queued",
        ExecState::Running { .. } => "running",
        ExecState::Ended(_) => "ended",
    }
}

/// The bytes up to the end of the command. Bytes that are gone break the answer off, so that nobody takes it for a whole.
fn following(follower: Follower, most: u64) -> Body {
    let pieces = stream::unfold((follower, most), async |(mut follower, most)| {
        let piece = usize::try_from(most).unwrap_or(PIECE).min(PIECE);
        loop {
            if piece == 0 {
                return None;
            }
            let state = follower.state();
            let bytes = match follower.look(&state, piece) {
                Ok(Found::Bytes(bytes)) => bytes,
                Ok(Found::Nothing) => Vec::new(),
                Ok(Found::End) => return None,
                Ok(Found::Gap(_)) => {
                    let error = io::Error::other("output is no longer kept");
                    return Some((Err(error), (follower, 0)));
                }
                Err(error) => return Some((Err(io::Error::other(error.to_string())), (follower, 0))),
            };
            if bytes.is_empty() {
                follower.changed(0).await;
                continue;
            }
            let length = bytes.len() as u64;
            follower.advance(follower.cursor().unwrap_or(0) + length);
            return Some((Ok(Bytes::from(bytes)), (follower, most - length)));
        }
    });
    Body::from_stream(pieces)
}

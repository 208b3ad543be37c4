//! What happens to files, as a stream of server-sent events.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream;
use gloveport_executor::files::watch::Watch;
use http::{HeaderName, HeaderValue, StatusCode, header::CACHE_CONTROL};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::path;
use crate::{answer::with_type, app::App, v1::blocking::blocking, v1::error::ApiError};

/// Time without an event after which a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WatchQuery {
    /// The path; a relative one begins where the tools start. Without one it is that place.
    #[param(min_length = 1)]
    path: Option<String>,
    /// Instead of path: the bytes of one that is not UTF-8, in base64.
    #[param(min_length = 1)]
    path_base64: Option<String>,
    /// Everything below it, too.
    #[serde(default)]
    #[param(default = false)]
    recursive: bool,
}

#[derive(Debug, Serialize)]
struct Ready<'a> {
    path: &'a str,
    recursive: bool,
}

#[derive(Debug, Serialize)]
struct Failure {
    message: String,
}

/// Sends `ready` when everything is watched, then `change` for each event, and `end` when what is watched is gone.
#[utoipa::path(
    get,
    path = "/v1/files/watch",
    tag = "files",
    operation_id = "watch_files",
    summary = "Watch files",
    description = "Streams events: `ready` {path, recursive} when everything is watched, `change` (FileEvent), and `end` when what \
        is watched is gone.",
    params(WatchQuery),
    responses((status = 200, description = "The events.", body = String, content_type = "text/event-stream")),
)]
pub(super) async fn watch(
    State(app): State<Arc<App>>,
    query: Result<Query<WatchQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let path =
        path::resolve_or_start(app.executor.working_directory(), query.path.as_deref(), query.path_base64.as_deref())?;
    let recursive = query.recursive;
    let ready = frame("ready", &Ready { path: &path.to_string_lossy(), recursive });
    let runtime = tokio::runtime::Handle::current();
    let watch = blocking(move || {
        let _context = runtime.enter();
        Watch::start(&path, recursive).map_err(ApiError::from)
    })
    .await?;
    let frames = stream::unfold((Some(watch), Some(ready)), async |(watch, ready)| {
        if let Some(ready) = ready {
            return Some((Ok::<_, Infallible>(ready), (watch, None)));
        }
        let mut watch = watch?;
        let frame = match tokio::time::timeout(KEEP_ALIVE, watch.next()).await {
            Err(_) => Bytes::from_static(b": keep-alive\n\n"),
            Ok(Ok(Some(event))) => frame("change", &event),
            Ok(Ok(None)) => return Some((Ok(frame("end", &serde_json::json!({}))), (None, None))),
            Ok(Err(error)) => {
                return Some((Ok(frame("error", &Failure { message: error.to_string() })), (None, None)));
            }
        };
        Some((Ok(frame), (Some(watch), None)))
    });
    let mut response = with_type(StatusCode::OK, "text/event-stream", Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

fn frame(name: &str, data: &impl Serialize) -> Bytes {
    match serde_json::to_string(data) {
        Ok(data) => format!("event: {name}\ndata: {data}\n\n").into(),
        Err(error) => {
            tracing::error!(%error, name, "an event can not be written as JSON");
            Bytes::from_static(b": an event was lost\n\n")
        }
    }
}

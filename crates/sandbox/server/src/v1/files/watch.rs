//! What happens to files, as a stream of server-sent events.

use std::sync::Arc;

use axum::{
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use futures_util::{StreamExt as _, stream};
use gloveport_executor::files::watch::Watch;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::path;
use crate::{
    app::App,
    v1::{
        blocking::blocking,
        error::ApiError,
        sse::{self, Failure, event},
    },
};

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
    let ready = event("ready", &Ready { path: &path.to_string_lossy(), recursive });
    let runtime = tokio::runtime::Handle::current();
    let watch = blocking(move || {
        let _context = runtime.enter();
        Watch::start(&path, recursive).map_err(ApiError::from)
    })
    .await?;
    let changes = stream::unfold(Some(watch), async |watch| {
        let mut watch = watch?;
        Some(match watch.next().await {
            Ok(Some(change)) => (event("change", &change), Some(watch)),
            Ok(None) => (event("end", &serde_json::json!({})), None),
            Err(error) => (event("error", &Failure { message: error.to_string() }), None),
        })
    });
    Ok(sse::answer(stream::iter([ready]).chain(changes)))
}

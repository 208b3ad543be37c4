//! `POST /list_files` (`action-execution-api` 2.6).

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use gloveport_executor::files;
use gloveport_protocol::{ErrorBody, ListFilesRequest};
use http::StatusCode;
use serde_json::Value;

use crate::{
    answer,
    app::App,
    body::{self, JsonError},
};

#[utoipa::path(
    post,
    path = "/list_files",
    tag = "openhands-0.62",
    operation_id = "list_files",
    summary = "List a directory",
    description = "Directories first, with a trailing slash. A directory that cannot be listed has no entries.",
    request_body = ListFilesRequest,
    responses(
        (status = 200, description = "The names.", body = Vec<String>),
        (status = 500, description = "The body does not have the form.", body = ErrorBody),
    ),
)]
pub(super) async fn list_files(State(app): State<Arc<App>>, body: Body) -> Response {
    let request = match body::json(body, &app.options.limits).await {
        // A sequence would be read as a structure, too.
        Ok(object @ Value::Object(_)) => serde_json::from_value::<ListFilesRequest>(object).map_err(JsonError::from),
        Ok(_) => return answer::unexpected(),
        Err(error) => Err(error),
    };
    let request = match request {
        Ok(request) => request,
        Err(JsonError::Body(error)) => return error.answer(),
        Err(error) => {
            tracing::warn!(%error, "/list_files: the body is not an object with a path");
            return answer::unexpected();
        }
    };
    let directory = match &request.path {
        Some(path) => app.executor.working_directory().join(path),
        None => app.executor.working_directory().clone(),
    };
    match tokio::task::spawn_blocking(move || files::names(&directory).unwrap_or_default()).await {
        Ok(names) => answer::json(StatusCode::OK, &names),
        Err(error) => {
            tracing::error!(%error, "/list_files: the listing did not end");
            answer::unexpected()
        }
    }
}

//! `POST /list_files` (`action-execution-api` 2.6).

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use gloveport_executor::files;
use gloveport_protocol::ListFilesRequest;
use http::StatusCode;

use crate::{answer, app::App, body};

pub(super) async fn list_files(State(app): State<Arc<App>>, body: Body) -> Response {
    let bytes = match body::read(body, &app.options.limits).await {
        Ok(bytes) => bytes,
        Err(error) => return error.answer(),
    };
    // A sequence would be read as a structure, too.
    let is_object = bytes.trim_ascii_start().first() == Some(&b'{');
    let request = match serde_json::from_slice::<ListFilesRequest>(&bytes) {
        Ok(request) if is_object => request,
        Ok(_) => return answer::unexpected(),
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

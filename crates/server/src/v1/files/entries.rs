//! Looking at, searching and changing entries of the file system.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use gloveport_executor::files;
use gloveport_protocol::files::{GlobRequest, GrepRequest, MkdirRequest, MoveRequest, RemoveRequest};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{blocking, path};
use crate::{
    answer,
    app::App,
    v1::{error::ApiError, parse},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatQuery {
    path: Option<String>,
    path_base64: Option<String>,
    #[serde(default)]
    follow: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    path: Option<String>,
    path_base64: Option<String>,
    #[serde(default = "one")]
    depth: usize,
    #[serde(default = "yes")]
    hidden: bool,
    limit: Option<usize>,
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

/// Body of the answer to a change.
#[derive(Debug, Serialize)]
struct Done {}

pub(super) async fn stat(
    State(app): State<Arc<App>>,
    query: Result<Query<StatQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let path = path::resolve(app.executor.working_directory(), query.path.as_deref(), query.path_base64.as_deref())?;
    answer_from(move || files::entry(&path, query.follow)).await
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let path =
        path::resolve_or_start(app.executor.working_directory(), query.path.as_deref(), query.path_base64.as_deref())?;
    answer_from(move || files::list(&path, query.depth, query.hidden, query.limit)).await
}

pub(super) async fn glob(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: GlobRequest = parse(&app, body).await?;
    let root = path::resolve_or_start(app.executor.working_directory(), request.path.as_deref(), None)?;
    answer_from(move || files::glob(&root, &request)).await
}

pub(super) async fn grep(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: GrepRequest = parse(&app, body).await?;
    let root = path::resolve_or_start(app.executor.working_directory(), request.path.as_deref(), None)?;
    answer_from(move || files::grep(&root, &request)).await
}

pub(super) async fn move_to(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: MoveRequest = parse(&app, body).await?;
    let from = path::resolve(app.executor.working_directory(), Some(&request.from), None)?;
    let to = path::resolve(app.executor.working_directory(), Some(&request.to), None)?;
    answer_from(move || files::move_to(&from, &to, &request).map(|()| Done {})).await
}

pub(super) async fn remove(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: RemoveRequest = parse(&app, body).await?;
    let path = path::resolve(app.executor.working_directory(), Some(&request.path), None)?;
    answer_from(move || files::remove(&path, &request).map(|()| Done {})).await
}

pub(super) async fn mkdir(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: MkdirRequest = parse(&app, body).await?;
    let path = path::resolve(app.executor.working_directory(), Some(&request.path), None)?;
    answer_from(move || files::make_directory(&path, &request).map(|()| Done {})).await
}

/// Works where it holds up nothing else, and answers with what came of it.
async fn answer_from<T: Serialize + Send + 'static>(
    work: impl FnOnce() -> Result<T, files::FileError> + Send + 'static,
) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &blocking(move || Ok(work()?)).await?))
}

//! Looking at, searching and changing entries of the file system.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use gloveport_executor::files;
use gloveport_protocol::files::{
    FileEntry, FileList, GlobRequest, GrepMatches, GrepRequest, MkdirRequest, MoveRequest, RemoveRequest,
};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::path;
use crate::{
    answer,
    app::App,
    v1::blocking::blocking,
    v1::{error::ApiError, parse},
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StatQuery {
    /// The path; a relative one begins where the tools start. This or path_base64 is needed.
    #[param(min_length = 1)]
    path: Option<String>,
    /// Instead of path: the bytes of one that is not UTF-8, in base64.
    #[param(min_length = 1)]
    path_base64: Option<String>,
    /// What a link leads to, and not the link.
    #[serde(default)]
    #[param(default = false)]
    follow: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// The path; a relative one begins where the tools start. Without one it is that place.
    #[param(min_length = 1)]
    path: Option<String>,
    /// Instead of path: the bytes of one that is not UTF-8, in base64.
    #[param(min_length = 1)]
    path_base64: Option<String>,
    /// Levels.
    #[serde(default = "one")]
    #[param(default = 1)]
    depth: usize,
    /// Names that begin with a dot, too.
    #[serde(default = "yes")]
    #[param(default = true)]
    hidden: bool,
    /// Most entries; 10,000 if absent, 100,000 at most.
    limit: Option<usize>,
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

/// Body of the answer to a change.
#[derive(Debug, Serialize, ToSchema)]
struct Done {}

#[utoipa::path(
    get,
    path = "/v1/files/stat",
    tag = "files",
    operation_id = "stat_file",
    summary = "Tell what is at a path",
    description = "A link itself, or what it leads to with follow=true.",
    params(StatQuery),
    responses((status = 200, description = "The entry.", body = FileEntry)),
)]
pub(super) async fn stat(
    State(app): State<Arc<App>>,
    query: Result<Query<StatQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let path = path::resolve(app.executor.working_directory(), query.path.as_deref(), query.path_base64.as_deref())?;
    answer_from(move || files::entry(&path, query.follow)).await
}

#[utoipa::path(
    get,
    path = "/v1/files/list",
    tag = "files",
    operation_id = "list_directory",
    summary = "List what is below a directory",
    description = "Sorted bytewise. Links are not followed.",
    params(ListQuery),
    responses((status = 200, description = "The entries.", body = FileList)),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let path =
        path::resolve_or_start(app.executor.working_directory(), query.path.as_deref(), query.path_base64.as_deref())?;
    answer_from(move || files::list(&path, query.depth, query.hidden, query.limit)).await
}

#[utoipa::path(
    post,
    path = "/v1/files/glob",
    tag = "files",
    operation_id = "find_files",
    summary = "Find names",
    description = "Ends after a minute with what it has.",
    request_body = GlobRequest,
    responses((status = 200, description = "The entries.", body = FileList)),
)]
pub(super) async fn glob(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: GlobRequest = parse(&app, body).await?;
    let root = path::resolve_or_start(app.executor.working_directory(), request.path.as_deref(), None)?;
    answer_from(move || files::glob(&root, &request)).await
}

#[utoipa::path(
    post,
    path = "/v1/files/grep",
    tag = "files",
    operation_id = "search_files",
    summary = "Find lines",
    description = "Binary files are passed over. Ends after a minute with what it has.",
    request_body = GrepRequest,
    responses((status = 200, description = "The lines.", body = GrepMatches)),
)]
pub(super) async fn grep(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: GrepRequest = parse(&app, body).await?;
    let root = path::resolve_or_start(app.executor.working_directory(), request.path.as_deref(), None)?;
    answer_from(move || files::grep(&root, &request)).await
}

#[utoipa::path(
    post,
    path = "/v1/files/move",
    tag = "files",
    operation_id = "move_file",
    summary = "Move a file or directory",
    description = "Within one file system.",
    request_body = MoveRequest,
    responses((status = 200, description = "Done.", body = Done)),
)]
pub(super) async fn move_to(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: MoveRequest = parse(&app, body).await?;
    let from = path::resolve(app.executor.working_directory(), Some(&request.from), None)?;
    let to = path::resolve(app.executor.working_directory(), Some(&request.to), None)?;
    answer_from(move || files::move_to(&from, &to, &request).map(|()| Done {})).await
}

#[utoipa::path(
    post,
    path = "/v1/files/remove",
    tag = "files",
    operation_id = "remove_file",
    summary = "Remove a file or directory",
    description = "Links are not followed.",
    request_body = RemoveRequest,
    responses((status = 200, description = "Done.", body = Done)),
)]
pub(super) async fn remove(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: RemoveRequest = parse(&app, body).await?;
    let path = path::resolve(app.executor.working_directory(), Some(&request.path), None)?;
    answer_from(move || files::remove(&path, &request).map(|()| Done {})).await
}

#[utoipa::path(
    post,
    path = "/v1/files/mkdir",
    tag = "files",
    operation_id = "make_directory",
    summary = "Make a directory",
    request_body = MkdirRequest,
    responses((status = 200, description = "Done.", body = Done)),
)]
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

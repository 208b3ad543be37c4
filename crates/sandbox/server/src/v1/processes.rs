//! Programs with pipes.

mod stream;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, Query, State, rejection::QueryRejection},
    response::Response,
};
use gloveport_executor::Process;
use gloveport_protocol::processes::{ProcessFrom, ProcessList, ProcessRequest, ProcessSignal, ProcessStatus};
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Id, error::ApiError, parse};
use crate::{
    answer::{self, ErrorEnvelope},
    app::App,
    body,
    docs::Binary,
    route::Route,
};

/// Most bytes of input in one request.
const INPUT: usize = 4 * 1024 * 1024;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/processes", list),
        Route::post("/v1/processes", start),
        Route::get("/v1/processes/{id}", status),
        Route::delete("/v1/processes/{id}", remove),
        Route::get("/v1/processes/{id}/output", output),
        Route::post("/v1/processes/{id}/input", input),
        Route::delete("/v1/processes/{id}/input", close_input),
        Route::post("/v1/processes/{id}/signal", signal),
    ]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(paths(list, start, status, remove, output, input, close_input, signal))]
pub(super) struct Operations;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OutputQuery {
    /// `start` begins with what is kept, `now` with what comes now.
    #[serde(default)]
    #[param(inline)]
    from: ProcessFrom,
}

#[utoipa::path(
    get,
    path = "/v1/processes",
    tag = "processes",
    operation_id = "list_processes",
    summary = "List the processes",
    description = "Those that were started here and run, and the latest that ended; with the user that they work as.",
    responses((status = 200, description = "The processes.", body = ProcessList)),
)]
async fn list(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &app.executor.processes().list())
}

#[utoipa::path(
    post,
    path = "/v1/processes",
    tag = "processes",
    operation_id = "start_process",
    summary = "Start a process",
    description = "A program with pipes, which lives on when nobody follows it. A request that is repeated starts another one.",
    request_body = ProcessRequest,
    responses(
        (status = 201, description = "It runs.", body = ProcessStatus),
        (status = 400, description = "The request, the directory or the program is not what it must be.", body = ErrorEnvelope),
        (status = 429, description = "Too many processes run.", body = ErrorEnvelope),
        (status = 500, description = "It cannot be started.", body = ErrorEnvelope),
    ),
)]
async fn start(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: ProcessRequest = parse(&app, body).await?;
    app.action_arrived();
    let process = app.executor.processes().start(request).await?;
    Ok(answer::json(StatusCode::CREATED, &process.status()))
}

#[utoipa::path(
    get,
    path = "/v1/processes/{id}",
    tag = "processes",
    operation_id = "get_process",
    summary = "Tell how a process stands",
    params(("id" = String, Path, description = "Id of the process.", min_length = 1, max_length = 128)),
    responses(
        (status = 200, description = "How it stands.", body = ProcessStatus),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
    ),
)]
async fn status(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &find(&app, id)?.status()))
}

#[utoipa::path(
    delete,
    path = "/v1/processes/{id}",
    tag = "processes",
    operation_id = "remove_process",
    summary = "End a process",
    description = "It and everything that it started are asked to end, killed after half a second, and forgotten.",
    params(("id" = String, Path, description = "Id of the process.", min_length = 1, max_length = 128)),
    responses(
        (status = 200, description = "How it ended.", body = ProcessStatus),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
    ),
)]
async fn remove(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    let Path(id) = id?;
    Ok(answer::json(StatusCode::OK, &app.executor.processes().remove(&id).await?))
}

#[utoipa::path(
    get,
    path = "/v1/processes/{id}/output",
    tag = "processes",
    operation_id = "follow_process",
    summary = "Follow a process",
    description = "Streams events: `output` {stream, text} or {stream, base64}, `lost` {bytes} for what is not kept any more, and \
        at last `exit` {exit_code, signal}. The last MiB is kept; whoever follows holds the process back for up to a minute. \
        Closing the stream does not end the process.",
    params(("id" = String, Path, description = "Id of the process.", min_length = 1, max_length = 128), OutputQuery),
    responses(
        (status = 200, description = "The events.", body = String, content_type = "text/event-stream"),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
        (status = 429, description = "Too many follow it.", body = ErrorEnvelope),
    ),
)]
async fn output(
    State(app): State<Arc<App>>,
    id: Id,
    query: Result<Query<OutputQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let process = find(&app, id)?;
    let Query(query) = query?;
    Ok(stream::answer(process.follow(query.from)?))
}

#[utoipa::path(
    post,
    path = "/v1/processes/{id}/input",
    tag = "processes",
    operation_id = "write_to_process",
    summary = "Give input to a process",
    description = "Answers when the process has taken it, or when the pipe has. Up to 4 MiB at a time.",
    params(("id" = String, Path, description = "Id of the process.", min_length = 1, max_length = 128)),
    request_body(content = Binary, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "It is taken.", body = ProcessStatus),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
        (status = 409, description = "It takes no input, or does not take it in time.", body = ErrorEnvelope),
    ),
)]
async fn input(State(app): State<Arc<App>>, id: Id, body: Body) -> Result<Response, ApiError> {
    let process = find(&app, id)?;
    let bytes = body::bytes_within(INPUT, body, &app.options.limits).await?;
    process.write(&bytes).await?;
    Ok(answer::json(StatusCode::OK, &process.status()))
}

#[utoipa::path(
    delete,
    path = "/v1/processes/{id}/input",
    tag = "processes",
    operation_id = "close_process_input",
    summary = "End the input of a process",
    description = "Twice is not an error.",
    params(("id" = String, Path, description = "Id of the process.", min_length = 1, max_length = 128)),
    responses(
        (status = 200, description = "It is ended.", body = ProcessStatus),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
        (status = 409, description = "It was started without input.", body = ErrorEnvelope),
    ),
)]
async fn close_input(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    let process = find(&app, id)?;
    process.close_input().await?;
    Ok(answer::json(StatusCode::OK, &process.status()))
}

#[utoipa::path(
    post,
    path = "/v1/processes/{id}/signal",
    tag = "processes",
    operation_id = "signal_process",
    summary = "Send a signal to a process",
    params(("id" = String, Path, description = "Id of the process.", min_length = 1, max_length = 128)),
    request_body = ProcessSignal,
    responses(
        (status = 200, description = "It is sent.", body = ProcessStatus),
        (status = 400, description = "There is no such signal.", body = ErrorEnvelope),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
        (status = 409, description = "It has ended.", body = ErrorEnvelope),
    ),
)]
async fn signal(State(app): State<Arc<App>>, id: Id, body: Body) -> Result<Response, ApiError> {
    let process = find(&app, id)?;
    let signal: ProcessSignal = parse(&app, body).await?;
    process.signal(&signal.name, signal.group)?;
    Ok(answer::json(StatusCode::OK, &process.status()))
}

fn find(app: &App, id: Id) -> Result<Arc<Process>, ApiError> {
    let Path(id) = id?;
    Ok(app.executor.processes().find(&id)?)
}

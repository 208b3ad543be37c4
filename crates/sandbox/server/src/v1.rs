//! The native API: commands that are known by an id, output that can be read from any offset, files, terminals, IPython
//! kernels, and the browser.

mod blocking;
mod browser;
mod error;
mod events;
mod files;
pub(crate) mod follower;
mod kernels;
mod output;
mod plugins;
mod processes;
mod request;
mod sandbox;
mod sse;
mod terminals;
mod text;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, Query, State, rejection::QueryRejection},
    response::Response,
};
use gloveport_executor::Execution;
use gloveport_protocol::exec::{ExecInput, ExecRequest, ExecStatus};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    answer::{self, ErrorEnvelope},
    app::App,
    route::Route,
};
pub(crate) use browser::lets_in_itself;
pub(crate) use error::ApiError as FileAnswerError;
use error::ApiError;
pub(crate) use files::{file_answer, file_pieces};
use request::{Id, parse};
pub(crate) use sandbox::{PAUSED, works_while_paused};

pub(crate) fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::get("/v1/exec", list),
        Route::post("/v1/exec", start),
        Route::get("/v1/exec/{id}", status),
        Route::delete("/v1/exec/{id}", cancel),
        Route::get("/v1/exec/{id}/output", output::output),
        Route::post("/v1/exec/{id}/input", input),
        Route::post("/v1/exec/{id}/interrupt", interrupt),
    ];
    routes.extend(files::routes());
    routes.extend(terminals::routes());
    routes.extend(processes::routes());
    routes.extend(kernels::routes());
    routes.extend(browser::routes());
    routes.extend(plugins::routes());
    routes.extend(sandbox::routes());
    routes
}

/// What the document of the interface says of these and of all below.
#[cfg(test)]
pub(crate) fn operations() -> Vec<utoipa::openapi::OpenApi> {
    #[derive(utoipa::OpenApi)]
    #[openapi(paths(list, start, status, cancel, input, interrupt, output::output))]
    struct Commands;

    use utoipa::OpenApi as _;

    vec![
        Commands::openapi(),
        files::Operations::openapi(),
        terminals::Operations::openapi(),
        processes::Operations::openapi(),
        kernels::Operations::openapi(),
        browser::Operations::openapi(),
        plugins::Operations::openapi(),
        sandbox::Operations::openapi(),
    ]
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StartQuery {
    /// False answers at once.
    #[serde(default = "yes")]
    #[param(default = true)]
    follow: bool,
}

fn yes() -> bool {
    true
}

/// Body of the answer to `GET /v1/exec`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecList)]
struct List {
    /// The commands.
    execs: Vec<ExecStatus>,
}

/// Starts a command, or follows the one that the same request started before. Dropping the stream does not stop it.
#[utoipa::path(
    post,
    path = "/v1/exec",
    tag = "commands",
    operation_id = "run_command",
    summary = "Run a command",
    description = "Streams events: `start` {id, offset, repeated}, `output` {offset, text} or {offset, base64}, `waiting` \
        {waiting_for_input, hides_input}, `gap` {from, to} for bytes that are no longer kept, `error` {message}, and `exit` (ExecEnd). \
        The id of an event is the offset behind it. Repeating the request with the same id follows the command that runs; \
        with Last-Event-ID from there on, and then it is never started again. The header X-Exec-Id tells the id at once. \
        Closing the stream does not end the command.",
    params(
        StartQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "Offset to continue from.", minimum = 0),
    ),
    request_body = ExecRequest,
    responses(
        (status = 200, description = "The events.", body = String, content_type = "text/event-stream",
            headers(("X-Exec-Id" = String, description = "Id of the command."))),
        (status = 202, description = "Started or known, with follow=false.", body = ExecStatus),
        (status = 400, description = "A wrong field, value, query or Last-Event-ID.", body = ErrorEnvelope),
        (status = 404, description = "Last-Event-ID was sent and no command has the id.", body = ErrorEnvelope),
        (status = 409, description = "The id was used for a different request.", body = ErrorEnvelope),
        (status = 410, description = "The bytes are no longer kept.", body = ErrorEnvelope),
        (status = 416, description = "Last-Event-ID is behind the end.", body = ErrorEnvelope),
        (status = 429, description = "Too many commands run or wait.", body = ErrorEnvelope),
        (status = 500, description = "The shell cannot be started.", body = ErrorEnvelope),
    ),
)]
async fn start(
    State(app): State<Arc<App>>,
    query: Result<Query<StartQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let from = events::last_event_id(&headers)?;
    let request: ExecRequest = parse(&app, body).await?;
    if from.is_some() {
        // Who had an event of it does not want it to run again, whatever became of it.
        app.executor.execution(request.id.as_deref().ok_or(ApiError::NoId)?)?;
    }
    let (execution, started) = app.executor.exec(request).await?;
    if !query.follow {
        return Ok(answer::json(StatusCode::ACCEPTED, &execution.status()));
    }
    events::answer(execution, !started, from)
}

#[utoipa::path(
    get,
    path = "/v1/exec",
    tag = "commands",
    operation_id = "list_commands",
    summary = "List commands",
    description = "In the order of their start.",
    responses((status = 200, description = "The commands.", body = List)),
)]
async fn list(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &List { execs: app.executor.executions() })
}

#[utoipa::path(
    get,
    path = "/v1/exec/{id}",
    tag = "commands",
    operation_id = "get_command",
    summary = "Tell how a command stands",
    params(("id" = String, Path, description = "Id of the command.", min_length = 1, max_length = 128)),
    responses(
        (status = 200, description = "Its state.", body = ExecStatus),
        (status = 404, description = "No command has this id.", body = ErrorEnvelope),
    ),
)]
async fn status(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &find(&app, id)?.status()))
}

#[utoipa::path(
    post,
    path = "/v1/exec/{id}/input",
    tag = "commands",
    operation_id = "type_into_command",
    summary = "Type into a command",
    description = "A key such as C-d is sent without Enter. The name of a key (Up, Escape, F1) presses it, and Enter follows.",
    params(("id" = String, Path, description = "Id of the command.", min_length = 1, max_length = 128)),
    request_body = ExecInput,
    responses(
        (status = 202, description = "Sent.", body = ExecStatus),
        (status = 404, description = "No command has this id.", body = ErrorEnvelope),
        (status = 409, description = "The command does not run.", body = ErrorEnvelope),
    ),
)]
async fn input(State(app): State<Arc<App>>, id: Id, body: Body) -> Result<Response, ApiError> {
    let execution = find(&app, id)?;
    let input: ExecInput = parse(&app, body).await?;
    execution.type_in(input).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &execution.status()))
}

#[utoipa::path(
    post,
    path = "/v1/exec/{id}/interrupt",
    tag = "commands",
    operation_id = "interrupt_command",
    summary = "Interrupt a command",
    description = "As C-c does.",
    params(("id" = String, Path, description = "Id of the command.", min_length = 1, max_length = 128)),
    responses(
        (status = 202, description = "Sent.", body = ExecStatus),
        (status = 404, description = "No command has this id.", body = ErrorEnvelope),
        (status = 409, description = "The command does not run.", body = ErrorEnvelope),
    ),
)]
async fn interrupt(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    let execution = find(&app, id)?;
    execution.interrupt().await?;
    Ok(answer::json(StatusCode::ACCEPTED, &execution.status()))
}

#[utoipa::path(
    delete,
    path = "/v1/exec/{id}",
    tag = "commands",
    operation_id = "cancel_command",
    summary = "Give a command up",
    description = "One that waits for its turn never begins. One that runs is interrupted, and quit 2 s later if it does not \
        end; its end tells `cancelled`. One that has ended stays as it is.",
    params(("id" = String, Path, description = "Id of the command.", min_length = 1, max_length = 128)),
    responses(
        (status = 202, description = "How it stands.", body = ExecStatus),
        (status = 404, description = "No command has this id.", body = ErrorEnvelope),
    ),
)]
async fn cancel(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    let execution = find(&app, id)?;
    execution.cancel();
    Ok(answer::json(StatusCode::ACCEPTED, &execution.status()))
}

fn find(app: &App, id: Id) -> Result<Arc<Execution>, ApiError> {
    let Path(id) = id?;
    Ok(app.executor.execution(&id)?)
}

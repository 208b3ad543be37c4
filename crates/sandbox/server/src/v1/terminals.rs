//! Terminals for people.

mod attach;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{
        Path, Query, State, WebSocketUpgrade, rejection::QueryRejection, ws::rejection::WebSocketUpgradeRejection,
    },
    response::Response,
};
use gloveport_executor::NamedTerminal;
use gloveport_protocol::terminals::{TerminalRequest, TerminalSize, TerminalStatus};
use gloveport_terminal::WindowSize;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Id, error::ApiError, parse};
use crate::{
    answer::{self, ErrorEnvelope},
    app::App,
    route::Route,
};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/terminals", list),
        Route::post("/v1/terminals", start),
        Route::get("/v1/terminals/{id}", status),
        Route::delete("/v1/terminals/{id}", remove),
        Route::post("/v1/terminals/{id}/resize", resize),
        Route::get("/v1/terminals/{id}/attach", attach),
    ]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(paths(list, start, status, remove, resize, attach))]
pub(super) struct Operations;

/// Body of the answer to `GET /v1/terminals`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TerminalList)]
struct List {
    /// Those that run, and the latest that ended.
    terminals: Vec<TerminalStatus>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AttachQuery {
    /// Offset of the output to begin at; the oldest that is kept if it is absent.
    offset: Option<u64>,
    /// New width of the terminal; together with rows.
    #[param(minimum = 1, maximum = 65535)]
    columns: Option<u16>,
    /// New height.
    #[param(minimum = 1, maximum = 65535)]
    rows: Option<u16>,
    /// Name that the client gives itself. When it comes again under this name, its connection before is closed, and the
    /// message start tells how much of its input arrived.
    #[param(pattern = "^[A-Za-z0-9._-]{1,128}$")]
    client: Option<String>,
}

#[utoipa::path(
    get,
    path = "/v1/terminals",
    tag = "terminals",
    operation_id = "list_terminals",
    summary = "List the terminals",
    description = "Those that run, and the latest that ended.",
    responses((status = 200, description = "The terminals.", body = List)),
)]
async fn list(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &List { terminals: app.executor.terminals().list() })
}

#[utoipa::path(
    post,
    path = "/v1/terminals",
    tag = "terminals",
    operation_id = "start_terminal",
    summary = "Start a terminal",
    description = "A program on a terminal of its own, which lives on when nobody is attached. A request whose id is known \
        answers with the terminal that runs and starts nothing.",
    request_body = TerminalRequest,
    responses(
        (status = 200, description = "It was started before.", body = TerminalStatus),
        (status = 201, description = "It is started.", body = TerminalStatus),
        (status = 400, description = "The request, the directory or the program is not what it must be.", body = ErrorEnvelope),
        (status = 409, description = "The id belongs to a terminal with another argv, cwd or env.", body = ErrorEnvelope),
        (status = 429, description = "Too many terminals run.", body = ErrorEnvelope),
        (status = 500, description = "The terminal cannot be opened.", body = ErrorEnvelope),
    ),
)]
async fn start(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: TerminalRequest = parse(&app, body).await?;
    let (named, added) = app.executor.terminals().start(request).await?;
    let status = if added { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::json(status, &named.status()))
}

#[utoipa::path(
    get,
    path = "/v1/terminals/{id}",
    tag = "terminals",
    operation_id = "get_terminal",
    summary = "Tell how a terminal stands",
    params(("id" = String, Path, description = "Id of the terminal.", min_length = 1, max_length = 128)),
    responses(
        (status = 200, description = "How it stands.", body = TerminalStatus),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
    ),
)]
async fn status(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &find(&app, id)?.status()))
}

#[utoipa::path(
    delete,
    path = "/v1/terminals/{id}",
    tag = "terminals",
    operation_id = "remove_terminal",
    summary = "End a terminal",
    description = "Its program and everything that it started are asked to end, killed after half a second, and forgotten.",
    params(("id" = String, Path, description = "Id of the terminal.", min_length = 1, max_length = 128)),
    responses(
        (status = 200, description = "How it ended.", body = TerminalStatus),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
    ),
)]
async fn remove(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    let Path(id) = id?;
    Ok(answer::json(StatusCode::OK, &app.executor.terminals().remove(&id).await?))
}

#[utoipa::path(
    post,
    path = "/v1/terminals/{id}/resize",
    tag = "terminals",
    operation_id = "resize_terminal",
    summary = "Set the size of a terminal",
    params(("id" = String, Path, description = "Id of the terminal.", min_length = 1, max_length = 128)),
    request_body = TerminalSize,
    responses(
        (status = 200, description = "How it stands.", body = TerminalStatus),
        (status = 400, description = "The size is not what it must be.", body = ErrorEnvelope),
        (status = 404, description = "It is not known.", body = ErrorEnvelope),
        (status = 409, description = "It has ended.", body = ErrorEnvelope),
    ),
)]
async fn resize(State(app): State<Arc<App>>, id: Id, body: Body) -> Result<Response, ApiError> {
    let named = find(&app, id)?;
    set_size(&named, parse(&app, body).await?)?;
    Ok(answer::json(StatusCode::OK, &named.status()))
}

#[utoipa::path(
    get,
    path = "/v1/terminals/{id}/attach",
    tag = "terminals",
    operation_id = "attach_terminal",
    summary = "Attach to a terminal over a WebSocket",
    description = "Binary messages are bytes of the terminal, in both directions. Text messages are JSON with a `type`. The \
        server sends `start` {id, offset, end, input} first, then `gap` {from, to}, `input` {offset}, `error` {message} and, \
        at last, `exit` {exit_code, signal}; the client sends `resize` {columns, rows} and `signal` {name}. Any number of \
        clients up to 64 may be attached; each gets the output at its own pace, and is told of a gap when it comes later \
        than output is kept. The server sends a ping every 15 s. It closes with 1000 behind the message exit, 1001 when it \
        stops, 1008 when a message is not understood or larger than 256 KiB, 4000 when the client was silent for 75 s, 4001 \
        when the same client came again, and 4002 when the output cannot be read.",
    params(("id" = String, Path, description = "Id of the terminal.", min_length = 1, max_length = 128), AttachQuery),
    responses(
        (status = 101, description = "The WebSocket is open."),
        (status = 404, description = "The terminal is not known.", body = ErrorEnvelope),
        (status = 409, description = "The client that was attached under this name does not go.", body = ErrorEnvelope),
        (status = 416, description = "The offset is behind the end of the output.", body = ErrorEnvelope),
        (status = 426, description = "The request does not ask for a WebSocket.", body = ErrorEnvelope),
        (status = 429, description = "Too many clients are attached.", body = ErrorEnvelope),
    ),
)]
async fn attach(
    State(app): State<Arc<App>>,
    id: Id,
    query: Result<Query<AttachQuery>, QueryRejection>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let named = find(&app, id)?;
    let Query(query) = query?;
    let upgrade = upgrade.map_err(|refusal| ApiError::NoWebSocket(refusal.body_text()))?;
    let end = named.terminal().output().end();
    if let Some(asked) = query.offset.filter(|asked| *asked > end) {
        return Err(ApiError::TerminalAhead { id: named.id().to_owned(), asked, end });
    }
    let size = match (query.columns, query.rows) {
        (Some(columns), Some(rows)) => Some(TerminalSize { columns, rows }),
        (None, None) => None,
        _ => return Err(ApiError::Size),
    };
    let attachment = named.attach(query.client.as_deref()).await?;
    // The output of a terminal that has ended can still be looked at.
    if let Some(size) = size.filter(|_| !named.has_ended()) {
        set_size(&named, size)?;
    }
    Ok(attach::answer(upgrade, attachment, query.offset, &app))
}

fn find(app: &App, id: Id) -> Result<Arc<NamedTerminal>, ApiError> {
    let Path(id) = id?;
    Ok(app.executor.terminals().find(&id)?)
}

fn set_size(named: &NamedTerminal, size: TerminalSize) -> Result<(), ApiError> {
    if size.columns == 0 || size.rows == 0 {
        return Err(ApiError::Size);
    }
    named.resize(WindowSize { columns: size.columns, rows: size.rows })?;
    Ok(())
}

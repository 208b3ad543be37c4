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

use super::{Id, error::ApiError, parse};
use crate::{answer, app::App, router::Route};

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

/// Body of the answer to `GET /v1/terminals`.
#[derive(Debug, Serialize)]
struct List {
    terminals: Vec<TerminalStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AttachQuery {
    /// Where to begin; at the oldest byte that is kept if it is absent.
    offset: Option<u64>,
    /// New size of the terminal.
    columns: Option<u16>,
    rows: Option<u16>,
    /// Name that a client gives itself to come again after a lost connection.
    client: Option<String>,
}

async fn list(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &List { terminals: app.executor.terminals().list() })
}

async fn start(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    let request: TerminalRequest = parse(&app, body).await?;
    let (named, added) = app.executor.terminals().start(request).await?;
    let status = if added { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::json(status, &named.status()))
}

async fn status(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &find(&app, id)?.status()))
}

async fn remove(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    let Path(id) = id?;
    Ok(answer::json(StatusCode::OK, &app.executor.terminals().remove(&id).await?))
}

async fn resize(State(app): State<Arc<App>>, id: Id, body: Body) -> Result<Response, ApiError> {
    let named = find(&app, id)?;
    set_size(&named, parse(&app, body).await?)?;
    Ok(answer::json(StatusCode::OK, &named.status()))
}

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

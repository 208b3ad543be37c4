//! IPython kernels by name.

mod stream;

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, Query, State, rejection::QueryRejection},
    response::Response,
};
use gloveport_executor::{
    KernelsError,
    kernels::{Cell, CellEnd, CellReport, KernelState},
    plugins::Notebook,
};
use gloveport_protocol::{
    kernels::{CellOutcome, CellRequest, CellResult, KernelActivity, KernelStatus},
    seconds,
};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{Id, error::ApiError, parse};
use crate::{answer, app::App, router::Route};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/kernels", list),
        Route::delete("/v1/kernels/{name}", remove),
        Route::post("/v1/kernels/{name}/execute", execute),
        Route::post("/v1/kernels/{name}/interrupt", interrupt),
        Route::post("/v1/kernels/{name}/restart", restart),
    ]
}

/// Body of the answer to `GET /v1/kernels`.
#[derive(Debug, Serialize)]
struct List {
    kernels: Vec<KernelStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecuteQuery {
    /// Whether the answer is a stream of events.
    #[serde(default)]
    follow: bool,
}

async fn list(State(app): State<Arc<App>>) -> Response {
    let kernels = app.executor.plugins().notebook().map(|notebook| notebook.kernels().list()).unwrap_or_default();
    answer::json(StatusCode::OK, &List { kernels: kernels.into_iter().map(status).collect() })
}

/// Runs a cell after those that wait for the same kernel, which is started if there is none of this name.
async fn execute(
    State(app): State<Arc<App>>,
    name: Id,
    query: Result<Query<ExecuteQuery>, QueryRejection>,
    body: Body,
) -> Result<Response, ApiError> {
    let Path(name) = name?;
    let Query(query) = query?;
    let request: CellRequest = parse(&app, body).await?;
    let limit = limit(request.timeout)?;
    let kernel = notebook(&app)?.kernel(&name).await?;
    app.action_arrived();
    let directory = Some(app.executor.shell().facts().directory.into());
    let cell = Cell { code: request.code, limit, directory, progress: None };
    if query.follow {
        return Ok(stream::answer(kernel, cell));
    }
    Ok(answer::json(StatusCode::OK, &result(kernel.execute(cell).await.map_err(KernelsError::from)?)))
}

async fn interrupt(State(app): State<Arc<App>>, name: Id) -> Result<Response, ApiError> {
    let (name, kernel) = find(&app, name)?;
    kernel.interrupt().await.map_err(KernelsError::from)?;
    Ok(answer::json(StatusCode::ACCEPTED, &status((name, kernel.state().borrow().clone()))))
}

async fn restart(State(app): State<Arc<App>>, name: Id) -> Result<Response, ApiError> {
    let (name, kernel) = find(&app, name)?;
    kernel.restart().await.map_err(KernelsError::from)?;
    Ok(answer::json(StatusCode::ACCEPTED, &status((name, kernel.state().borrow().clone()))))
}

async fn remove(State(app): State<Arc<App>>, name: Id) -> Result<Response, ApiError> {
    let Path(name) = name?;
    notebook(&app)?.kernels().remove(&name).await?;
    Ok(answer::json(StatusCode::OK, &status((name, KernelState::Closed))))
}

fn notebook(app: &App) -> Result<&Arc<Notebook>, ApiError> {
    app.executor.plugins().notebook().ok_or(ApiError::NoNotebook)
}

fn find(app: &App, name: Id) -> Result<(String, gloveport_executor::kernels::Kernel), ApiError> {
    let Path(name) = name?;
    let kernel = notebook(app)?.kernels().find(&name).ok_or_else(|| KernelsError::Unknown(name.clone()))?;
    Ok((name, kernel))
}

fn limit(timeout: Option<f64>) -> Result<Option<Duration>, ApiError> {
    let Some(number) = timeout else { return Ok(None) };
    match seconds::limit(number) {
        Ok(limit) if limit.is_none_or(|limit| !limit.is_zero()) => Ok(limit),
        _ => Err(ApiError::CellTimeout(number)),
    }
}

fn result(report: CellReport) -> CellResult {
    CellResult {
        text: report.text,
        images: report.images,
        end: match report.end {
            CellEnd::Completed => CellOutcome::Completed,
            CellEnd::Raised => CellOutcome::Raised,
            CellEnd::TimedOut => CellOutcome::TimedOut,
            CellEnd::Died(_) => CellOutcome::Died,
        },
        kernel_lost_before: report.lost_before.is_some(),
        interpreter: report.interpreter,
    }
}

fn status((name, state): (String, KernelState)) -> KernelStatus {
    let plain =
        |state| KernelStatus { name: name.clone(), state, interpreter: None, pid: None, reason: None, remedy: None };
    match state {
        KernelState::Starting(_) => plain(KernelActivity::Starting),
        KernelState::Ready(facts) => {
            KernelStatus { interpreter: Some(facts.interpreter), pid: Some(facts.pid), ..plain(KernelActivity::Ready) }
        }
        KernelState::Failed { reason, remedy } => {
            KernelStatus { reason: Some(reason), remedy: Some(remedy), ..plain(KernelActivity::Failed) }
        }
        KernelState::Closed => plain(KernelActivity::Closed),
    }
}

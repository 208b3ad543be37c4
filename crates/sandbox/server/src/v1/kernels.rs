//! IPython kernels by name.

mod stream;

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, Query, State, rejection::QueryRejection},
    response::Response,
};
use gloveport_executor::{
    KernelsError, cell,
    kernels::{Cell, CellReport, KernelState},
    plugins::Notebook,
};
use gloveport_protocol::{
    kernels::{CellRequest, CellResult, KernelActivity, KernelStatus},
    seconds,
};
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
        Route::get("/v1/kernels", list),
        Route::delete("/v1/kernels/{name}", remove),
        Route::post("/v1/kernels/{name}/execute", execute),
        Route::post("/v1/kernels/{name}/interrupt", interrupt),
        Route::post("/v1/kernels/{name}/restart", restart),
    ]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(paths(list, remove, execute, interrupt, restart))]
pub(super) struct Operations;

/// Body of the answer to `GET /v1/kernels`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KernelList)]
struct List {
    /// The kernels.
    kernels: Vec<KernelStatus>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExecuteQuery {
    /// Whether the answer is a stream of events.
    #[serde(default)]
    #[param(default = false)]
    follow: bool,
    /// Whether the stream keeps standard output, standard error, results and exceptions apart.
    #[serde(default)]
    #[param(default = false)]
    detail: bool,
}

#[utoipa::path(
    get,
    path = "/v1/kernels",
    tag = "kernels",
    operation_id = "list_kernels",
    summary = "List the IPython kernels",
    description = "The kernel `default` is the one of the action run_ipython.",
    responses((status = 200, description = "The kernels.", body = List)),
)]
async fn list(State(app): State<Arc<App>>) -> Response {
    let kernels = app.executor.plugins().notebook().map(|notebook| notebook.kernels().list()).unwrap_or_default();
    answer::json(StatusCode::OK, &List { kernels: kernels.into_iter().map(status).collect() })
}

/// Runs a cell after those that wait for the same kernel, which is started if there is none of this name.
#[utoipa::path(
    post,
    path = "/v1/kernels/{name}/execute",
    tag = "kernels",
    operation_id = "run_cell",
    summary = "Run a cell",
    description = "It runs after those that wait for the same kernel, which is started if there is none of this name. A client \
        that leaves does not end it. With `follow` the answer is a stream of the events `text`, `image` and, at last, `end` or \
        `failed`. With `detail` it has, instead of `text` and `image`, the events `stream` {stream, text}, `display` {data, \
        is_result}, where data has all forms by their types, and `raised` {name, value, traceback}.",
    params(("name" = String, Path, description = "Name of the kernel.", min_length = 1, max_length = 64), ExecuteQuery),
    request_body = CellRequest,
    responses(
        (status = 200, description = "It ended.", content((CellResult = "application/json"), (String = "text/event-stream"))),
        (status = 404, description = "The sandbox has no plugin jupyter.", body = ErrorEnvelope),
        (status = 409, description = "The kernel was not ready within the time limit; the cell has not run.",
            body = ErrorEnvelope),
        (status = 429, description = "Too many kernels run.", body = ErrorEnvelope),
        (status = 503, description = "The kernel cannot be started.", body = ErrorEnvelope),
    ),
)]
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
    let cell = Cell { code: request.code, limit, directory, progress: None, detailed: query.detail };
    if query.follow {
        return Ok(stream::answer(kernel, cell));
    }
    Ok(answer::json(StatusCode::OK, &result(kernel.execute(cell).await.map_err(KernelsError::from)?)))
}

#[utoipa::path(
    post,
    path = "/v1/kernels/{name}/interrupt",
    tag = "kernels",
    operation_id = "interrupt_kernel",
    summary = "Interrupt the cell that runs",
    params(("name" = String, Path, description = "Name of the kernel.", min_length = 1, max_length = 64)),
    responses(
        (status = 202, description = "It is being interrupted.", body = KernelStatus),
        (status = 404, description = "There is no such kernel, or no plugin jupyter.", body = ErrorEnvelope),
        (status = 503, description = "The kernel cannot do it.", body = ErrorEnvelope),
    ),
)]
async fn interrupt(State(app): State<Arc<App>>, name: Id) -> Result<Response, ApiError> {
    let (name, kernel) = find(&app, name)?;
    kernel.interrupt().await.map_err(KernelsError::from)?;
    Ok(answer::json(StatusCode::ACCEPTED, &status((name, kernel.state().borrow().clone()))))
}

#[utoipa::path(
    post,
    path = "/v1/kernels/{name}/restart",
    tag = "kernels",
    operation_id = "restart_kernel",
    summary = "End a kernel and start another one of its name",
    params(("name" = String, Path, description = "Name of the kernel.", min_length = 1, max_length = 64)),
    responses(
        (status = 202, description = "It is being started.", body = KernelStatus),
        (status = 404, description = "There is no such kernel, or no plugin jupyter.", body = ErrorEnvelope),
        (status = 503, description = "The kernel cannot do it.", body = ErrorEnvelope),
    ),
)]
async fn restart(State(app): State<Arc<App>>, name: Id) -> Result<Response, ApiError> {
    let (name, kernel) = find(&app, name)?;
    kernel.restart().await.map_err(KernelsError::from)?;
    Ok(answer::json(StatusCode::ACCEPTED, &status((name, kernel.state().borrow().clone()))))
}

#[utoipa::path(
    delete,
    path = "/v1/kernels/{name}",
    tag = "kernels",
    operation_id = "remove_kernel",
    summary = "End a kernel",
    params(("name" = String, Path, description = "Name of the kernel.", min_length = 1, max_length = 64)),
    responses(
        (status = 200, description = "It has ended.", body = KernelStatus),
        (status = 404, description = "There is no such kernel, or no plugin jupyter.", body = ErrorEnvelope),
        (status = 503, description = "The kernel cannot do it.", body = ErrorEnvelope),
    ),
)]
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
        end: cell::outcome(report.end),
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

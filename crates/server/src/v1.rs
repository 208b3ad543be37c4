//! The native API: commands that are known by an id, output that can be read from any offset, files, terminals, and
//! IPython kernels.

mod error;
mod events;
mod files;
mod follower;
mod kernels;
mod output;
mod plugins;
mod sandbox;
mod terminals;
mod text;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    response::Response,
};
use gloveport_executor::Execution;
use gloveport_protocol::exec::{ExecInput, ExecRequest, ExecStatus};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{answer, app::App, body, router::Route};
use error::ApiError;
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
    routes.extend(kernels::routes());
    routes.extend(plugins::routes());
    routes.extend(sandbox::routes());
    routes
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartQuery {
    #[serde(default = "yes")]
    follow: bool,
}

fn yes() -> bool {
    true
}

/// Body of the answer to `GET /v1/exec`.
#[derive(Debug, Serialize)]
struct List {
    execs: Vec<ExecStatus>,
}

/// Starts a command, or follows the one that the same request started before. Dropping the stream does not stop it.
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

async fn list(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &List { execs: app.executor.executions() })
}

async fn status(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    Ok(answer::json(StatusCode::OK, &find(&app, id)?.status()))
}

async fn input(State(app): State<Arc<App>>, id: Id, body: Body) -> Result<Response, ApiError> {
    let execution = find(&app, id)?;
    let input: ExecInput = parse(&app, body).await?;
    execution.type_in(input).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &execution.status()))
}

async fn interrupt(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    let execution = find(&app, id)?;
    execution.interrupt().await?;
    Ok(answer::json(StatusCode::ACCEPTED, &execution.status()))
}

async fn cancel(State(app): State<Arc<App>>, id: Id) -> Result<Response, ApiError> {
    let execution = find(&app, id)?;
    execution.cancel();
    Ok(answer::json(StatusCode::ACCEPTED, &execution.status()))
}

/// The id in a path.
type Id = Result<Path<String>, PathRejection>;

fn find(app: &App, id: Id) -> Result<Arc<Execution>, ApiError> {
    let Path(id) = id?;
    Ok(app.executor.execution(&id)?)
}

async fn parse<T: DeserializeOwned + Send + 'static>(app: &App, body: Body) -> Result<T, ApiError> {
    let limits = &app.options.limits;
    Ok(body::json_within(limits.command.min(limits.json_body), body, limits).await?)
}

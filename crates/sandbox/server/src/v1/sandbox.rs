//! The sandbox as a whole: paused or not.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use gloveport_protocol::sandbox::{Activity, SandboxStatus};
use http::StatusCode;

use super::error::ApiError;
use crate::{
    answer::{self, ErrorEnvelope},
    app::App,
    route::Route,
};

/// What every other request is answered with while the sandbox is paused.
pub(crate) const PAUSED: &str = "The sandbox is paused; resume it with POST /v1/sandbox/resume";
/// Paths that are served while it is paused.
const SERVED: [&str; 7] =
    ["/alive", "/server_info", "/ready", "/metrics", "/v1/sandbox", "/v1/sandbox/pause", "/v1/sandbox/resume"];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/sandbox", status),
        Route::post("/v1/sandbox/pause", pause),
        Route::post("/v1/sandbox/resume", resume),
    ]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(paths(status, pause, resume))]
pub(super) struct Operations;

/// Whether requests of this path are served while the sandbox is paused.
pub(crate) fn works_while_paused(path: &str) -> bool {
    SERVED.contains(&path)
}

#[utoipa::path(
    get,
    path = "/v1/sandbox",
    tag = "sandbox",
    operation_id = "get_sandbox",
    summary = "Tell whether the sandbox is paused, and since when nobody has used it",
    description = "Requests about the state of the server do not count as use.",
    responses((status = 200, description = "How it is.", body = SandboxStatus)),
)]
async fn status(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &describe(&app))
}

/// A caller that leaves does not cut it off: the processes would go on while others are told that they do not.
#[utoipa::path(
    post,
    path = "/v1/sandbox/pause",
    tag = "sandbox",
    operation_id = "pause_sandbox",
    summary = "Stop all processes where they are",
    description = "Pausing twice is not an error. Until it is resumed all requests but those about its state are answered with \
        status 503, and time limits of commands in flight go on.",
    responses(
        (status = 200, description = "It is paused.", body = SandboxStatus),
        (status = 500, description = "The processes do not stop; all of them go on.", body = ErrorEnvelope),
        (status = 501, description = "The server does not own its processes.", body = ErrorEnvelope),
    ),
)]
async fn pause(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let pausing = Arc::clone(&app);
    let paused = tokio::spawn(async move {
        pausing.executor.pause().await?;
        tell(&pausing);
        Ok(())
    });
    let paused: Result<(), ApiError> = paused.await.map_err(ApiError::Defect)?;
    paused?;
    Ok(answer::json(StatusCode::OK, &describe(&app)))
}

#[utoipa::path(
    post,
    path = "/v1/sandbox/resume",
    tag = "sandbox",
    operation_id = "resume_sandbox",
    summary = "Let all processes go on",
    description = "Resuming a sandbox that is not paused is not an error. What was stopped before the pause stays stopped.",
    responses((status = 200, description = "It runs.", body = SandboxStatus)),
)]
async fn resume(State(app): State<Arc<App>>) -> Response {
    app.executor.resume().await;
    tell(&app);
    answer::json(StatusCode::OK, &describe(&app))
}

fn tell(app: &App) {
    if let Some(listener) = &app.options.pause_listener {
        listener.tell(app.executor.is_paused());
    }
}

fn describe(app: &App) -> SandboxStatus {
    SandboxStatus {
        state: if app.executor.is_paused() { Activity::Paused } else { Activity::Running },
        since_seconds: app.executor.paused_or_running_since().elapsed().as_secs_f64(),
        idle_seconds: app.options.occupancy.idle().as_secs_f64(),
        idle_limit_seconds: app.options.occupancy.limit().map(|limit| limit.as_secs_f64()),
    }
}

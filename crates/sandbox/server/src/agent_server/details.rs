//! What the server is, and whether it lives.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use http::StatusCode;
use serde_json::{Value, json};

use super::{answers::failed, description, face::OF_SDK};
use crate::{answer, app::App, route::Route};

/// Why there is no VS Code.
const NO_VSCODE: &str = "VSCode is disabled in configuration";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/alive", alive),
        Route::get("/health", alive),
        Route::get("/ready", ready),
        Route::get("/server_info", server_info),
        Route::get("/", server_info),
        Route { method: "get", path: "/api/init", handler: axum::routing::get(init).post(refused) },
        Route::get("/openapi.json", description::description),
    ]
}

/// Those that need the key.
pub(super) fn keyed() -> Vec<Route> {
    vec![Route::get("/api/vscode/status", vscode_status), Route::get("/api/vscode/url", vscode_url)]
}

async fn alive() -> Response {
    answer::json(StatusCode::OK, &json!({"status": "ok"}))
}

/// A server is handed its connections only when it is ready.
async fn ready() -> Response {
    answer::json(StatusCode::OK, &json!({"status": "ready"}))
}

async fn server_info(State(app): State<Arc<App>>) -> Response {
    answer::json(StatusCode::OK, &info(&app))
}

fn info(app: &App) -> Value {
    json!({
        "uptime": whole(app.uptime()),
        "idle_time": whole(app.idle_time()),
        "title": "gloveport",
        "version": app.options.version,
        "sdk_version": OF_SDK,
        "tools_version": OF_SDK,
        "workspace_version": OF_SDK,
        "build_git_sha": "unknown",
        "build_git_ref": "unknown",
        "python_version": "",
        "usable_tools": [],
        "runtime_idle_timeout_seconds": null,
        "max_foreground_terminal_timeout_seconds": null,
        "conversation_runtime": "local",
        "available_conversation_runtimes": [],
        "capabilities": [],
        "app_backend_ingress_url": null,
        "docs": "/docs",
        "redoc": "/redoc",
    })
}

/// Whole seconds, as a number that may have a fraction: clients of other languages take it for one.
fn whole(time: Duration) -> f64 {
    time.as_secs_f64().floor()
}

/// Settings are taken from whoever has the secret for that, and nobody has one.
async fn refused() -> Response {
    answer::detail(StatusCode::UNAUTHORIZED, "Unauthorized")
}

async fn init() -> Response {
    answer::detail(StatusCode::NOT_FOUND, "The server was not started to wait for its settings (OH_DEFERRED_INIT)")
}

async fn vscode_status() -> Response {
    answer::json(StatusCode::OK, &json!({"running": false, "enabled": false, "message": NO_VSCODE}))
}

async fn vscode_url() -> Response {
    failed(StatusCode::SERVICE_UNAVAILABLE, NO_VSCODE)
}

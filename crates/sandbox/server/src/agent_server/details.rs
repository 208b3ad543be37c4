//! What the server is, and whether it lives.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use gloveport_plugin::PluginState;
use http::StatusCode;
use serde_json::{Value, json};

use super::{description, face::OF_SDK};
use crate::{answer, app::App, route::Route};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/alive", alive),
        Route::get("/health", alive),
        Route::get("/ready", ready),
        Route::get("/server_info", server_info),
        Route::get("/", server_info),
        Route::get("/openapi.json", description::description),
    ]
}

async fn alive() -> Response {
    answer::json(StatusCode::OK, &json!({"status": "ok"}))
}

/// A server is handed its connections only when it is ready; an agent may still be on its way.
async fn ready(State(app): State<Arc<App>>) -> Response {
    match app.hosted_agent().map(|hosted| hosted.state()) {
        Some(PluginState::Starting { step }) => {
            let body = json!({"status": "initializing", "message": format!("the agent-server: {step}")});
            answer::json(StatusCode::SERVICE_UNAVAILABLE, &body)
        }
        _ => answer::json(StatusCode::OK, &json!({"status": "ready"})),
    }
}

/// What the server of the agent says, if it runs; how long nobody has used either of them.
async fn server_info(State(app): State<Arc<App>>) -> Response {
    let own = info(&app);
    let Some(Value::Object(mut theirs)) = (match app.hosted_agent() {
        Some(hosted) => hosted.details().await,
        None => None,
    }) else {
        return answer::json(StatusCode::OK, &own);
    };
    let (here, there) = (own["idle_time"].as_f64(), theirs.get("idle_time").and_then(Value::as_f64));
    let idle = here.into_iter().chain(there).fold(f64::INFINITY, f64::min);
    theirs.insert("idle_time".to_owned(), json!(idle));
    theirs.insert("uptime".to_owned(), own["uptime"].clone());
    answer::json(StatusCode::OK, &theirs)
}

fn info(app: &App) -> Value {
    json!({
        "uptime": whole(app.uptime()),
        "idle_time": if app.hosted_agent().is_some_and(|hosted| hosted.is_used()) { 0.0 } else { whole(app.idle_time()) },
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

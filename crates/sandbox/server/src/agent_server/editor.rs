//! `/api/vscode` (`agent-server-workspace-api` §7).

use std::sync::Arc;

use axum::{extract::State, response::Response};
use gloveport_plugin::PluginState;
use http::{StatusCode, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::answers::{Parameters, failed};
use crate::{answer, app::App, route::Route};

/// Why there is no VS Code.
const OFF: &str = "VSCode is disabled in configuration";
/// The folder that it opens if nothing is said.
const FOLDER: &str = "workspace";
/// What stays as it is in a value of a query.
const SAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/vscode/status", status), Route::get("/api/vscode/url", url)]
}

/// What lets a browser in, if it is to be had. It runs as soon as it is opened, so it counts as running before.
fn token(app: &App) -> Option<String> {
    let plugin = app.executor.plugins().find("vscode")?;
    let is_usable = !matches!(*plugin.state().borrow(), PluginState::Failed { .. } | PluginState::Stopped);
    plugin.token().filter(|_| is_usable)
}

async fn status(State(app): State<Arc<App>>) -> Response {
    let body = match app.agent_server.as_ref().and_then(|face| face.editor.as_ref()) {
        Some(_) => json!({"running": token(&app).is_some(), "enabled": true}),
        None => json!({"running": false, "enabled": false, "message": OFF}),
    };
    answer::json(StatusCode::OK, &body)
}

async fn url(State(app): State<Arc<App>>, uri: Uri) -> Response {
    let Some(place) = app.agent_server.as_ref().and_then(|face| face.editor.as_ref()) else {
        return failed(StatusCode::SERVICE_UNAVAILABLE, OFF);
    };
    let parameters = Parameters::of(&uri);
    let own = format!("http://localhost:{}", place.port);
    let base = parameters.get("base_url").unwrap_or(&own).trim_end_matches('/');
    let slash = if place.base_path.is_empty() { "" } else { "/" };
    let folder = utf8_percent_encode(parameters.get("workspace_dir").unwrap_or(FOLDER), SAFE);
    let url = token(&app).map(|token| {
        let token = utf8_percent_encode(&token, SAFE);
        format!("{base}{slash}{}/?tkn={token}&folder={folder}", place.base_path)
    });
    answer::json(StatusCode::OK, &json!({"url": url}))
}

//! What the sandbox has beside its shell and its files.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    response::Response,
};
use gloveport_executor::plugins::Plugin;
use http::StatusCode;
use serde::Serialize;

use super::{Id, error::ApiError};
use crate::{answer, app::App, health::PartReadiness, router::Route};

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/v1/plugins", list), Route::get("/v1/plugins/{name}/logs", logs)]
}

/// Body of the answer to `GET /v1/plugins`.
#[derive(Debug, Serialize)]
struct List {
    plugins: Vec<PluginStatus>,
}

#[derive(Debug, Serialize)]
struct PluginStatus {
    #[serde(flatten)]
    readiness: PartReadiness,
    /// Path that leads to its service.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// What lets a browser in.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

async fn list(State(app): State<Arc<App>>) -> Response {
    let plugins = app.executor.plugins();
    let plugins = plugins.all().iter().zip(plugins.parts()).map(|(plugin, part)| PluginStatus {
        readiness: part.into(),
        path: plugin.service().map(|_| format!("/plugins/{}/", plugin.name())),
        token: app.passage.token_of(&**plugin),
    });
    answer::json(StatusCode::OK, &List { plugins: plugins.collect() })
}

async fn logs(State(app): State<Arc<App>>, name: Id) -> Result<Response, ApiError> {
    let Path(name) = name?;
    let plugin: &Arc<dyn Plugin> =
        app.executor.plugins().find(&name).ok_or_else(|| ApiError::UnknownPlugin(name.clone()))?;
    let service = plugin.service().ok_or_else(|| ApiError::NoService(name))?;
    Ok(answer::with_type(StatusCode::OK, "text/plain; charset=utf-8", service.logs()))
}

//! What the sandbox has beside its shell and its files.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    response::Response,
};
use gloveport_executor::plugins::Plugin;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Id, error::ApiError};
use crate::{
    answer::{self, ErrorEnvelope},
    app::App,
    health::PartReadiness,
    route::Route,
};

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/v1/plugins", list), Route::get("/v1/plugins/{name}/logs", logs)]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(paths(list, logs))]
pub(super) struct Operations;

/// Body of the answer to `GET /v1/plugins`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PluginList)]
struct List {
    /// The plugins.
    plugins: Vec<PluginStatus>,
}

#[derive(Debug, Serialize, ToSchema)]
struct PluginStatus {
    #[serde(flatten)]
    readiness: PartReadiness,
    /// Path that leads to its service, if it has one; for the browser, to the page on which it is seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// What lets a browser in, as `?tkn=`.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

#[utoipa::path(
    get,
    path = "/v1/plugins",
    tag = "plugins",
    operation_id = "list_plugins",
    summary = "List the plugins",
    responses((status = 200, description = "The plugins.", body = List)),
)]
async fn list(State(app): State<Arc<App>>) -> Response {
    let plugins = app.executor.plugins();
    let web = plugins.web().map(|web| web.name());
    let plugins = plugins.all().iter().zip(plugins.parts()).map(|(plugin, part)| {
        let (path, token) = if web == Some(plugin.name()) {
            let (path, token) = app.views.page();
            (Some(path.to_owned()), token)
        } else {
            let path = plugin.service().map(|_| format!("/plugins/{}/", plugin.name()));
            (path, app.passage.token_of(&**plugin))
        };
        PluginStatus { readiness: part.into(), path, token }
    });
    answer::json(StatusCode::OK, &List { plugins: plugins.collect() })
}

#[utoipa::path(
    get,
    path = "/v1/plugins/{name}/logs",
    tag = "plugins",
    operation_id = "read_plugin_log",
    summary = "Read what the service of a plugin printed last",
    params(("name" = String, Path, description = "Name of the plugin.", min_length = 1)),
    responses(
        (status = 200, description = "The last bytes.", body = String, content_type = "text/plain"),
        (status = 404, description = "There is no such plugin, or it has no service.", body = ErrorEnvelope),
    ),
)]
async fn logs(State(app): State<Arc<App>>, name: Id) -> Result<Response, ApiError> {
    let Path(name) = name?;
    let plugin: &Arc<dyn Plugin> =
        app.executor.plugins().find(&name).ok_or_else(|| ApiError::UnknownPlugin(name.clone()))?;
    let service = plugin.service().ok_or_else(|| ApiError::NoService(name))?;
    Ok(answer::with_type(StatusCode::OK, "text/plain; charset=utf-8", service.logs()))
}

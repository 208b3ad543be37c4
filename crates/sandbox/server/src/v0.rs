//! The OpenHands 0.62 API (`action-execution-api` §2).

mod download;
mod info;
mod listing;
mod upload;

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, AliveBody, ConnectionToken, ErrorBody, ExecuteActionRequest,
    McpServerEntry, ObservationEvent, UpdateMcpResponse, ValidationErrorBody,
};
use http::StatusCode;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    answer,
    app::App,
    body::{self, JsonError},
    options::ServerLimits,
    route::Route,
};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/alive", alive),
        Route::get("/server_info", info::server_info),
        Route::post("/execute_action", execute_action),
        Route::post("/list_files", listing::list_files),
        Route::post("/upload_file", upload::upload_file),
        Route::get("/download_files", download::download_files),
        Route::post("/update_mcp_server", update_mcp_server),
        Route::get("/vscode/connection_token", connection_token),
    ]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(paths(
    alive,
    info::server_info,
    execute_action,
    listing::list_files,
    upload::upload_file,
    download::download_files,
    update_mcp_server,
    connection_token
))]
pub(crate) struct Operations;

/// A server that listens is ready.
#[utoipa::path(
    get,
    path = "/alive",
    tag = "openhands-0.62",
    operation_id = "get_alive",
    summary = "Tell whether the server is ready",
    description = "A server that answers is ready.",
    security(()),
    responses((status = 200, description = "It is.", body = AliveBody)),
)]
async fn alive() -> Response {
    answer::json(StatusCode::OK, &AliveBody::ok())
}

/// What a browser shows to the web editor (ipython-and-plugins 4.4).
#[utoipa::path(
    get,
    path = "/vscode/connection_token",
    tag = "openhands-0.62",
    operation_id = "get_vscode_connection_token",
    summary = "Read the token of the editor",
    description = "Null without the plugin vscode.",
    responses((status = 200, description = "The token.", body = ConnectionToken)),
)]
async fn connection_token(State(app): State<Arc<App>>) -> Response {
    let token = app.executor.plugins().find("vscode").and_then(|editor| editor.token());
    answer::json(StatusCode::OK, &ConnectionToken { token })
}

/// What every serialised observation has, for the document of the interface.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it stands for an object in the document of the interface")]
struct SerialisedObservation {
    /// Its kind.
    observation: String,
    /// What is to be seen.
    content: String,
    /// Its other members, by kind.
    #[schema(value_type = Option<Object>)]
    extras: Option<Value>,
}

/// Executes one action (2.4).
///
/// A client that goes away drops this future, and with it that of the executor: this is how the executor learns of it.
#[utoipa::path(
    post,
    path = "/execute_action",
    tag = "openhands-0.62",
    operation_id = "execute_action",
    summary = "Execute an action",
    description = "Answers when there is an observation. A client that goes away does not end the action: a run action with an \
        empty command fetches the rest of the output.",
    request_body = ExecuteActionRequest,
    responses(
        (status = 200, description = "The observation.", body = SerialisedObservation),
        (status = 422, description = "The body does not have the form.", body = ValidationErrorBody),
        (status = 500, description = "The action is unknown or wrong, or cannot be executed.", body = ErrorBody),
    ),
)]
async fn execute_action(State(app): State<Arc<App>>, body: Body) -> Response {
    let request: ExecuteActionRequest = match body::json(body, &app.options.limits).await {
        Ok(request) => request,
        Err(JsonError::Body(error)) => return error.answer(),
        Err(error) => return answer::invalid(format!("the body must be {{\"action\": {{...}}}}: {error}")),
    };
    let event = match ActionEvent::from_value(Value::Object(request.action)) {
        Ok(event) => event,
        Err(error) => return failed(&error),
    };
    if let Some(refusal) = too_long(&event.action, &app.options.limits) {
        return refusal;
    }
    app.action_arrived();
    let timer = app.metrics.action(event.action.kind());
    let result = app.executor.execute(&event).await;
    timer.end();
    match result {
        Ok(observation) => answer::json(StatusCode::OK, &ObservationEvent::from(observation)),
        Err(error) => failed(&error),
    }
}

/// Refuses a text that costs many times its length.
fn too_long(action: &Action, limits: &ServerLimits) -> Option<Response> {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let (what, found, most) = match action {
        Action::Run(run) => ("command", run.command.len(), limits.command),
        Action::RunIpython(cell) => ("cell", cell.code.len(), limits.command),
        Action::Edit(edit) => ("text", length(&edit.old_str).max(length(&edit.new_str)), limits.edit),
        _ => return None,
    };
    let text = || format!("The {what} is longer than {most} bytes; put it into a file, and use that");
    (found > most).then(|| answer::detail(StatusCode::PAYLOAD_TOO_LARGE, text()))
}

fn failed(error: &impl std::fmt::Display) -> Response {
    answer::detail(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal server error: {error}"))
}

/// Sets the MCP servers that run in the sandbox (5.2). None of them is started by that.
#[utoipa::path(
    post,
    path = "/update_mcp_server",
    tag = "openhands-0.62",
    operation_id = "update_mcp_server",
    summary = "Set the MCP servers",
    description = "The list replaces the one before. Servers that stay as they are go on; the others finish their calls and \
        end. They are started by their first use, and reached as one server at /mcp/sse and /mcp/proxy.",
    request_body = Vec<McpServerEntry>,
    responses(
        (status = 200, description = "They are set. The log tells which of them will not work.", body = UpdateMcpResponse),
        (status = 400, description = "Not a list.", body = ErrorBody),
        (status = 500, description = "A wrong entry.", body = ErrorBody),
    ),
)]
async fn update_mcp_server(State(app): State<Arc<App>>, body: Body) -> Response {
    let elements = match body::json(body, &app.options.limits).await {
        Ok(Value::Array(elements)) => elements,
        Err(JsonError::Body(error)) => return error.answer(),
        Ok(_) => return answer::detail(StatusCode::BAD_REQUEST, "Request must be a list of MCP tools to sync"),
        Err(error) => {
            tracing::warn!(%error, "/update_mcp_server: the body is not JSON");
            return answer::unexpected();
        }
    };
    let mut entries = Vec::with_capacity(elements.len());
    for element in &elements {
        match McpServerEntry::from_value(element) {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                tracing::warn!(%error, "/update_mcp_server: an MCP server is refused");
                return answer::unexpected();
            }
        }
    }
    let problems = app.mcp.proxy().update(entries).join("\n");
    answer::json(StatusCode::OK, &UpdateMcpResponse::updated(&problems))
}

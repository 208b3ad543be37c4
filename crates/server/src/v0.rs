//! The OpenHands 0.62 API (`action-execution-api` §2).

mod download;
mod info;
mod listing;
mod upload;

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, AliveBody, ConnectionToken, ExecuteActionRequest, McpServerEntry,
    ObservationEvent, UpdateMcpResponse,
};
use http::StatusCode;
use serde_json::Value;

use crate::{
    answer,
    app::App,
    body::{self, JsonError},
    options::Limits,
    router::Route,
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

/// A server that listens is ready.
async fn alive() -> Response {
    answer::json(StatusCode::OK, &AliveBody::new(true))
}

/// What a browser shows to the web editor (ipython-and-plugins 4.4).
async fn connection_token(State(app): State<Arc<App>>) -> Response {
    let token = app.executor.plugins().find("vscode").and_then(|editor| editor.token());
    answer::json(StatusCode::OK, &ConnectionToken { token })
}

/// Executes one action (2.4).
///
/// A client that goes away drops this future, and with it that of the executor: this is how the executor learns of it.
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
fn too_long(action: &Action, limits: &Limits) -> Option<Response> {
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

/// Checks a list of MCP servers (5.2). There is no proxy for them in this version; a backend that has none says so at the
/// start of every run, and goes on.
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
    for element in &elements {
        if let Err(error) = McpServerEntry::from_value(element) {
            tracing::warn!(%error, "/update_mcp_server: an MCP server is refused");
            return answer::unexpected();
        }
    }
    if elements.is_empty() {
        return answer::json(StatusCode::OK, &UpdateMcpResponse::updated(""));
    }
    answer::detail(StatusCode::INTERNAL_SERVER_ERROR, "MCP Proxy Manager is not initialized")
}

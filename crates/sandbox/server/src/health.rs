//! `/ready` and `/metrics`.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use gloveport_executor::{Part, PartState};
use gloveport_mcp::{ServerState, ServerStatus};
use gloveport_metrics::{Text, float};
use gloveport_protocol::exec::ExecState;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{answer, app::App, route::Route, usage};

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::get("/ready", ready), Route::get("/metrics", metrics)]
}

/// What the document of the interface says of these.
#[cfg(test)]
#[derive(utoipa::OpenApi)]
#[openapi(paths(ready, metrics))]
pub(crate) struct Operations;

/// Body of the answer to `GET /ready`.
#[derive(Debug, Serialize, ToSchema)]
struct Readiness {
    /// `ready`, `starting` or `failed`.
    #[schema(value_type = String)]
    status: &'static str,
    /// The shell and the plugins.
    parts: Vec<PartReadiness>,
    /// The MCP servers. They are started when they are used, and one that fails does not make the sandbox fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    mcp_servers: Vec<McpReadiness>,
}

/// How an MCP server stands.
#[derive(Debug, Serialize, ToSchema)]
struct McpReadiness {
    /// Its name.
    name: String,
    /// `idle`, `starting`, `ready` or `failed`.
    #[schema(value_type = String)]
    state: &'static str,
    /// Time since it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_seconds: Option<f64>,
    /// Why it failed, with the last that it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<ServerStatus> for McpReadiness {
    fn from(status: ServerStatus) -> Self {
        let (state, reason) = match status.state {
            ServerState::Idle => ("idle", None),
            ServerState::Starting => ("starting", None),
            ServerState::Ready => ("ready", None),
            ServerState::Failed { reason } => ("failed", Some(reason)),
        };
        let since_seconds = status.since.map(|since| since.elapsed().as_secs_f64());
        Self { name: status.name, state, since_seconds, reason }
    }
}

/// How a part of the server stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PartReadiness {
    /// Its name.
    name: String,
    /// `off`, `idle`, `starting`, `ready` or `failed`.
    #[schema(value_type = String)]
    state: &'static str,
    /// Time since it is so.
    since_seconds: f64,
    /// What it does to become ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// How long it took to become ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<f64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[utoipa::path(
    get,
    path = "/ready",
    tag = "server",
    operation_id = "get_readiness",
    summary = "Tell how each part stands",
    responses(
        (status = 200, description = "Every part that was asked for is ready.", body = Readiness),
        (status = 503, description = "A part is starting or failed.", body = Readiness),
    ),
)]
async fn ready(State(app): State<Arc<App>>) -> Response {
    let mcp_servers = app.mcp.proxy().statuses().into_iter().map(McpReadiness::from).collect();
    let readiness = Readiness { mcp_servers, ..readiness(app.executor.parts()) };
    let status = if readiness.status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer::json(status, &readiness)
}

/// Ready when every part that was asked for is.
fn readiness(parts: Vec<Part>) -> Readiness {
    let status = if parts.iter().any(|part| matches!(part.state, PartState::Failed { .. })) {
        "failed"
    } else if parts.iter().any(|part| part.state == PartState::Starting) {
        "starting"
    } else {
        "ready"
    };
    Readiness { status, parts: parts.into_iter().map(PartReadiness::from).collect(), mcp_servers: Vec::new() }
}

impl From<Part> for PartReadiness {
    fn from(part: Part) -> Self {
        let (state, reason, remedy) = match part.state {
            PartState::Off => ("off", None, None),
            PartState::Idle => ("idle", None, None),
            PartState::Starting => ("starting", None, None),
            PartState::Ready => ("ready", None, None),
            PartState::Failed { reason, remedy } => ("failed", Some(reason), Some(remedy)),
        };
        let millis = |took: Duration| took.as_secs_f64() * 1000.0;
        Self {
            name: part.name,
            state,
            since_seconds: part.since.elapsed().as_secs_f64(),
            step: part.step,
            took_ms: part.took.map(millis),
            reason,
            remedy,
        }
    }
}

#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    operation_id = "get_metrics",
    summary = "Read counters for Prometheus",
    responses((status = 200, description = "The text format.", body = String, content_type = "text/plain")),
)]
async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut text = Text::default();
    text.info("build_info", "Version of the server.", &format!("version=\"{}\"", app.options.version));
    app.metrics.write(&mut text);
    let running =
        app.executor.executions().iter().filter(|status| matches!(status.state, ExecState::Running { .. })).count();
    text.gauge("execs_running", "Native commands that run.", running);
    let written = float(app.executor.shell().output().end());
    text.counter("shell_output_bytes_total", "Bytes that programs of the main shell wrote.", written);
    text.measure("process_resident_bytes", "Resident memory of the server.", float(usage::resident()));
    text.counter("process_cpu_seconds_total", "CPU time of the server.", usage::cpu_seconds());
    text.measure("uptime_seconds", "Time since the start.", app.uptime().as_secs_f64());
    answer::with_type(StatusCode::OK, gloveport_metrics::TYPE, text.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_off_or_idle_do_not_count_and_others_must_be_ready() {
        let off = Part { state: PartState::Off, ..Part::starting("browser") };
        let idle = Part { state: PartState::Idle, ..Part::starting("jupyter") };
        let (starting, ready) = (Part::starting("kernel"), Part::starting("shell").ready());
        let failed = Part::starting("vscode").failed("no disk space", "free some");
        for (parts, status) in [
            (vec![ready.clone(), off.clone(), idle], "ready"),
            (vec![ready.clone(), starting.clone()], "starting"),
            (vec![ready, starting, failed.clone()], "failed"),
        ] {
            assert_eq!(readiness(parts).status, status);
        }
        let shown = PartReadiness::from(failed);
        assert_eq!(
            (shown.state, shown.reason.as_deref(), shown.remedy.as_deref()),
            ("failed", Some("no disk space"), Some("free some"))
        );
    }
}

//! A sandbox as the interface tells it (remote-runtime-api 2.2 to 2.6).

use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use gloveport_protocol::Secret;
use gloveport_provider::{Sandbox, SandboxState};
use serde::Serialize;
use tokio::time::timeout;

use crate::{labels::NOT_KEPT, public::Public};

/// Time for a server to say that it is ready.
const PROBE: Duration = Duration::from_secs(2);
/// What the names of ports begin with that are for people's programs.
const WORK: &str = "work-";

/// A sandbox.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "these are the names of the interface")]
pub(crate) struct Runtime {
    runtime_id: String,
    session_id: String,
    url: String,
    work_hosts: BTreeMap<String, u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_api_key: Option<String>,
    status: &'static str,
    pod_status: &'static str,
    restart_count: u32,
    restart_reasons: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// False for one that its client ends. Of ours.
    kept: bool,
    /// Where the work is, as a path in the sandbox. Of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// When it was made, in seconds since 1970. Of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<f64>,
    /// Why it has ended, or cannot be told. Of ours.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// Whether this request made it. Of ours, in answers to `/start` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<bool>,
}

/// A sandbox for clients that reach the gateway by this URL. Whether its server is ready is found out if `probe` says so.
pub(crate) async fn runtime(sandbox: &Sandbox, public: &Public, probe: bool) -> Runtime {
    let id = sandbox.id.as_str();
    let hosts = sandbox.ports.iter().filter(|(name, _)| name.starts_with(WORK) && sandbox.urls.contains_key(*name));
    Runtime {
        runtime_id: id.to_owned(),
        session_id: sandbox.session_id.to_string(),
        url: public.sandbox(&sandbox.id),
        work_hosts: hosts.map(|(name, port)| (public.port(&sandbox.id, name), *port)).collect(),
        session_api_key: sandbox.session_key.as_ref().map(Secret::expose).map(str::to_owned),
        status: status(&sandbox.state),
        pod_status: pod_status(sandbox, probe).await,
        restart_count: sandbox.restarts.count,
        restart_reasons: sandbox.restarts.reasons.clone(),
        image: sandbox.image.clone(),
        kept: !sandbox.labels.contains_key(NOT_KEPT),
        workspace: sandbox.workspace.clone(),
        created_at: sandbox.created.and_then(|time| Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())),
        reason: sandbox.state.reason().to_owned(),
        created: None,
    }
}

fn status(state: &SandboxState) -> &'static str {
    match state {
        SandboxState::Pending => "starting",
        SandboxState::Running => "running",
        SandboxState::Paused => "paused",
        SandboxState::Stopped(_) => "stopped",
        SandboxState::Failed(_) | SandboxState::CrashLooping(_) | SandboxState::Unknown(_) => "error",
    }
}

async fn pod_status(sandbox: &Sandbox, probe: bool) -> &'static str {
    match &sandbox.state {
        SandboxState::Pending => "pending",
        SandboxState::Running => {
            if probe && is_ready(sandbox).await {
                "ready"
            } else {
                "running"
            }
        }
        SandboxState::Failed(_) => "failed",
        SandboxState::CrashLooping(_) => "crashloopbackoff",
        SandboxState::Unknown(_) => "unknown",
        SandboxState::Stopped(_) | SandboxState::Paused => "not found",
    }
}

async fn is_ready(sandbox: &Sandbox) -> bool {
    let Ok(client) = gloveport_hosting::client(sandbox) else { return false };
    matches!(timeout(PROBE, client.probe()).await, Ok(Ok(())))
}

//! The JSON of the service (`hosted-apis` 4.2). Members that nobody reads here are passed over.

use std::collections::BTreeMap;

use gloveport_protocol::Secret;
use gloveport_provider::SandboxId;
use serde::{Deserialize, Serialize};

/// Asks for a sandbox.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Create<'a> {
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blueprint_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blueprint_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot_id: Option<&'a str>,
    pub(crate) environment_variables: BTreeMap<String, String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) launch_parameters: Launch,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) tunnel: Wished,
}

/// How it starts, how large it is, and when it ends by itself.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Launch {
    #[serde(rename = "launch_commands")]
    pub(crate) commands: Vec<String>,
    pub(crate) resource_size_request: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) custom_cpu_cores: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) custom_gb_memory: Option<u32>,
    pub(crate) lifecycle: Lifecycle,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network_policy_id: Option<String>,
}

/// What becomes of a sandbox that nobody uses.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Lifecycle {
    pub(crate) after_idle: AfterIdle,
}

/// After how many seconds, and what: `shutdown` or `suspend`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AfterIdle {
    pub(crate) idle_time_seconds: u64,
    pub(crate) on_idle: &'static str,
}

/// An object that is a file of a sandbox.
#[derive(Debug, Serialize)]
pub(crate) struct Mount {
    pub(crate) r#type: &'static str,
    pub(crate) object_id: String,
    pub(crate) object_path: String,
}

/// How ports are reached. Requests to them are no sign of life: who lists sandboxes is not one who uses them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Wished {
    pub(crate) auth_mode: &'static str,
    pub(crate) http_keep_alive: bool,
    pub(crate) wake_on_http: bool,
}

/// A sandbox.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Devbox {
    pub(crate) id: SandboxId,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) create_time_ms: u64,
    #[serde(default)]
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    pub(crate) failure_reason: Option<String>,
    pub(crate) tunnel: Option<Tunnel>,
}

/// How its ports are reached.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Tunnel {
    pub(crate) tunnel_key: String,
    pub(crate) auth_token: Option<Secret>,
}

/// A page of sandboxes.
#[derive(Debug, Deserialize)]
pub(crate) struct Devboxes {
    pub(crate) devboxes: Vec<Devbox>,
    #[serde(default)]
    pub(crate) has_more: bool,
}

/// An object.
#[derive(Debug, Deserialize)]
pub(crate) struct Object {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) state: String,
    pub(crate) delete_after_time_ms: Option<u64>,
    pub(crate) upload_url: Option<String>,
    #[serde(default)]
    pub(crate) upload_headers: Option<BTreeMap<String, String>>,
}

/// A page of objects.
#[derive(Debug, Deserialize)]
pub(crate) struct Objects {
    pub(crate) objects: Vec<Object>,
}

/// A blueprint.
#[derive(Debug, Deserialize)]
pub(crate) struct Blueprint {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) create_time_ms: u64,
    pub(crate) failure_reason: Option<String>,
}

/// A page of blueprints.
#[derive(Debug, Deserialize)]
pub(crate) struct Blueprints {
    pub(crate) blueprints: Vec<Blueprint>,
}

/// A network policy.
#[derive(Debug, Deserialize)]
pub(crate) struct Policy {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
}

/// A page of network policies.
#[derive(Debug, Deserialize)]
pub(crate) struct Policies {
    pub(crate) network_policies: Vec<Policy>,
}

/// A snapshot.
#[derive(Debug, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
}

/// A page of snapshots.
#[derive(Debug, Deserialize)]
pub(crate) struct Snapshots {
    pub(crate) snapshots: Vec<Snapshot>,
    #[serde(default)]
    pub(crate) has_more: bool,
}

/// How far a snapshot is.
#[derive(Debug, Deserialize)]
pub(crate) struct SnapshotStatus {
    pub(crate) status: String,
    pub(crate) error_message: Option<String>,
}

/// What the service has written about a sandbox.
#[derive(Debug, Deserialize)]
pub(crate) struct Logs {
    pub(crate) logs: Vec<Line>,
}

/// A line of that.
#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    pub(crate) message: Option<String>,
}

/// A program that was started in a sandbox.
#[derive(Debug, Deserialize)]
pub(crate) struct Execution {
    #[serde(rename = "execution_id")]
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) exit_status: Option<i64>,
    #[serde(default)]
    pub(crate) stdout: Option<String>,
    #[serde(default)]
    pub(crate) stderr: Option<String>,
}

/// A piece of what a program writes, and where the next one begins.
#[derive(Debug, Deserialize)]
pub(crate) struct Piece {
    pub(crate) output: String,
    pub(crate) offset: Option<u64>,
}

//! Bodies of requests and answers over HTTP (action-execution-api 2 and 5.2).

mod action_form;
mod mcp_entry;
mod shell_split;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

pub use mcp_entry::{McpServerEntry, McpServerEntryError};

/// Header that carries the session's key, as it is spelled in lower case (action-execution-api 2.2).
pub const SESSION_KEY_HEADER: &str = "x-session-api-key";

/// Header of the answer to a request for a port of the sandbox at which nobody listens, `closed` then. It tells that answer from one
/// of a program.
pub const PORT_HEADER: &str = "x-gloveport-port";

/// Header with the session's key of a request for a port of the sandbox. A key as [`SESSION_KEY_HEADER`] beside it is for the program at
/// that port.
pub const PORT_KEY_HEADER: &str = "x-gloveport-port-key";

/// Body of `POST /execute_action` (action-execution-api 2.4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecuteActionRequest {
    /// The serialised action.
    #[schema(value_type = action_form::SerialisedAction)]
    pub action: Map<String, Value>,
}

/// Body of every answer that is an error (action-execution-api 2.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Detail)]
pub struct ErrorBody {
    /// What went wrong.
    pub detail: String,
}

impl ErrorBody {
    /// An error with this text.
    pub fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into() }
    }
}

/// Body of an answer with status 422 (action-execution-api 2.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ValidationError)]
pub struct ValidationErrorBody {
    /// Always `Invalid request parameters`.
    pub detail: String,
    /// What is wrong, in one free text.
    pub errors: String,
}

impl ValidationErrorBody {
    /// The fixed detail with this free text.
    pub fn new(errors: impl Into<String>) -> Self {
        Self { detail: "Invalid request parameters".to_owned(), errors: errors.into() }
    }
}

/// Body of the answer to `GET /alive` (action-execution-api 2.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Alive)]
pub struct AliveBody {
    /// `ok` or `not initialized`.
    pub status: String,
}

impl AliveBody {
    /// The answer of a server that is ready.
    pub fn ok() -> Self {
        Self { status: "ok".to_owned() }
    }
}

/// Body of the answer to `GET /server_info` (action-execution-api 2.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerInfo {
    /// Seconds since the executor was made.
    pub uptime: f64,
    /// Seconds since the last action arrived.
    pub idle_time: f64,
    /// What the process uses.
    pub resources: Resources,
}

/// What the server's process uses (action-execution-api 2.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resources {
    /// Processor time in percent of one processor; may exceed 100.
    pub cpu_percent: f64,
    /// Memory of the process.
    pub memory: MemoryUsage,
    /// The root file system.
    pub disk: DiskUsage,
    /// Transfers of the process.
    pub io: IoCounters,
}

/// Memory of the server's process (action-execution-api 2.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryUsage {
    /// Resident bytes.
    pub rss: u64,
    /// Virtual bytes.
    pub vms: u64,
    /// Resident bytes in percent of the physical memory.
    pub percent: f64,
}

/// Use of the root file system (action-execution-api 2.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskUsage {
    /// Size in bytes.
    pub total: u64,
    /// Used bytes.
    pub used: u64,
    /// Bytes that a normal user can still use.
    pub free: u64,
    /// Used part of what normal users can use, in percent with one decimal.
    pub percent: f64,
}

/// Transfers of the server's process (action-execution-api 2.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IoCounters {
    /// Bytes read from storage; 0 if unknown.
    pub read_bytes: u64,
    /// Bytes written to storage; 0 if unknown.
    pub write_bytes: u64,
}

/// Body of `POST /list_files` (action-execution-api 2.6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListFilesRequest {
    /// The directory; none is the initial working directory.
    #[serde(default)]
    pub path: Option<String>,
}

/// Body of the answer to `GET /vscode/connection_token` (action-execution-api 2.9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConnectionToken {
    /// The token, or null without the editor.
    pub token: Option<String>,
}

/// Body of the answer to `POST /update_mcp_server` (action-execution-api 5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpdateMcpResponse {
    /// What happened.
    pub detail: String,
    /// Why the update failed; empty if it did not.
    pub router_error_log: String,
}

impl UpdateMcpResponse {
    /// The answer to an update, with the error text or an empty one.
    pub fn updated(router_error_log: impl Into<String>) -> Self {
        Self { detail: "MCP server updated successfully".to_owned(), router_error_log: router_error_log.into() }
    }
}

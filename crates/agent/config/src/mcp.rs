//! `[mcp]`: the MCP servers whose tools agents may use (configuration 6).

mod error;
mod read;
mod url;

use std::{collections::BTreeMap, fmt};

use gloveport_protocol::{McpServerEntry, Secret};
use serde_json::{Map, Value};

pub use self::error::McpError;
use crate::{key::section, setting::SettingValue as _};

/// Seconds that a tool call may take unless the server's entry says otherwise.
const CALL_TIMEOUT: u32 = 60;

/// Longest limit of a tool call, in seconds.
const LONGEST_TIMEOUT: u32 = 3600;

section! {
    /// MCP servers whose tools agents may use.
    pub struct McpConfig = "mcp" {
        /// Servers that speak server-sent events: URLs, or tables with `url` and `api_key`.
        sse_servers: Vec<McpSseServer> = Vec::new();
        /// Servers that speak streamable HTTP: URLs, or tables with `url`, `api_key` and `timeout` (seconds for a call,
        /// at most 3600, 60 by default).
        shttp_servers: Vec<McpHttpServer> = Vec::new();
        /// Servers that are started in the sandbox and speak over their standard streams: tables with `name`,
        /// `command`, `args` (a list, or one text) and `env` (a table, or a text `NAME=value,NAME=value`).
        stdio_servers: Vec<McpStdioServer> = Vec::new();
    }
}

impl McpConfig {
    /// The servers of both, those of `self` first. Nothing is left out if it is in both.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        Self {
            sse_servers: [self.sse_servers.as_slice(), &other.sse_servers].concat(),
            shttp_servers: [self.shttp_servers.as_slice(), &other.shttp_servers].concat(),
            stdio_servers: [self.stdio_servers.as_slice(), &other.stdio_servers].concat(),
        }
    }
}

/// A server that speaks server-sent events.
#[derive(Clone, PartialEq, Eq)]
pub struct McpSseServer {
    /// Where it listens.
    pub url: String,
    /// Key that it wants.
    pub api_key: Option<Secret>,
}

impl McpSseServer {
    /// Checks and takes the URL.
    pub fn new(url: &str, api_key: Option<Secret>) -> Result<Self, McpError> {
        Ok(Self { url: url::checked(url)?, api_key })
    }

    fn members(&self) -> Map<String, Value> {
        Map::from_iter([("url".into(), self.url.shown()), ("api_key".into(), self.api_key.shown())])
    }
}

/// A server that speaks streamable HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct McpHttpServer {
    /// Where it listens.
    pub url: String,
    /// Key that it wants.
    pub api_key: Option<Secret>,
    /// Seconds that a tool call may take, 1 to 3600; nothing: no limit.
    pub timeout: Option<u32>,
}

impl McpHttpServer {
    /// Checks and takes the URL; a call may take 60 seconds.
    pub fn new(url: &str, api_key: Option<Secret>) -> Result<Self, McpError> {
        Ok(Self { url: url::checked(url)?, api_key, timeout: Some(CALL_TIMEOUT) })
    }

    /// With another limit for calls, in seconds; nothing: no limit.
    pub fn with_timeout(self, seconds: Option<i64>) -> Result<Self, McpError> {
        let timeout = seconds.map(checked_timeout).transpose()?;
        Ok(Self { timeout, ..self })
    }

    fn members(&self) -> Map<String, Value> {
        let timeout = self.timeout.map_or(Value::Null, Value::from);
        Map::from_iter([
            ("url".into(), self.url.shown()),
            ("api_key".into(), self.api_key.shown()),
            ("timeout".into(), timeout),
        ])
    }
}

fn checked_timeout(seconds: i64) -> Result<u32, McpError> {
    match u32::try_from(seconds) {
        _ if seconds <= 0 => Err(McpError::TimeoutNotPositive),
        Ok(seconds) if seconds <= LONGEST_TIMEOUT => Ok(seconds),
        _ => Err(McpError::TimeoutTooLong),
    }
}

/// A server that is started in the sandbox. Two are equal if name, command, arguments in their order, and variables in
/// any order are.
#[derive(Clone, PartialEq, Eq)]
pub struct McpStdioServer {
    /// Letters, digits, underscores and hyphens.
    pub name: String,
    /// The program, without blanks.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables for its environment.
    pub env: BTreeMap<String, Secret>,
}

impl McpStdioServer {
    /// Checks the name and the command.
    pub fn new(name: &str, command: &str, args: Vec<String>, env: BTreeMap<String, Secret>) -> Result<Self, McpError> {
        let bare = serde_json::json!({"name": name, "command": command});
        let McpServerEntry { name, command, .. } = McpServerEntry::from_value(&bare).map_err(McpError::from_entry)?;
        Ok(Self { name, command, args, env })
    }

    fn members(&self) -> Map<String, Value> {
        Map::from_iter([
            ("name".into(), self.name.shown()),
            ("command".into(), self.command.shown()),
            ("args".into(), self.args.shown()),
            ("env".into(), self.env.shown()),
        ])
    }
}

/// As the sandbox server takes it; the values of the variables are in the open there.
impl From<&McpStdioServer> for McpServerEntry {
    fn from(server: &McpStdioServer) -> Self {
        Self {
            name: server.name.clone(),
            command: server.command.clone(),
            args: server.args.clone(),
            env: server.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
        }
    }
}

macro_rules! masked_debug {
    ($($server:ident),+) => {$(
        impl fmt::Debug for $server {
            /// Secrets are masked.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($server), " "))?;
                f.debug_map().entries(&self.members()).finish()
            }
        }
    )+};
}

masked_debug!(McpSseServer, McpHttpServer, McpStdioServer);

#[cfg(test)]
mod tests;

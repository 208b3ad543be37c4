//! MCP (runtime-interface 14, action-execution-client 7).
//!
//! | module | idea |
//! |---|---|
//! | here | which servers a session has |
//! | `tools` | their tools, listed for a model and called |
//! | `servers` | servers that others than the configuration name |

mod servers;
mod tools;

use gloveport_config::{McpConfig, McpSseServer, McpStdioServer};
use gloveport_protocol::McpServerEntry;

use crate::{Runtime, RuntimeError};

pub use servers::{default_mcp_servers, microagent_mcp_servers};

impl Runtime {
    /// The configured servers and, where servers run in the sandbox, the sandbox as one more.
    ///
    /// Stdio servers of the configuration and `extra` ones are started in the sandbox if they do not run there yet.
    /// Every call gives a fresh configuration with the sandbox in it at most once. Extra servers stay for later calls.
    pub async fn mcp_config(&self, extra: &[McpStdioServer]) -> Result<McpConfig, RuntimeError> {
        let mut config = self.session.config.mcp.clone();
        let connection = self.connection()?;
        let Some(host) = connection.mcp() else {
            let mut known = self.session.mcp_extra.lock().await;
            for server in extra {
                if !known.contains(server) {
                    known.push(server.clone());
                }
            }
            let missing: Vec<_> =
                known.iter().filter(|server| !config.stdio_servers.contains(server)).cloned().collect();
            config.stdio_servers.extend(missing);
            return Ok(config);
        };
        let current: Vec<McpServerEntry> = config.stdio_servers.iter().chain(extra).map(McpServerEntry::from).collect();
        let mut running = self.session.mcp_servers.lock().await;
        if current.iter().any(|server| !running.contains(server)) {
            let mut combined: Vec<McpServerEntry> = Vec::new();
            for server in current.iter().chain(running.iter()) {
                if !combined.contains(server) {
                    combined.push(server.clone());
                }
            }
            combined.sort_by(|one, other| one.name.cmp(&other.name));
            let log = host.update(&combined).await?;
            if !log.is_empty() {
                tracing::warn!(sid = self.sid(), log, "some MCP servers do not run in the sandbox");
            }
            *running = combined;
            // It has other tools now, under other names.
            self.session.mcp_clients.forget(&host.url()).await;
        }
        if !running.is_empty() {
            let api_key = connection.session_key();
            config.sse_servers.push(McpSseServer { url: host.url(), api_key });
        }
        Ok(config)
    }
}

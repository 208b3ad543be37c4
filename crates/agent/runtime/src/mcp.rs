//! Which MCP servers an agent can use (runtime-interface 14, action-execution-client 7).

use gloveport_config::{McpConfig, McpSseServer, McpStdioServer};
use gloveport_protocol::McpServerEntry;

use crate::{Runtime, RuntimeError};

impl Runtime {
    /// The configured servers and, where servers run in the sandbox, the sandbox as one more.
    ///
    /// Stdio servers of the configuration and `extra` ones are started in the sandbox if they do not run there yet.
    /// Every call gives a fresh configuration with the sandbox in it at most once.
    pub async fn mcp_config(&self, extra: &[McpStdioServer]) -> Result<McpConfig, RuntimeError> {
        let mut config = self.session.config.mcp.clone();
        let connection = self.connection()?;
        let Some(host) = connection.mcp() else {
            for server in extra {
                if !config.stdio_servers.contains(server) {
                    config.stdio_servers.push(server.clone());
                }
            }
            return Ok(config);
        };
        let current: Vec<_> = config.stdio_servers.iter().chain(extra).map(entry).collect();
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
        }
        if !running.is_empty() {
            let api_key = connection.session_key();
            config.sse_servers.push(McpSseServer { url: host.url(), api_key });
        }
        Ok(config)
    }
}

fn entry(server: &McpStdioServer) -> McpServerEntry {
    McpServerEntry {
        name: server.name.clone(),
        command: server.command.clone(),
        args: server.args.clone(),
        env: server.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
    }
}

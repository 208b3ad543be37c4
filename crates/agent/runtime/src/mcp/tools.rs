//! The tools of a session's MCP servers, listed for a model and called (runtime-interface 14.2, 14.4,
//! action-execution-client 7.2, local-and-cli-runtime B11).

use std::{sync::Arc, time::Duration};

use gloveport_config::{McpConfig, McpStdioServer};
use gloveport_mcp_client::{Client, Dial, call_tool, servers, tools_for_model};
use gloveport_protocol::{CallToolMcpAction, ErrorObservation, McpObservation, Observation};
use serde_json::Value;

use crate::{Runtime, RuntimeError};

impl Runtime {
    /// The tools of all MCP servers in the form that models take:
    /// `{"type": "function", "function": {"name", "description", "parameters"}}`.
    ///
    /// `extra` are programs beyond those of the configuration, such as those of
    /// [microagents](crate::microagent_mcp_servers). They stay for later calls. A server that cannot be reached is left
    /// out; why is in the log and in [`gloveport_mcp_client::ErrorCollector::global`].
    pub async fn mcp_tools(&self, extra: &[McpStdioServer]) -> Result<Vec<Value>, RuntimeError> {
        let listing = async {
            let config = self.mcp_config(extra).await?;
            Ok(tools_for_model(&self.mcp_clients(&config).await?).await)
        };
        tokio::select! {
            listed = listing => listed,
            () = self.session.stop.cancelled() => Err(RuntimeError::Closed),
        }
    }

    /// Calls a tool. `limit` is the longest time in seconds, unless the configuration of the server has another one.
    pub(crate) async fn call_tool_mcp(
        &self,
        action: &CallToolMcpAction,
        limit: Option<f64>,
    ) -> Result<Observation, RuntimeError> {
        let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let calling = async {
            if self.connection()?.mcp().is_some() {
                let clients = self.mcp_clients(&self.mcp_config(&[]).await?).await?;
                self.call_at(&clients, action, limit).await
            } else {
                self.call_directly(action, limit).await
            }
        };
        tokio::select! {
            called = calling => called,
            () = self.session.stop.cancelled() => Err(RuntimeError::Closed),
        }
    }

    /// Calls a tool where nothing but this process starts servers. All that fails is an observation.
    async fn call_directly(
        &self,
        action: &CallToolMcpAction,
        limit: Option<Duration>,
    ) -> Result<Observation, RuntimeError> {
        let failed = |text: String| Ok(Observation::Error(ErrorObservation::new(text)));
        let config = self.mcp_config(&[]).await?;
        if config == McpConfig::default() {
            return failed("No MCP servers configured".to_owned());
        }
        let clients = self.mcp_clients(&config).await?;
        if clients.is_empty() {
            return failed("No MCP clients could be created - check server configurations".to_owned());
        }
        match self.call_at(&clients, action, limit).await {
            Err(error) => failed(format!("Error executing MCP tool {}: {error}", action.name)),
            called => called,
        }
    }

    async fn call_at(
        &self,
        clients: &[Arc<Client>],
        action: &CallToolMcpAction,
        limit: Option<Duration>,
    ) -> Result<Observation, RuntimeError> {
        let content = call_tool(clients, &action.name, &action.arguments, limit).await?;
        Ok(Observation::Mcp(McpObservation {
            name: action.name.clone(),
            arguments: action.arguments.clone(),
            ..McpObservation::new(content)
        }))
    }

    /// The connections to the servers of a configuration: kept ones, and new ones to all others.
    async fn mcp_clients(&self, config: &McpConfig) -> Result<Vec<Arc<Client>>, RuntimeError> {
        // Programs run in the sandbox, where there is a place for them.
        let dial = if self.connection()?.mcp().is_some() { Dial::OverHttp } else { Dial::All };
        let mut servers = servers(config, Some(self.sid()), dial);
        if let Some(tokens) = &self.session.mcp_tokens {
            servers = servers.into_iter().map(|server| server.with_tokens(tokens)).collect();
        }
        Ok(self.session.mcp_clients.clients(&servers).await)
    }
}

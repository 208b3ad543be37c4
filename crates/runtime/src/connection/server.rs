//! A sandbox behind an HTTP server that already runs: ours, or the reference's.

use std::{path::Path, sync::Arc, time::Duration};

use gloveport_client::{ActionExecutionClient, ClientOptions};
use gloveport_protocol::{ActionEvent, ActionExecutor, BoxFuture, ExecuteError, McpServerEntry, Observation, Secret};
use tempfile::TempPath;

use super::{ConnectRequest, Connector, McpHost, SandboxConnection};
use crate::{RuntimeError, RuntimeStatus, StatusLevel};

/// Connects to a server that somebody else has started and ends.
#[derive(Debug)]
pub struct ServerAt {
    options: ClientOptions,
    alive_within: Duration,
}

impl ServerAt {
    /// The server that these options name. `connect` waits two minutes for it.
    pub fn new(options: ClientOptions) -> Self {
        Self { options, alive_within: Duration::from_mins(2) }
    }

    /// With another limit for the wait.
    #[must_use]
    pub fn alive_within(self, limit: Duration) -> Self {
        Self { alive_within: limit, ..self }
    }
}

impl Connector for ServerAt {
    fn connect<'a>(
        &'a self,
        request: ConnectRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn SandboxConnection>, RuntimeError>> {
        Box::pin(async move {
            request.status.set(StatusLevel::Info, RuntimeStatus::StartingRuntime, "");
            let client = ActionExecutionClient::new(&self.options)?;
            request.status.set(StatusLevel::Info, RuntimeStatus::StartingRuntime, "");
            client.wait_until_alive(self.alive_within).await.map_err(|error| RuntimeError::Disconnected {
                what: format!("no server answers at {}", client.url()),
                source: Box::new(error),
            })?;
            let session_key = self.options.session_key.as_deref().map(Secret::new);
            Ok(Arc::new(OverHttp { client, session_key }) as Arc<dyn SandboxConnection>)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // The server belongs to whoever started it.
        Box::pin(async {})
    }
}

/// A sandbox that is reached by HTTP.
#[derive(Debug)]
struct OverHttp {
    client: ActionExecutionClient,
    session_key: Option<Secret>,
}

impl ActionExecutor for OverHttp {
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        self.client.execute(event)
    }
}

impl SandboxConnection for OverHttp {
    fn list_files<'a>(&'a self, path: Option<&'a str>) -> BoxFuture<'a, Result<Vec<String>, RuntimeError>> {
        Box::pin(async move { Ok(self.client.list_files(path).await?) })
    }

    fn copy_to<'a>(
        &'a self,
        source: &'a Path,
        destination: &'a str,
        recursive: bool,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async move { Ok(self.client.copy_to(source, destination, recursive).await?) })
    }

    fn copy_from<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<TempPath, RuntimeError>> {
        Box::pin(async move { Ok(self.client.copy_from(path).await?) })
    }

    fn mcp(&self) -> Option<&dyn McpHost> {
        Some(self)
    }

    fn session_key(&self) -> Option<Secret> {
        self.session_key.clone()
    }
}

impl McpHost for OverHttp {
    fn update<'a>(&'a self, servers: &'a [McpServerEntry]) -> BoxFuture<'a, Result<String, RuntimeError>> {
        Box::pin(async move { Ok(self.client.update_mcp_servers(servers).await?.router_error_log) })
    }

    fn url(&self) -> String {
        format!("{}/mcp/sse", self.client.url().trim_end_matches('/'))
    }
}

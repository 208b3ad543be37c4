//! A sandbox behind a server of the OpenHands interface.

use std::path::Path;

use gloveport_client::{ActionExecutionClient, ClientError};
use gloveport_protocol::{
    ActionEvent, ActionExecutor, BoxFuture, ExecuteError, McpServerEntry, Observation, Secret,
    exec::{ExecEnd, ExecRequest},
};
use tempfile::TempPath;

use super::{McpHost, SandboxConnection};
use crate::RuntimeError;

/// A sandbox that is reached by HTTP.
#[derive(Debug)]
pub(super) struct OverHttp {
    pub(super) client: ActionExecutionClient,
    pub(super) session_key: Option<Secret>,
    /// Where the work is, if it is known.
    pub(super) workspace: Option<String>,
    /// Its tools have the home directory of the user of this machine.
    pub(super) own_home: bool,
    /// Its tools were brought, and a relay is all that reaches them.
    pub(super) is_relayed: bool,
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
        // Nobody but its own programs reaches a server behind a relay.
        (!self.is_relayed).then_some(self as &dyn McpHost)
    }

    fn is_own_home(&self) -> bool {
        self.own_home
    }

    fn session_key(&self) -> Option<Secret> {
        self.session_key.clone()
    }

    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    fn exec<'a>(
        &'a self,
        request: ExecRequest,
        output: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<Option<ExecEnd>, RuntimeError>> {
        Box::pin(async move {
            let stream = match self.client.exec(request).await {
                // A server of OpenHands does not know native commands.
                Err(ClientError::Status(error))
                    if matches!(error.status.as_u16(), 404 | 405) && error.native.is_none() =>
                {
                    return Ok(None);
                }
                started => started?,
            };
            let take = |bytes: &[u8]| {
                output(bytes);
                Ok::<(), ClientError>(())
            };
            Ok(Some(stream.finish(take).await?))
        })
    }

    fn vscode_token(&self) -> BoxFuture<'_, Result<String, RuntimeError>> {
        Box::pin(async { Ok(self.client.vscode_token().await?) })
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

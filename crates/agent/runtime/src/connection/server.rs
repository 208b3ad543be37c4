//! A sandbox behind an HTTP server that already runs: ours, or the reference's.

use std::{sync::Arc, time::Duration};

use gloveport_client::{ActionExecutionClient, ClientOptions};
use gloveport_protocol::{BoxFuture, Secret};

use super::{ConnectRequest, Connector, SandboxConnection, over_http::OverHttp};
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
                source: Some(Box::new(error)),
            })?;
            let session_key = self.options.session_key.as_deref().map(Secret::new);
            Ok(Arc::new(OverHttp { client, session_key, workspace: None, own_home: false })
                as Arc<dyn SandboxConnection>)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // The server belongs to whoever started it.
        Box::pin(async {})
    }
}

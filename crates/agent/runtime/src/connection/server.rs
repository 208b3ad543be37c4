//! A sandbox behind an HTTP server that already runs: ours, the reference's, or an `agent-server` of OpenHands' SDK 1.x.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_client::{ActionExecutionClient, Carry, ClientOptions, Relay};
use gloveport_protocol::{BoxFuture, Secret};

use super::{BroughtTools, ConnectRequest, Connector, SandboxConnection, over_http::OverHttp};
use crate::{RuntimeError, RuntimeStatus, StatusLevel};

/// Connects to a server that somebody else has started and ends.
#[derive(Debug)]
pub struct ServerAt {
    options: ClientOptions,
    alive_within: Duration,
    tools: Option<BroughtTools>,
    /// The way to tools that were brought.
    relay: Mutex<Option<Arc<Relay>>>,
}

impl ServerAt {
    /// The server that these options name. `connect` waits two minutes for it.
    pub fn new(options: ClientOptions) -> Self {
        Self { options, alive_within: Duration::from_mins(2), tools: None, relay: Mutex::default() }
    }

    /// With another limit for the wait.
    #[must_use]
    pub fn alive_within(self, limit: Duration) -> Self {
        Self { alive_within: limit, ..self }
    }

    /// With tools for a server that has none. They end with the session.
    #[must_use]
    pub fn bringing(self, tools: BroughtTools) -> Self {
        Self { tools: Some(tools), ..self }
    }
}

impl Connector for ServerAt {
    fn connect<'a>(
        &'a self,
        request: ConnectRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn SandboxConnection>, RuntimeError>> {
        Box::pin(async move {
            request.status.set(StatusLevel::Info, RuntimeStatus::StartingRuntime, "");
            let mut client = ActionExecutionClient::new(&self.options)?;
            request.status.set(StatusLevel::Info, RuntimeStatus::StartingRuntime, "");
            client.wait_until_alive(self.alive_within).await.map_err(|error| RuntimeError::Disconnected {
                what: format!("no server answers at {}", client.url()),
                source: Some(Box::new(error)),
            })?;
            let relay = BroughtTools::bring(self.tools.as_ref(), &self.options, request.sid).await?;
            if let Some(relay) = &relay {
                *self.relay.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(relay));
                let carried: Arc<dyn Carry> = Arc::clone(relay) as _;
                client = ActionExecutionClient::new(&ClientOptions { relay: Some(carried), ..self.options.clone() })?;
            }
            let session_key = self.options.session_key.as_deref().map(Secret::new);
            Ok(
                Arc::new(OverHttp {
                    client,
                    session_key,
                    workspace: None,
                    own_home: false,
                    is_relayed: relay.is_some(),
                }) as Arc<dyn SandboxConnection>,
            )
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // The server belongs to whoever started it; tools that were brought are the session's.
        Box::pin(async {
            let relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(relay) = relay
                && let Err(error) = relay.end().await
            {
                tracing::warn!(%error, "tools that were brought into the sandbox go on until nobody has used them for half an hour");
            }
        })
    }
}

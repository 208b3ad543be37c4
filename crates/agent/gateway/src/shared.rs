//! What all requests share: the provider, the options, and what is known of sandboxes.

use std::sync::Arc;

use gloveport_client::Pool;
use gloveport_provider::{Capabilities, Provider, Sandbox};
use http::{HeaderMap, header::HOST, uri::Authority};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{GatewayOptions, fault::Fault, known::Known, tenancy::Tenancy};

/// The label of sandboxes that gateways make, where the engine has labels, and what it says.
pub(crate) const LABEL: (&str, &str) = ("gloveport-gateway", "default");

/// The label of those that their clients end.
pub(crate) const NOT_KEPT: &str = "gloveport-gateway-client-ends";

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) can: Capabilities,
    pub(crate) options: GatewayOptions,
    /// With a database.
    pub(crate) tenancy: Option<Tenancy>,
    pub(crate) known: Known,
    pub(crate) pool: Pool,
    pub(crate) upgraded: Arc<Semaphore>,
    /// Ends what was upgraded.
    pub(crate) stop: CancellationToken,
}

impl Shared {
    /// Whether a sandbox is one of the gateway's.
    pub(crate) fn is_own(&self, sandbox: &Sandbox) -> bool {
        !self.can.labels || sandbox.labels.get(LABEL.0).is_some_and(|value| value == LABEL.1)
    }

    /// The URL by which whoever sent these headers reaches the gateway.
    pub(crate) fn public_url(&self, headers: &HeaderMap) -> Result<String, Fault> {
        if let Some(url) = &self.options.public_url {
            return Ok(url.clone());
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        match host.filter(|host| !host.as_str().contains('@')) {
            Some(host) => Ok(format!("http://{host}")),
            None => Err(Fault::wrong("the header Host is missing, or names no host")),
        }
    }
}

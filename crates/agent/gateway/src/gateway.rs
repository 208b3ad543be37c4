//! The whole: a provider, a key, and what is known of sandboxes.

use std::{sync::Arc, time::Duration};

use axum::Router;
use gloveport_client::{Certificates, ClientError, Pool};
use gloveport_provider::{Capabilities, GcOptions, Provider, Sandbox};
use http::{HeaderMap, Uri, header::HOST, uri::Authority};
use tokio::{net::TcpListener, sync::Semaphore, time::sleep};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{GatewayOptions, api, fault::Fault, known::Known, listen};

/// Most WebSockets and other upgraded connections at a time.
const MOST_UPGRADED: usize = 4096;
/// Pause between two collections of garbage.
const COLLECT: Duration = Duration::from_mins(5);
/// The label of sandboxes that gateways make, where the engine has labels, and what it says.
pub(crate) const LABEL: (&str, &str) = ("gloveport-gateway", "default");

/// The label of those that their clients end.
pub(crate) const NOT_KEPT: &str = "gloveport-gateway-client-ends";

/// Why a gateway cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// It would let everybody in.
    #[error("the key is empty; write at least 16 characters into its file, for example with `openssl rand -hex 32`")]
    NoKey,
    /// The key can be guessed.
    #[error("the key has {0} characters, and at least 16 are needed; `openssl rand -hex 32` makes one")]
    ShortKey(usize),
    /// The public URL is none.
    #[error("`{0}` cannot be the public URL: it must be like https://sandboxes.example.org, without a query")]
    PublicUrl(String),
    /// There is no client for HTTP.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// A provider over HTTP.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) can: Capabilities,
    pub(crate) options: GatewayOptions,
    pub(crate) known: Known,
    pub(crate) pool: Pool,
    pub(crate) upgraded: Arc<Semaphore>,
    /// Ends what was upgraded.
    pub(crate) stop: CancellationToken,
}

impl Gateway {
    /// Fewest characters of the key.
    pub const SHORTEST_KEY: usize = 16;

    /// A gateway for the sandboxes of this provider. Nothing is asked yet.
    ///
    /// # Errors
    ///
    /// The key is none, or the public URL is.
    pub fn new(provider: Arc<dyn Provider>, mut options: GatewayOptions) -> Result<Self, GatewayError> {
        match options.key.expose().len() {
            0 => return Err(GatewayError::NoKey),
            length if length < Self::SHORTEST_KEY => return Err(GatewayError::ShortKey(length)),
            _ => {}
        }
        if let Some(url) = &mut options.public_url {
            let is_url = url.parse::<Uri>().is_ok_and(|uri| {
                let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
                is_http && uri.query().is_none() && uri.authority().is_some_and(|it| !it.as_str().contains('@'))
            });
            if !is_url || url.contains('#') {
                return Err(GatewayError::PublicUrl(url.clone()));
            }
            url.truncate(url.trim_end_matches('/').len());
        }
        Ok(Self {
            shared: Arc::new(Shared {
                can: provider.capabilities(),
                provider,
                options,
                known: Known::default(),
                pool: Pool::new(Certificates::Checked)?,
                upgraded: Arc::new(Semaphore::new(MOST_UPGRADED)),
                stop: CancellationToken::new(),
            }),
        })
    }

    /// The interface, and the ways to sandboxes.
    pub fn router(&self) -> Router {
        api::router(&self.shared)
    }

    /// Serves until `stop` is cancelled; then no more connections are accepted, and the answers in flight are finished. The
    /// sandboxes stay, and the provider is left open.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        let collecting = AbortOnDropHandle::new(tokio::spawn(collect(Arc::clone(&self.shared))));
        listen::serve(listener, self.router(), self.shared.options.drain, &stop).await;
        drop(collecting);
        self.shared.stop.cancel();
    }
}

/// Removes again and again what nobody wants any more: what has ended, and what is over its time.
async fn collect(shared: Arc<Shared>) {
    loop {
        sleep(COLLECT).await;
        match shared.provider.collect_garbage(&GcOptions::default()).await {
            Ok(report) if report.removed.is_empty() && report.failed.is_empty() => {}
            Ok(report) => {
                tracing::info!(removed = report.removed.len(), failed = report.failed.len(), "garbage was collected");
            }
            Err(error) => tracing::warn!(error = %gloveport_client::causes(&error), "garbage is left"),
        }
    }
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

//! What all requests share: the provider, the options, and what is known of sandboxes.

use std::sync::Arc;

use gloveport_client::Pool;
use gloveport_provider::{Capabilities, Provider, Sandbox};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header::HOST, uri::Authority};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    GatewayOptions, builds::Builds, domain::Domain, engine::Engine, fault::Fault, heads::API_KEY, hub::Hub,
    known::Known, labels::LABEL, metrics::Metrics, public::Public, streams::Streams, tenancy::Tenancy, tls::Tls,
    turns::Turns, waking::Waking, warm::Warm,
};

/// The header in which the gateway keeps how a request came, `http` or `https`; what clients say there is removed before.
pub(crate) const SCHEME: HeaderName = HeaderName::from_static("x-forwarded-proto");

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
    /// The domain of the sandboxes.
    pub(crate) domain: Option<Domain>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) engine: Engine,
    pub(crate) waking: Waking,
    /// What happens to sandboxes, for those who listen.
    pub(crate) hub: Hub,
    /// Answers that last.
    pub(crate) streams: Streams,
    pub(crate) turns: Turns,
    pub(crate) warm: Warm,
    /// With somebody who builds images.
    pub(crate) builds: Option<Builds>,
    /// The gateway is about to end.
    pub(crate) draining: CancellationToken,
    /// Ends what was upgraded.
    pub(crate) stop: CancellationToken,
}

impl Shared {
    /// Whether these headers have the key of the key file.
    pub(crate) fn has_file_key(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(API_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
        self.options.key.as_ref().is_some_and(|key| key.expose().as_bytes().ct_eq(shown).into())
    }

    /// Whether a sandbox is one of the gateway's.
    pub(crate) fn is_own(&self, sandbox: &Sandbox) -> bool {
        !self.can.labels || sandbox.labels.get(LABEL.0).is_some_and(|value| value == LABEL.1)
    }

    /// How whoever sent these headers, as they are behind [`entry`](crate::entry), reaches the gateway.
    pub(crate) fn public_url(&self, headers: &HeaderMap) -> Result<Public, Fault> {
        let domain = self.domain.clone();
        if let Some(url) = &self.options.public_url {
            return Ok(Public::new(url.clone(), domain));
        }
        Ok(Public::new(self.origin(headers)?, domain))
    }

    /// Scheme and host of what was asked.
    pub(crate) fn origin(&self, headers: &HeaderMap) -> Result<String, Fault> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| Fault::wrong("the header Host is missing, or names no host"))?;
        // A public URL knows better how clients come.
        let of_public = self.options.public_url.as_ref().and_then(|url| url.split_once("://"));
        let told = headers.get(SCHEME).and_then(|scheme| scheme.to_str().ok());
        let scheme = of_public.map(|(scheme, _)| scheme).or(told).unwrap_or("http");
        Ok(format!("{scheme}://{host}"))
    }

    /// Whether a host is that of the public URL, which may be one of the domain.
    pub(crate) fn is_own_host(&self, host: &Authority) -> bool {
        let uri = self.options.public_url.as_ref().and_then(|url| url.parse::<Uri>().ok());
        uri.and_then(|uri| uri.authority().map(|own| own.host().eq_ignore_ascii_case(host.host()))).unwrap_or(false)
    }
}

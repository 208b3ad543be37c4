//! What can be set on a gateway.

use std::time::Duration;

use gloveport_allow_list::Network;
use gloveport_e2b_face::FaceOptions;
use gloveport_gateway_store::Store;
use gloveport_origins::Origins;
use gloveport_protocol::Secret;
use gloveport_provider::Confinement;

use crate::{builds::ImageService, tls::TlsSource, warm::WarmPool};

/// What can be set on a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The key of the tenant `default`, which clients send as `X-API-Key`. Without a database it is the only one.
    pub key: Option<Secret>,
    /// Where tenants, their keys and their sessions are; without it there is one tenant.
    pub database: Option<Store>,
    /// What a sandbox counts for in the quotas of its tenant.
    pub size: Size,
    /// URL under which clients reach the gateway, without a slash at the end; `None` takes it from the `Host` of each
    /// request.
    pub public_url: Option<String>,
    /// The domain whose sub-domains are sandboxes: `{runtime_id}.example.org`. They are below the path of the gateway, too.
    pub domain: Option<String>,
    /// The certificate for TLS; without one, everything is in clear.
    pub tls: Option<TlsSource>,
    /// Proxies that are believed when they say for whom they ask, and how.
    pub trusted_proxies: Vec<Network>,
    /// Origins whose pages may use the native API and the servers of sandboxes from a browser. Keys are needed all the same.
    pub origins: Origins,
    /// The API of E2B beside the interface; without it there is none.
    pub e2b: Option<FaceOptions>,
    /// Who builds images; without it none are built.
    pub images: Option<ImageService>,
    /// Whether a request to a paused sandbox makes it go on.
    pub wake: bool,
    /// Sandboxes that are started ahead.
    pub warm: Vec<WarmPool>,
    /// How far all its sandboxes are kept apart from the machine, for a provider that can do that.
    pub confinement: Option<Confinement>,
    /// Sandboxes end this long after they were made.
    pub time_to_live: Option<Duration>,
    /// Sandboxes end when nobody has asked them anything for this long.
    pub idle_stop: Option<Duration>,
    /// Time for the head of a request, and how long a connection may be unused.
    pub patience: Duration,
    /// Most WebSockets at a time.
    pub websockets: usize,
    /// Time for the requests in flight when the gateway ends.
    pub drain: Duration,
}

impl GatewayOptions {
    /// With this key, and nothing else set.
    pub fn new(key: Secret) -> Self {
        Self {
            key: Some(key),
            database: None,
            size: Size::default(),
            public_url: None,
            domain: None,
            tls: None,
            trusted_proxies: Vec::new(),
            origins: Origins::default(),
            e2b: None,
            images: None,
            wake: false,
            warm: Vec::new(),
            confinement: None,
            time_to_live: None,
            idle_stop: None,
            patience: Duration::from_secs(75),
            websockets: 4096,
            drain: Duration::from_secs(10),
        }
    }

    /// With the tenants and keys of this database, and nothing else set.
    pub fn with_database(database: Store) -> Self {
        Self { key: None, database: Some(database), ..Self::new(Secret::new("")) }
    }
}

/// What a sandbox of resource factor 1 counts for in the quotas of its tenant; a larger one counts as many times as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Processors, in thousandths.
    pub cpu_millis: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

impl Default for Size {
    /// One processor and 4 GiB of memory.
    fn default() -> Self {
        Self { cpu_millis: 1000, memory_bytes: 4 * 1024 * 1024 * 1024 }
    }
}

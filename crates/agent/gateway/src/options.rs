//! What can be set on a gateway.

use std::time::Duration;

use gloveport_protocol::Secret;

/// What can be set on a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The key that clients send as `X-API-Key`.
    pub key: Secret,
    /// URL under which clients reach the gateway, without a slash at the end; `None` takes it from the `Host` of each
    /// request.
    pub public_url: Option<String>,
    /// Sandboxes end this long after they were made.
    pub time_to_live: Option<Duration>,
    /// Sandboxes end when nobody has asked them anything for this long.
    pub idle_stop: Option<Duration>,
    /// Time for the requests in flight when the gateway ends.
    pub drain: Duration,
}

impl GatewayOptions {
    /// With this key, and nothing else set.
    pub fn new(key: Secret) -> Self {
        Self { key, public_url: None, time_to_live: None, idle_stop: None, drain: Duration::from_secs(10) }
    }
}

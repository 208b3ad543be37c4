//! Who asks.

use std::sync::Arc;

use gloveport_provider::Provider;

/// Who asks. Whoever checks keys puts it into each request as an extension.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The tenant, by a name that can be part of a path. Nobody else sees its sessions.
    pub tenant: String,
    /// The tenant's sandboxes, by the tenant's names of sessions, within its quotas.
    pub provider: Arc<dyn Provider>,
}

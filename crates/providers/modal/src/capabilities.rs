//! What sandboxes of Modal can do.

use gloveport_provider::{Capabilities, Isolation};

/// They do not depend on settings. There is no rest: what is paused elsewhere is kept as an image here.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    isolation: Isolation::Container,
    images: true,
    limit_cpus: true,
    limit_memory: true,
    resource_factor: true,
    network_policy: true,
    ports: true,
    labels: true,
    logs: true,
    follow_logs: true,
    time_to_live: true,
    idle_stop: true,
    keep_alive: true,
    snapshots: true,
    ..Capabilities::NONE
};

//! What a service can do that speaks the Remote Runtime API and nothing else.

use gloveport_provider::{Capabilities, Isolation, StandsFor};

/// What the interface has words for. Labels, mounts, limits, networks, ports and logs are not among it.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    isolation: Isolation::Container,
    stands_for: Some(StandsFor::Remote),
    images: true,
    commands: true,
    resource_factor: true,
    users: true,
    runtime_classes: true,
    pause: true,
    keep_alive: true,
    ..Capabilities::NONE
};

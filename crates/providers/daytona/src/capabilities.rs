//! What sandboxes of Daytona can do.

use gloveport_provider::{Capabilities, Isolation};

use crate::{DaytonaOptions, Traffic};

/// What does not depend on settings.
const CAPABILITIES: Capabilities = Capabilities {
    isolation: Isolation::Container,
    images: true,
    network_policy: true,
    labels: true,
    pause: true,
    logs: true,
    follow_logs: true,
    time_to_live: true,
    idle_stop: true,
    keep_alive: true,
    snapshots: true,
    ..Capabilities::NONE
};

/// A port has a URL that needs no header only where everybody may reach it, and a sandbox has a size only if it is made from an
/// image.
pub(crate) fn of(options: &DaytonaOptions) -> Capabilities {
    let limits = options.image.is_some();
    Capabilities {
        limit_cpus: limits,
        limit_memory: limits,
        limit_disk: limits,
        ports: options.traffic == Traffic::Public,
        ..CAPABILITIES
    }
}

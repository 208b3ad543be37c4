//! What sandboxes of Runloop can do.

use gloveport_provider::{Capabilities, Isolation};

use crate::{RunloopOptions, Tunnel};

/// What does not depend on settings. A rest keeps the disk alone.
const CAPABILITIES: Capabilities = Capabilities {
    isolation: Isolation::VirtualMachine,
    images: true,
    resource_factor: true,
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

/// A port has a URL that needs no header only where everybody may reach it.
pub(crate) fn of(options: &RunloopOptions) -> Capabilities {
    Capabilities { ports: options.tunnel == Tunnel::Open, ..CAPABILITIES }
}

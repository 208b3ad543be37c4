//! What sandboxes of E2B can do.

use gloveport_provider::{Capabilities, Isolation};

use crate::{E2bOptions, Traffic};

/// What does not depend on settings. Processors and memory are properties of a template, and so no limits of a sandbox.
const CAPABILITIES: Capabilities = Capabilities {
    isolation: Isolation::VirtualMachine,
    images: true,
    network_policy: true,
    labels: true,
    pause: true,
    pause_keeps_processes: true,
    logs: true,
    follow_logs: true,
    time_to_live: true,
    idle_stop: true,
    keep_alive: true,
    snapshots: true,
    ..Capabilities::NONE
};

/// A port has a URL of its own that needs no header only where everybody may reach it.
pub(crate) fn of(options: &E2bOptions) -> Capabilities {
    Capabilities { ports: options.traffic == Traffic::Public && options.sandbox_url.is_none(), ..CAPABILITIES }
}

//! What the provider can do.

use gloveport_provider::{Capabilities, Isolation, StandsFor};

/// What it can do with a cluster whose network enforces policies, and with workspaces on volumes.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    isolation: Isolation::Container,
    stands_for: Some(StandsFor::Kubernetes),
    images: true,
    commands: true,
    volumes: true,
    limit_cpus: true,
    limit_memory: true,
    limit_disk: true,
    resource_factor: true,
    gpus: true,
    network_policy: true,
    ports: true,
    labels: true,
    users: true,
    runtime_classes: true,
    pause: true,
    logs: true,
    follow_logs: true,
    time_to_live: true,
    idle_stop: true,
    keep_alive: true,
    orphans: true,
    warm: true,
    ..Capabilities::NONE
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_cannot_do_what_a_cluster_does_not_promise() {
        let can = CAPABILITIES;
        assert!(!can.host_directories && !can.limit_processes && !can.snapshots && !can.pause_keeps_processes);
        assert_eq!(can.stands_for, Some(StandsFor::Kubernetes));
    }
}

//! What a provider can do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Level;

macro_rules! capabilities {
    ($($(#[doc = $doc:literal])+ $name:ident = $label:literal,)+) => {
        /// What a provider can do. What it cannot do it refuses ([`SandboxSpec::check`](crate::SandboxSpec::check)).
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Capabilities {
            /// What keeps a sandbox apart from the machine.
            pub isolation: Isolation,
            /// Which runtime of OpenHands it stands for. Sessions tell their states in the order and the words of that one.
            pub stands_for: Option<StandsFor>,
            $($(#[doc = $doc])+ pub $name: bool,)+
        }

        impl Capabilities {
            /// Nothing but to start and end a sandbox.
            pub const NONE: Self = Self { isolation: Isolation::None, stands_for: None, $($name: false,)+ };

            /// All of them in the order of the documents: field, what it is for people, and whether it is there.
            pub fn rows(&self) -> Vec<(&'static str, &'static str, bool)> {
                vec![$((stringify!($name), $label, self.$name),)+]
            }
        }
    };
}

capabilities! {
    /// A sandbox is made from an image that the caller names.
    images = "images",
    /// A command of the caller runs instead of our server.
    commands = "own command",
    /// Directories of the backend's machine can be used in a sandbox.
    host_directories = "host directories",
    /// Volumes of the engine can be used in a sandbox.
    volumes = "volumes",
    /// The processors can be limited.
    limit_cpus = "CPU limit",
    /// The memory can be limited.
    limit_memory = "memory limit",
    /// The disk space can be limited.
    limit_disk = "disk limit",
    /// The number of processes can be limited.
    limit_processes = "process limit",
    /// Sandboxes come in sizes, as multiples of a base.
    resource_factor = "sizes",
    /// A sandbox can have GPUs.
    gpus = "GPUs",
    /// The network can be closed or confined.
    network_policy = "network policy",
    /// Ports of programs in a sandbox get URLs.
    ports = "exposed ports",
    /// Sandboxes carry labels, by which they can be listed.
    labels = "labels",
    /// The user and group in a sandbox can be chosen.
    users = "user and group",
    /// How far sandboxes are kept apart from the machine can be chosen.
    confine = "isolation levels",
    /// Secrets can be put into requests on their way out, so that the sandbox never has them.
    edge_secrets = "secrets at the edge",
    /// What happens in a sandbox can be recorded where it does not reach.
    audit = "audit log",
    /// There are several ways to keep sandboxes apart.
    runtime_classes = "runtime classes",
    /// Sandboxes can be paused and resumed; their files and, where the engine can, their processes stay.
    pause = "pause and resume",
    /// Processes go on after a pause where they were.
    pause_keeps_processes = "processes survive a pause",
    /// What the server writes can be read.
    logs = "logs",
    /// What the server writes can be followed.
    follow_logs = "follow logs",
    /// Sandboxes end by themselves after a time.
    time_to_live = "time to live",
    /// Sandboxes end by themselves when nobody uses them.
    idle_stop = "stop when idle",
    /// Sandboxes can outlive the backend that made them, and others can attach to them.
    keep_alive = "keep alive and attach",
    /// It knows when a backend that held a sandbox has died.
    orphans = "finds orphans",
    /// The files of a sandbox can be kept as an image, and sandboxes made from it.
    snapshots = "snapshots and forks",
    /// Sandboxes can be started ahead.
    warm = "warm sandboxes",
}

impl Capabilities {
    /// What can be had beside it where a sandbox is kept apart from the machine, on this level.
    #[must_use]
    pub const fn kept_apart(self, level: Level) -> Self {
        let (is_apart, has_root) = (!matches!(level, Level::None), level.has_root());
        Self {
            network_policy: self.network_policy || is_apart,
            audit: self.audit || is_apart,
            limit_processes: self.limit_processes || has_root,
            edge_secrets: self.edge_secrets || has_root,
            images: self.images || has_root,
            ..self
        }
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        Self::NONE
    }
}

/// What keeps a sandbox apart from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nothing: it works on the machine as a user of it.
    #[default]
    None,
    /// Its processes are confined by the kernel and see the machine's files.
    Process,
    /// It has files, processes and a network of its own.
    Container,
    /// It has a kernel of its own.
    VirtualMachine,
}

/// A runtime of OpenHands 0.62 that hosts sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StandsFor {
    /// Processes of this machine's user.
    Local,
    /// Containers of an engine.
    Docker,
    /// Pods of a cluster.
    Kubernetes,
    /// A service that speaks the remote runtime API.
    Remote,
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Process => "process",
            Self::Container => "container",
            Self::VirtualMachine => "virtual machine",
        })
    }
}

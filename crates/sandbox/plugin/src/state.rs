//! What a plugin is started with, and how it stands.

use std::path::PathBuf;

use gloveport_sys::Surroundings;

/// What a plugin is started with.
#[derive(Debug, Clone)]
pub struct PluginHost {
    /// As whom, where and with what environment its programs run.
    pub surroundings: Surroundings,
    /// The workspace of the sandbox.
    pub workspace: PathBuf,
}

/// How a plugin stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginState {
    /// Usable when it is needed, and not started.
    Idle,
    /// On its way.
    Starting {
        /// What is being done, such as `installing ipykernel`.
        step: String,
    },
    /// Usable.
    Ready,
    /// Not usable.
    Failed {
        /// What failed.
        reason: String,
        /// What can be done about it.
        remedy: String,
    },
    /// Ended.
    Stopped,
}

//! How a kernel stands.

use std::time::Duration;

/// How a kernel stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelState {
    /// On its way: what is being done.
    Starting(Step),
    /// Waits for a cell, or runs one.
    Ready(Facts),
    /// Cannot be used. The next cell tries again.
    Failed {
        /// What failed.
        reason: String,
        /// What can be done about it.
        remedy: String,
    },
    /// Closed.
    Closed,
}

/// What is done at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An interpreter is looked for.
    Finding,
    /// `ipykernel` is being installed.
    Installing,
    /// The kernel is coming up.
    Launching,
}

/// What a running kernel tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Path of its interpreter (`sys.executable`).
    pub interpreter: String,
    /// Process id.
    pub pid: u32,
    /// How many kernels there were before this one.
    pub generation: u64,
}

/// Why a cell was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// The kernel cannot be started.
    #[error("the IPython kernel cannot be started: {reason}; {remedy}")]
    Failed {
        /// What failed.
        reason: String,
        /// What can be done about it.
        remedy: String,
    },
    /// It was not ready in the time of the cell: it was starting, or an older cell ignores that it was interrupted.
    #[error("the IPython kernel was not ready within {} s", .0.as_secs_f64())]
    NotReady(Duration),
    /// It is closed.
    #[error("the IPython kernel is closed")]
    Closed,
}

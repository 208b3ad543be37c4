//! What of a sandbox is ready, what is starting, and what failed.

use std::time::{Duration, Instant};

/// One part of a sandbox, such as its shell.
#[derive(Debug, Clone)]
pub struct Part {
    /// Name of the part.
    pub name: String,
    /// How it stands.
    pub state: PartState,
    /// Since when.
    pub since: Instant,
    /// What is being done while it starts.
    pub step: Option<String>,
    /// How long it took to start, once it is ready.
    pub took: Option<Duration>,
}

/// How a part stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartState {
    /// Not asked for.
    Off,
    /// Started by its first use.
    Idle,
    /// On its way.
    Starting,
    /// Usable.
    Ready,
    /// Not usable.
    Failed {
        /// What failed.
        reason: String,
        /// What can be done about it.
        remedy: String,
    },
}

impl Part {
    /// A part that begins to start now.
    pub fn starting(name: impl Into<String>) -> Self {
        Self { name: name.into(), state: PartState::Starting, since: Instant::now(), step: None, took: None }
    }

    /// The same part, usable from now on.
    #[must_use]
    pub fn ready(self) -> Self {
        Self { state: PartState::Ready, took: Some(self.since.elapsed()), since: Instant::now(), ..self }
    }

    /// The same part, failed.
    #[must_use]
    pub fn failed(self, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        let state = PartState::Failed { reason: reason.into(), remedy: remedy.into() };
        Self { state, since: Instant::now(), ..self }
    }
}

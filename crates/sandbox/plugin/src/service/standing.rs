//! How a service stands and since when, as others see it.

use std::time::Instant;

use tokio::sync::watch;

use crate::plugin::PluginState;

/// Tells how a service stands.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    state: watch::Sender<PluginState>,
    since: watch::Sender<Instant>,
}

impl Standing {
    /// Idle from now on.
    pub(crate) fn new() -> Self {
        Self { state: watch::Sender::new(PluginState::Idle), since: watch::Sender::new(Instant::now()) }
    }

    /// Changes it.
    pub(crate) fn set(&self, state: PluginState) {
        if *self.state.borrow() != state {
            self.since.send_replace(Instant::now());
            self.state.send_replace(state);
        }
    }

    pub(crate) fn state(&self) -> watch::Receiver<PluginState> {
        self.state.subscribe()
    }

    pub(crate) fn since(&self) -> watch::Receiver<Instant> {
        self.since.subscribe()
    }
}

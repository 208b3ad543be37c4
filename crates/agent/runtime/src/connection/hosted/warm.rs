//! Sandboxes that are started ahead (local-and-cli-runtime A2, A3, A5).

use std::{collections::BTreeMap, sync::Arc};

use gloveport_provider::Provider;

use crate::RuntimeError;

/// How many sandboxes wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmPool {
    /// When the backend starts (`INITIAL_NUM_WARM_SERVERS`).
    pub initial: usize,
    /// After each connection (`DESIRED_NUM_WARM_SERVERS`), for [`HostedOptions::warm`](super::HostedOptions).
    pub desired: usize,
}

impl WarmPool {
    /// The numbers that the variables of the backend say; none is 0.
    pub fn from_environment(variables: &BTreeMap<String, String>) -> Result<Self, RuntimeError> {
        let number = |name: &'static str| {
            let Some(value) = variables.get(name) else { return Ok(0) };
            let must = "a number of sandboxes";
            value.trim().parse().map_err(|_| RuntimeError::BackendVariable { name, must, value: value.clone() })
        };
        Ok(Self { initial: number("INITIAL_NUM_WARM_SERVERS")?, desired: number("DESIRED_NUM_WARM_SERVERS")? })
    }

    /// Starts the first ones and waits for them: what a backend calls once, before its first session. A provider
    /// without warm sandboxes has nothing to do, as in OpenHands.
    pub async fn set_up(&self, provider: &dyn Provider) -> Result<(), RuntimeError> {
        if self.initial > 0 && provider.capabilities().warm {
            provider.warm(self.initial).await?;
        }
        Ok(())
    }
}

/// Fills up the pool. A failure costs time later, and nothing else.
pub(super) async fn fill(provider: Arc<dyn Provider>, count: usize) {
    if let Err(error) = provider.warm(count).await {
        tracing::warn!(provider = provider.name(), count, %error, "no sandboxes could be started ahead");
    }
}

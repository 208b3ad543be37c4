//! Which provider is checked, and how.

use std::{sync::Arc, time::Duration};

use gloveport_provider::{Level, Provider, ProviderError};

/// Makes a provider anew, as another backend on the same engine would.
pub type Make = Arc<dyn Fn() -> Result<Arc<dyn Provider>, ProviderError> + Send + Sync>;

/// How the suite is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The image of all sandboxes; `None` for the provider's default.
    pub image: Option<String>,
    /// How far all sandboxes are kept apart from the machine; `None` for what the provider does.
    pub level: Option<Level>,
    /// Only checks whose id begins so; none selects all.
    pub only: Vec<String>,
    /// Time limit of one check.
    pub limit: Duration,
    /// How long a server may take until it answers.
    pub alive_within: Duration,
    /// Sandboxes that are made at the same time.
    pub at_once: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            image: None,
            level: None,
            only: Vec::new(),
            limit: Duration::from_mins(3),
            alive_within: Duration::from_mins(2),
            at_once: 8,
        }
    }
}

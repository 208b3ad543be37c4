//! How a browser is started.

use std::{path::PathBuf, time::Duration};

use gloveport_sys::Surroundings;

/// How a browser is started, and what it may use.
#[derive(Debug, Clone)]
pub struct BrowserOptions {
    /// As whom, where and with what environment.
    pub surroundings: Surroundings,
    /// The program; `None` looks for one.
    pub program: Option<PathBuf>,
    /// Where downloads go.
    pub downloads: PathBuf,
    /// Time without use after which it is ended.
    pub idle: Duration,
    /// Most memory of all its processes together, in bytes.
    pub memory_limit: u64,
    /// Time to come up.
    pub start_limit: Duration,
    /// Time for one step.
    pub step_limit: Duration,
    /// Time for a navigation, and for all that has no time limit of its own (spec/browser.md 1.1).
    pub page_limit: Duration,
}

impl BrowserOptions {
    /// The usual ones (spec/browser.md 1 and 1.1).
    pub fn new(surroundings: Surroundings, downloads: PathBuf) -> Self {
        Self {
            surroundings,
            program: None,
            downloads,
            idle: Duration::from_mins(30),
            memory_limit: 4 * 1024 * 1024 * 1024,
            // A cold disk and a busy machine take many times the usual 0.3 s.
            start_limit: Duration::from_mins(1),
            step_limit: Duration::from_mins(2),
            page_limit: Duration::from_secs(100),
        }
    }
}

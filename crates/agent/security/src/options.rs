//! What analyzers are told at their start.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use gloveport_protocol::Secret;

use crate::analyzers::InvariantOptions;

/// What analyzers are told at their start.
#[derive(Clone, Default)]
pub struct AnalyzerOptions {
    /// Where in the sandbox the agent works, for `rules`.
    pub workspace: PathBuf,
    /// The environment variables of the backend that begin with `GRAYSWAN_`.
    pub environment: BTreeMap<String, Secret>,
    /// The server of `invariant`.
    pub invariant: InvariantOptions,
    /// URL of the monitor of `grayswan`, if it is not the hosted one.
    pub grayswan_endpoint: Option<String>,
    /// Connections to use; without, an analyzer makes its own.
    pub http: Option<reqwest::Client>,
}

impl AnalyzerOptions {
    /// Options for a workspace, with the environment of this process.
    pub fn from_environment(workspace: impl Into<PathBuf>) -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("GRAYSWAN_"))
            .map(|(name, value)| (name, Secret::new(value)))
            .collect();
        Self { workspace: workspace.into(), environment, ..Self::default() }
    }
}

impl fmt::Debug for AnalyzerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnalyzerOptions").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

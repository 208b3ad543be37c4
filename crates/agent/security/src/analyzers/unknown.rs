//! The analyzer behind a name that nobody knows (security 2).

use gloveport_protocol::{ActionEvent, BoxFuture};

use crate::{
    analyzer::{Assessment, History, SecurityAnalyzer},
    error::AnalyzerError,
};

/// Fails for every action, so that each has an unknown risk.
#[derive(Debug, Clone)]
pub struct UnknownAnalyzer {
    configured: String,
}

impl UnknownAnalyzer {
    /// For the name in the configuration.
    pub fn new(name: impl Into<String>) -> Self {
        Self { configured: name.into() }
    }

    fn error(&self) -> AnalyzerError {
        AnalyzerError::Unknown { name: self.configured.clone() }
    }
}

impl SecurityAnalyzer for UnknownAnalyzer {
    fn name(&self) -> &'static str {
        "unknown"
    }

    fn assess<'a>(
        &'a self,
        _action: &'a ActionEvent,
        _history: &'a dyn History,
    ) -> BoxFuture<'a, Result<Assessment, AnalyzerError>> {
        Box::pin(async { Err(self.error()) })
    }
}

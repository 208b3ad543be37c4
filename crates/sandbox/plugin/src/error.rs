//! Why a plugin cannot be used.

/// Why a plugin cannot be initialised. The sandbox does not start then, if it was asked for by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct PluginError {
    /// What failed.
    pub reason: String,
    /// What can be done about it.
    pub remedy: String,
}

impl PluginError {
    /// An error with these two parts.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }
}

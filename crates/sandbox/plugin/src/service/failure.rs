//! Why a start failed, and whether another one may do better.

use crate::plugin::PluginError;

/// A start that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: PluginError,
    pub(crate) hope: Hope,
}

/// What may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hope {
    /// Another start.
    Again,
    /// Another port, at once.
    OtherPort,
    /// Nothing but a change by somebody.
    None,
    /// It was to be stopped.
    Stopped,
}

impl Failure {
    pub(crate) fn new(hope: Hope, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { error: PluginError::new(reason, remedy), hope }
    }

    /// The service was stopped meanwhile.
    pub(crate) fn stopped(name: &str) -> Self {
        Self::new(Hope::Stopped, format!("{name} was stopped while it started"), "start the sandbox again")
    }
}

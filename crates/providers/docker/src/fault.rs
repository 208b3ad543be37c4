//! Errors of the engine as errors of a provider.

use std::fmt::Display;

use gloveport_docker_engine::EngineError;
use gloveport_provider::ProviderError;

/// The name by which the provider is registered.
pub(crate) const NAME: &str = "docker";
/// What messages call it.
const ENGINE: &str = "the Docker engine";

/// An error that is not the engine's own.
pub(crate) fn failed(action: impl Into<String>, reason: impl Display) -> ProviderError {
    ProviderError::Engine { engine: ENGINE.to_owned(), action: action.into(), reason: reason.to_string() }
}

pub(crate) fn wrong(field: impl Into<String>, reason: impl Display) -> ProviderError {
    ProviderError::Spec { field: field.into(), reason: reason.to_string() }
}

pub(crate) fn of(error: EngineError) -> ProviderError {
    match error {
        EngineError::Unreachable { endpoint, reason, hint } => {
            ProviderError::Unreachable { engine: format!("{ENGINE} at {endpoint}"), source: reason.into(), hint }
        }
        EngineError::Access { endpoint, reason, hint } => {
            ProviderError::Access { engine: format!("{ENGINE} at {endpoint}"), reason, hint }
        }
        EngineError::Answer { action, message, .. } => failed(action, message),
        EngineError::Timeout { endpoint, action, limit } => {
            ProviderError::Timeout { action: format!("asking {ENGINE} at {endpoint} to {action}"), limit }
        }
        other => failed("answer", other),
    }
}

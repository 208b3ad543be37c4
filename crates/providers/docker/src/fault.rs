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

/// What to do about a container that cannot be started.
pub(crate) fn of_start(error: EngineError) -> ProviderError {
    let EngineError::Answer { action, message, .. } = error else { return of(error) };
    let lower = message.to_lowercase();
    let hint = if lower.contains("port is already allocated") || lower.contains("address already in use") {
        "; something else uses the port: leave `sandbox.vscode_port` and `port_ranges` unset, so that the engine chooses"
    } else if lower.contains("exec format error") {
        "; the image is for other processors than those of the engine"
    } else if lower.contains("could not select device driver") {
        "; the engine has no support for GPUs: install the container toolkit of their maker, or set enable_gpu to false"
    } else if lower.contains("no space left") {
        "; free some space where the engine keeps its data"
    } else {
        ""
    };
    failed(action, format!("{message}{hint}"))
}

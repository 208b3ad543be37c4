//! What went wrong with an engine, in words and with what to do.

use std::{error::Error as _, io, time::Duration};

use bollard::errors::Error;

use crate::Endpoint;

/// What went wrong with an engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Nothing answers.
    #[error("the Docker engine at {endpoint} cannot be reached: {reason}; {hint}")]
    Unreachable {
        /// Which engine.
        endpoint: String,
        /// Why.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// This user may not use it.
    #[error("the Docker engine at {endpoint} refuses access: {reason}; {hint}")]
    Access {
        /// Which engine.
        endpoint: String,
        /// Why.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// It answered with an error.
    #[error("the Docker engine could not {action}: {message}")]
    Answer {
        /// What was tried: "create the container `x`".
        action: String,
        /// HTTP status of the answer; 0 for an error that came within an answer.
        status: u16,
        /// What it says.
        message: String,
    },
    /// It did not answer in time.
    #[error("the Docker engine at {endpoint} did not {action} within {} s; is it busy, or does it hang?", limit.as_secs())]
    Timeout {
        /// Which engine.
        endpoint: String,
        /// What was tried.
        action: String,
        /// The limit.
        limit: Duration,
    },
}

impl EngineError {
    pub(crate) fn of(endpoint: &Endpoint, action: &str, limit: Duration, error: Error) -> Self {
        let at = || endpoint.to_string();
        match error {
            Error::DockerResponseServerError { status_code, message } => {
                Self::Answer { action: action.to_owned(), status: status_code, message: one_line(&message) }
            }
            Error::DockerStreamError { error } => {
                Self::Answer { action: action.to_owned(), status: 0, message: one_line(&error) }
            }
            Error::RequestTimeoutError => Self::Timeout { endpoint: at(), action: action.to_owned(), limit },
            Error::SocketNotFoundError(path) => Self::Unreachable {
                endpoint: at(),
                reason: format!("there is no socket {path}"),
                hint: "start the engine (systemctl start docker), or set DOCKER_HOST to the one that runs".to_owned(),
            },
            other => {
                let text = deepest(&other);
                match kind_of(&other) {
                    Some(io::ErrorKind::PermissionDenied) => Self::Access {
                        endpoint: at(),
                        reason: text,
                        hint: "add this user to the group `docker` and log in again, or use a rootless engine"
                            .to_owned(),
                    },
                    Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => Self::Unreachable {
                        endpoint: at(),
                        reason: text,
                        hint: "nothing listens there: start the engine (systemctl start docker), or set DOCKER_HOST \
                               to the one that runs"
                            .to_owned(),
                    },
                    _ => Self::Unreachable {
                        endpoint: at(),
                        reason: text,
                        hint: "is the engine running, and its address right?".to_owned(),
                    },
                }
            }
        }
    }

    /// The status of the answer, if there was one.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Answer { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether what was asked for does not exist.
    pub const fn is_not_found(&self) -> bool {
        matches!(self.status(), Some(404))
    }

    /// Whether the name is taken, or the thing is in another state. Podman says that in words alone.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Answer { status: 409, .. } => true,
            Self::Answer { status: 500, message, .. } => {
                message.contains("name is already in use") || message.contains("container state improper")
            }
            _ => false,
        }
    }

    /// Whether the container is between two states: Podman has one for those that have just ended which Docker has not,
    /// and which its clients do not understand.
    pub fn is_between_states(&self) -> bool {
        matches!(self, Self::Unreachable { reason, .. } if reason.contains("unknown variant `stopped`"))
    }
}

/// The kind of system error at the bottom.
fn kind_of(error: &Error) -> Option<io::ErrorKind> {
    if let Error::IOError { err } = error {
        return Some(err.kind());
    }
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(system) = cause.downcast_ref::<io::Error>() {
            return Some(system.kind());
        }
        source = cause.source();
    }
    None
}

/// What is at the bottom: what stands above it tells of the library's parts.
fn deepest(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = cause.to_string();
        source = cause.source();
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

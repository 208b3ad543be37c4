//! What can go wrong between the client and the server.

use std::{error::Error, fmt, io, path::PathBuf, time::Duration};

use gloveport_protocol::{ExecuteError, python};
use reqwest::{StatusCode, Url};
use serde_json::Value;

/// Why a request gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The text is no URL.
    #[error("`{text}` is not a URL such as http://127.0.0.1:8000")]
    Url {
        /// What was given.
        text: String,
    },
    /// The URL is of a kind that cannot be used.
    #[error("{url}: only http and https can be used")]
    Scheme {
        /// What was given.
        url: String,
    },
    /// A header cannot be sent.
    #[error("the header `{name}` has a name or a value that cannot be sent")]
    Header {
        /// Its name.
        name: String,
    },
    /// No HTTP client can be made.
    #[error("cannot create an HTTP client: {}", causes(.0))]
    NoHttp(#[source] reqwest::Error),
    /// The request cannot be made.
    #[error("the request to {url} cannot be made: {reason}")]
    Request {
        /// Where it was to go.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The server answered with a status that is no success (`action-execution-client` 2.1).
    #[error(transparent)]
    Status(#[from] Box<StatusError>),
    /// Every attempt that the rules allow has failed (`action-execution-client` 2.1 and 2.2). It is not a status
    /// error, even if the last attempt ended with one.
    #[error("gave up after {attempts} attempts: {last}")]
    RetriesExhausted {
        /// How many requests were sent.
        attempts: u32,
        /// How the last one failed.
        last: Box<ClientError>,
    },
    /// No connection could be made.
    #[error("no connection to {url}: {}", causes(.source))]
    Unreachable {
        /// Where the request was to go.
        url: String,
        /// Why not.
        source: reqwest::Error,
    },
    /// The peer closed the connection without a whole answer, or what it sent is not HTTP.
    #[error("{url} closed the connection without a whole answer: {}", causes(.source))]
    Incomplete {
        /// Where the request went.
        url: String,
        /// What is missing.
        source: reqwest::Error,
    },
    /// The connection broke in another way.
    #[error("the connection to {url} broke: {}", causes(.source))]
    Broken {
        /// Where the request went.
        url: String,
        /// How.
        source: reqwest::Error,
    },
    /// Nothing happened for too long.
    #[error("no answer from {url} for {} s", python::float_text(.limit.as_secs_f64()))]
    Silent {
        /// Where the request went.
        url: String,
        /// How long nothing may happen.
        limit: Duration,
    },
    /// An operation of the interface ran into its limit; holds the whole text (`action-execution-client` 4 and 5).
    #[error("{0}")]
    Timeout(String),
    /// An action ran into its limit (`action-execution-client` 4).
    #[error(
        "Runtime failed to return execute_action before the requested timeout of {}s",
        python::float_text(.0.as_secs_f64())
    )]
    ActionTimeout(Duration),
    /// The answer is not what it must be.
    #[error("{url} answered something that cannot be understood: {reason}")]
    Answer {
        /// Where the request went.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The answer is larger than this client takes.
    #[error("the answer of {url} has more than {limit} bytes")]
    TooLarge {
        /// Where the request went.
        url: String,
        /// Most bytes.
        limit: u64,
    },
    /// A command that nothing would end (`action-execution-client` 4).
    #[error("Blocking command with no timeout set")]
    BlockingWithoutTimeout,
    /// An edit that a model has to make cannot be sent to a sandbox (`action-execution-client` 4).
    #[error("an edit with the source `llm_based_edit` is made by the runtime and not by a sandbox")]
    ModelEdit,
    /// What is to be copied is not there (`action-execution-client` 5.1).
    #[error("Source file {} does not exist", .0.display())]
    SourceMissing(PathBuf),
    /// A file on this machine cannot be used.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// What was to be done: "read".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A tree of files cannot be packed or unpacked.
    #[error("{}: {source}", .path.display())]
    Archive {
        /// The directory on this machine.
        path: PathBuf,
        /// Why not.
        source: gloveport_archive::ArchiveError,
    },
    /// A stream was lost and could not be taken up again.
    #[error("the connection to {url} was lost and could not be taken up again: {last}")]
    Lost {
        /// The server.
        url: String,
        /// How the last attempt failed.
        last: Box<ClientError>,
    },
    /// Something in the sandbox behind an `agent-server` does not work.
    #[error("cannot {what} in the sandbox behind {url}: {reason}")]
    Sandbox {
        /// The `agent-server`.
        url: String,
        /// What was to be done: "start the tools".
        what: String,
        /// Why not.
        reason: String,
    },
    /// The server closed a WebSocket for good.
    #[error("{url} closed the connection: {reason} ({code})")]
    Refused {
        /// Where it went.
        url: String,
        /// The close code.
        code: u16,
        /// What the server says.
        reason: String,
    },
    /// The sandbox is gone or cannot be used for now: what a [`Recovery`](crate::Recovery) says about a failure.
    #[error("{message}")]
    Disconnected {
        /// The whole text.
        message: String,
        /// The failure.
        source: Box<ClientError>,
    },
}

/// An answer with a status that is no success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusError {
    /// The method, in upper case.
    pub method: String,
    /// Where the request went.
    pub url: Url,
    /// The status.
    pub status: StatusCode,
    /// Where a redirect points to.
    pub location: Option<String>,
    /// The value of `detail` in a JSON body.
    pub detail: Option<Value>,
    /// The error object of the native interface.
    pub native: Option<NativeError>,
}

/// The error object of the native interface: `{"error": {"code", "message", "hint"}}`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct NativeError {
    /// A name for programs.
    pub code: String,
    /// What failed, for people.
    pub message: String,
    /// What to do about it; may be empty.
    #[serde(default)]
    pub hint: String,
}

impl StatusError {
    /// The detail as text: a string as it is, everything else as Python prints it.
    pub fn detail_text(&self) -> Option<String> {
        self.detail.as_ref().map(|detail| match detail {
            Value::String(text) => text.clone(),
            other => python::repr(other),
        })
    }

    /// Whether the server has no such call, as one of OpenHands has none of the native interface.
    pub fn is_unknown_call(&self) -> bool {
        let codes = ["unknown_path", "method_not_allowed"];
        [404, 405].contains(&self.status.as_u16())
            && self.native.as_ref().is_none_or(|error| codes.contains(&error.code.as_str()))
    }

    /// Whether the server says that its sandbox is paused, and can be resumed.
    pub fn is_paused(&self) -> bool {
        self.status == 503 && self.native.as_ref().is_some_and(|error| error.code == "paused")
    }

    /// What the server says is wrong, in whichever form it says it.
    pub fn reason(&self) -> Option<String> {
        self.detail_text().or_else(|| self.native.as_ref().map(|error| error.message.clone()))
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.status.as_u16() / 100 {
            1 => "Informational response",
            3 => "Redirect response",
            4 => "Client error",
            _ => "Server error",
        };
        write!(formatter, "{kind} '{}", self.status.as_u16())?;
        if let Some(reason) = self.status.canonical_reason() {
            write!(formatter, " {reason}")?;
        }
        write!(formatter, "' for url '{}'", self.url)?;
        if let Some(location) = &self.location {
            write!(formatter, "\nRedirect location: '{location}'")?;
        }
        if let Some(detail) = self.reason() {
            write!(formatter, "\nDetails: {detail}")?;
        }
        if let Some(error) = self.native.as_ref().filter(|error| !error.hint.is_empty()) {
            write!(formatter, " ({})", error.hint)?;
        }
        Ok(())
    }
}

impl Error for StatusError {}

impl ClientError {
    /// The status of the answer, if the server gave one that is no success.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status(error) => Some(error.status),
            _ => None,
        }
    }

    /// Whether something took too long.
    pub const fn is_timeout(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::Timeout(_) | Self::ActionTimeout(_))
    }

    /// Whether the network failed: no connection, or a broken one.
    pub const fn is_network(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Broken { .. } | Self::Incomplete { .. })
    }

    /// Sorts an error of the HTTP library.
    pub(crate) fn sending(url: &Url, error: reqwest::Error) -> Self {
        let error = error.without_url();
        let url = url.to_string();
        if error.is_connect() {
            Self::Unreachable { url, source: error }
        } else if is_incomplete(&error) {
            Self::Incomplete { url, source: error }
        } else if error.is_builder() {
            Self::Request { url, reason: causes(&error) }
        } else {
            Self::Broken { url, source: error }
        }
    }
}

/// Whether the peer closed the connection without a whole answer, or sent what is not HTTP.
fn is_incomplete(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<hyper::Error>()
            && (http.is_incomplete_message() || http.is_parse())
        {
            return true;
        }
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error with its causes, in one line.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

impl From<ClientError> for ExecuteError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::ActionTimeout(limit) => Self::Timeout { limit },
            ClientError::BlockingWithoutTimeout => Self::BlockingWithoutTimeout,
            ClientError::RetriesExhausted { attempts, last } => {
                Self::RetriesExhausted { attempts, last: Box::new(Self::from(*last)) }
            }
            ClientError::Status(error) => {
                Self::Status { status: error.status.as_u16(), detail: error.detail_text(), text: error.to_string() }
            }
            error @ ClientError::Unreachable { .. } => Self::Unreachable(error.to_string()),
            error @ (ClientError::Incomplete { .. } | ClientError::Broken { .. }) => {
                Self::ConnectionLost(error.to_string())
            }
            error @ (ClientError::Disconnected { .. } | ClientError::Sandbox { .. }) => {
                Self::Disconnected(error.to_string())
            }
            error => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_there_is_not_and_a_paused_sandbox_are_told_from_other_refusals() {
        for (status, code, is_unknown, is_paused) in [
            (404, None, true, false),
            (405, None, true, false),
            (404, Some("unknown_path"), true, false),
            (405, Some("method_not_allowed"), true, false),
            (404, Some("not_found"), false, false),
            (403, None, false, false),
            (503, None, false, false),
            (503, Some("paused"), false, true),
            (503, Some("too_many_requests"), false, false),
            (500, Some("paused"), false, false),
        ] {
            let native = code.map(|code| NativeError { code: code.into(), message: "m".into(), hint: String::new() });
            let error = StatusError {
                method: "GET".into(),
                url: "http://localhost/v1/exec".parse().unwrap(),
                status: StatusCode::from_u16(status).unwrap(),
                location: None,
                detail: None,
                native,
            };
            let found = (error.is_unknown_call(), error.is_paused());
            assert_eq!(found, (is_unknown, is_paused), "{status} {code:?}");
        }
    }
}

//! Errors of calls.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use gloveport_client::ClientError;
use http::StatusCode;
use serde_json::{Value, json};

/// Most bytes of a message.
pub(super) const MESSAGE: usize = 4 * 1024 * 1024;

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    DataLoss,
    Unimplemented,
    Internal,
    Unavailable,
    Unauthenticated,
}

impl Code {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::PermissionDenied => "permission_denied",
            Self::ResourceExhausted => "resource_exhausted",
            Self::FailedPrecondition => "failed_precondition",
            Self::DataLoss => "data_loss",
            Self::Unimplemented => "unimplemented",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Unauthenticated => "unauthenticated",
        }
    }

    /// The status of an answer with it.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument | Self::FailedPrecondition => StatusCode::BAD_REQUEST,
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists => StatusCode::CONFLICT,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::DataLoss | Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ConnectError {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl ConnectError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub(crate) fn json(&self) -> Value {
        json!({"code": self.code.word(), "message": self.message})
    }
}

impl From<ClientError> for ConnectError {
    fn from(error: ClientError) -> Self {
        let ClientError::Status(status) = &error else {
            tracing::debug!(%error, "the server of a sandbox does not answer");
            let message = "the server of the sandbox does not answer; it may be starting anew, so try again";
            return Self::new(Code::Unavailable, message);
        };
        let native = status.native.as_ref();
        let message = native.map_or_else(|| error.to_string(), |native| native.message.clone());
        if status.is_unknown_call() {
            let message = "the server of the sandbox is older than its gateway, and cannot do this; make a new sandbox";
            return Self::new(Code::Unimplemented, message);
        }
        let code = match (native.map(|native| native.code.as_str()), status.status.as_u16()) {
            (Some("exists"), _) => Code::AlreadyExists,
            (Some("permission_denied"), _) => Code::PermissionDenied,
            (Some("is_a_directory" | "not_a_directory" | "not_a_regular_file" | "file_refused"), _) | (_, 400) => {
                Code::InvalidArgument
            }
            (Some("storage_full"), _) | (_, 413 | 429) => Code::ResourceExhausted,
            (Some("not_running"), _) | (_, 404) => Code::NotFound,
            (_, 409) => Code::FailedPrecondition,
            (_, 403) => Code::Unauthenticated,
            (_, 502 | 503) => Code::Unavailable,
            (_, 504) => Code::DeadlineExceeded,
            _ => Code::Internal,
        };
        Self::new(code, message)
    }
}

impl IntoResponse for ConnectError {
    fn into_response(self) -> Response {
        (self.code.status(), Json(self.json())).into_response()
    }
}

/// A message is larger than any may be.
pub(super) fn too_large() -> ConnectError {
    ConnectError::new(Code::ResourceExhausted, format!("the message has more than {MESSAGE} bytes, or broke off"))
}

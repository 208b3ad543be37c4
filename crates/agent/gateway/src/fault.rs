//! Answers that are errors: a status and `detail` (remote-runtime-api 1).

use std::time::Duration;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use gloveport_provider::ProviderError;
use http::{HeaderValue, StatusCode, header::RETRY_AFTER};

/// When it is worth trying again, unless it is known better.
const RETRY: Duration = Duration::from_secs(4);

/// Why a request is not answered as hoped.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    status: StatusCode,
    detail: String,
    /// When it is worth trying again.
    retry_after: Option<Duration>,
    is_of_engine: bool,
    /// A word for programs, where the status does not say it.
    code: Option<&'static str>,
}

/// The fault that an answer was made of; it is an extension, of which the native API makes its own form.
#[derive(Clone, Debug)]
pub(crate) struct Told(pub(crate) Fault);

/// Why a request to a route beside the interface is not answered as hoped: an extension of the answer, which gets the form of
/// the native API.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// A word for programs, where the status does not say it.
    pub code: Option<&'static str>,
    /// What failed, and why.
    pub message: String,
}

impl Refusal {
    pub(crate) fn fault(&self, status: StatusCode) -> Fault {
        Fault { code: self.code, ..Fault::new(status, self.message.as_str()) }
    }
}

/// Says of an answer that the engine is to blame; it is an extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineFault;

impl Fault {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None, is_of_engine: false, code: None }
    }

    /// The same, with a word for programs.
    pub(crate) fn called(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The word for programs.
    pub(crate) fn code(&self) -> Option<&'static str> {
        self.code
    }

    /// The same, with when it is worth trying again.
    pub(crate) fn after(self, time: Duration) -> Self {
        Self { retry_after: Some(time), ..self }
    }

    /// It is worth to ask again soon.
    pub(crate) fn passes(self) -> Self {
        self.after(RETRY)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// When it is worth trying again.
    pub(crate) fn retry_after(&self) -> Duration {
        self.retry_after.unwrap_or(RETRY)
    }

    /// The request cannot be understood, or not be done as it is.
    pub(crate) fn wrong(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The client has gone before it was answered.
    pub(crate) fn gone() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "the client went away before it had its answer")
    }

    /// An answer cannot be written.
    pub(crate) fn unsaid(error: &serde_json::Error) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer could not be written: {error}"))
    }

    /// There is no such thing, or it is of somebody else.
    pub(crate) fn missing(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no such {what}"))
    }
}

impl From<ProviderError> for Fault {
    fn from(error: ProviderError) -> Self {
        if let ProviderError::Quota { reason, retry_after } = error {
            return Self::new(StatusCode::TOO_MANY_REQUESTS, reason).after(retry_after).called("quota_exceeded");
        }
        let status = match &error {
            ProviderError::NotFound(_) => StatusCode::NOT_FOUND,
            ProviderError::Access { .. } => StatusCode::FORBIDDEN,
            ProviderError::Unsupported { .. } | ProviderError::Spec { .. } | ProviderError::Name(_) => {
                StatusCode::BAD_REQUEST
            }
            ProviderError::SessionExists { .. } | ProviderError::State { .. } => StatusCode::CONFLICT,
            ProviderError::Unreachable { .. } | ProviderError::Timeout { .. } | ProviderError::Closed(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let code = match &error {
            ProviderError::NotFound(_) => "not_found",
            ProviderError::Access { .. } => "engine_refused",
            ProviderError::Unsupported { .. } => "unsupported",
            ProviderError::Spec { .. } | ProviderError::Name(_) => "invalid",
            ProviderError::SessionExists { .. } => "session_exists",
            ProviderError::State { .. } => "wrong_state",
            ProviderError::Start { .. } => "start_failed",
            ProviderError::Unreachable { .. } | ProviderError::Timeout { .. } | ProviderError::Closed(_) => {
                "engine_unavailable"
            }
            _ => "engine_failed",
        };
        if status.is_server_error() {
            tracing::warn!(%error, "the engine did not do what it was asked to");
        }
        Self { is_of_engine: status.is_server_error(), ..Self::new(status, error.to_string()) }.called(code)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(serde_json::json!({"detail": &self.detail}))).into_response();
        if self.is_of_engine {
            response.extensions_mut().insert(EngineFault);
        }
        let after = self.retry_after.or((self.status == StatusCode::TOO_MANY_REQUESTS).then_some(RETRY));
        if let Some(after) = after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response.extensions_mut().insert(Told(self));
        response
    }
}

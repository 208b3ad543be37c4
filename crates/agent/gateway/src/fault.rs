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
}

/// Says of an answer that the engine is to blame; it is an extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineFault;

impl Fault {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None, is_of_engine: false }
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

    /// There is no such thing, or it is of somebody else.
    pub(crate) fn missing(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no such {what}"))
    }
}

impl From<ProviderError> for Fault {
    fn from(error: ProviderError) -> Self {
        if let ProviderError::Quota { reason, retry_after } = error {
            return Self::new(StatusCode::TOO_MANY_REQUESTS, reason).after(retry_after);
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
        if status.is_server_error() {
            tracing::warn!(%error, "the engine did not do what it was asked to");
        }
        Self { is_of_engine: status.is_server_error(), ..Self::new(status, error.to_string()) }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(serde_json::json!({"detail": self.detail}))).into_response();
        if self.is_of_engine {
            response.extensions_mut().insert(EngineFault);
        }
        let after = self.retry_after.or((self.status == StatusCode::TOO_MANY_REQUESTS).then_some(RETRY));
        if let Some(after) = after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

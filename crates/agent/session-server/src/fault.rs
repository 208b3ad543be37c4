//! Answers that are errors: a status and `detail`, as the rest of the gateway gives them.

use std::time::Duration;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use gloveport_event_stream::{AddEventError, HistoryError, StoreError};
use gloveport_provider::ProviderError;
use gloveport_runtime::RuntimeError;
use gloveport_security::GateError;
use http::{HeaderValue, StatusCode, header::RETRY_AFTER};

/// When it is worth trying again, unless it is known better.
const RETRY: Duration = Duration::from_secs(2);

/// What an answer that is an error was made of. Each has one as an extension, for whoever gives all errors one form.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// A word for programs, where the status does not say it.
    pub code: Option<&'static str>,
    /// What failed, and why.
    pub message: String,
}

/// Why a request is not answered as hoped.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    retry_after: Option<Duration>,
    code: Option<&'static str>,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None, code: None }
    }

    /// The same, with a word for programs.
    pub(crate) fn called(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The request cannot be understood, or not be done as it is.
    pub(crate) fn wrong(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The session is in a state in which this is not possible.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail).called("wrong_state")
    }

    /// There is no such session, or it is of somebody else.
    pub(crate) fn missing() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no such session")
    }

    /// It is possible later.
    pub(crate) fn later(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).after(RETRY)
    }

    /// A bound is reached.
    pub(crate) fn too_many(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, detail).after(RETRY)
    }

    fn after(self, time: Duration) -> Self {
        Self { retry_after: Some(time), ..self }
    }

    /// Whether who asks may not have it, or not now, so that nothing of it is to be kept.
    pub(crate) fn is_refusal(&self) -> bool {
        self.status.is_client_error()
    }

    /// What failed is on this machine, and none of the client's business.
    fn internal(error: &dyn std::error::Error) -> Self {
        tracing::error!(%error, "a session could not be served");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the history of the session cannot be used; the log says why")
    }
}

impl From<ProviderError> for Fault {
    fn from(error: ProviderError) -> Self {
        let status = match &error {
            ProviderError::Quota { retry_after, .. } => {
                let fault = Self::new(StatusCode::TOO_MANY_REQUESTS, error.to_string());
                return fault.after(*retry_after).called("quota_exceeded");
            }
            ProviderError::NotFound(_) => StatusCode::NOT_FOUND,
            ProviderError::Access { reason, .. } => return Self::new(StatusCode::FORBIDDEN, reason.clone()),
            ProviderError::Unsupported { .. } | ProviderError::Spec { .. } | ProviderError::Name(_) => {
                StatusCode::BAD_REQUEST
            }
            ProviderError::SessionExists { .. } | ProviderError::State { .. } => StatusCode::CONFLICT,
            ProviderError::Unreachable { .. } | ProviderError::Timeout { .. } | ProviderError::Closed(_) => {
                return Self::later(error.to_string());
            }
            _ => StatusCode::BAD_GATEWAY,
        };
        Self::new(status, error.to_string())
    }
}

impl From<RuntimeError> for Fault {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Provider(error) => error.into(),
            RuntimeError::Gate(error) => error.into(),
            RuntimeError::AddEvent(error) => error.into(),
            RuntimeError::History(error) => error.into(),
            RuntimeError::Closed => Self::later("the session is being let go; ask again"),
            RuntimeError::VariableName { .. }
            | RuntimeError::VariableValue { .. }
            | RuntimeError::Branch(_)
            | RuntimeError::NoRepository => Self::wrong(error.to_string()),
            error if error.is_unavailable() => Self::later(error.to_string()),
            error => Self::new(StatusCode::BAD_GATEWAY, error.to_string()),
        }
    }
}

impl From<GateError> for Fault {
    fn from(error: GateError) -> Self {
        match error {
            GateError::TooMany { .. } => Self::too_many(error.to_string()),
            GateError::WithoutId | GateError::AlreadyPending { .. } | GateError::NotPending { .. } => {
                Self::conflict(error.to_string())
            }
        }
    }
}

impl From<AddEventError> for Fault {
    fn from(error: AddEventError) -> Self {
        match error {
            AddEventError::HasId { .. } | AddEventError::Masked { .. } => Self::wrong(error.to_string()),
            AddEventError::Closed => Self::later("the session is being let go; ask again"),
            error => Self::internal(&error),
        }
    }
}

impl From<HistoryError> for Fault {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Locked { .. } => {
                let detail = "another gateway serves this session now; ask that one, or ask again";
                Self::later(detail).called("served_elsewhere")
            }
            error => Self::internal(&error),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::internal(&error)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(serde_json::json!({"detail": &self.detail}))).into_response();
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response.extensions_mut().insert(Refusal { code: self.code, message: self.detail });
        response
    }
}

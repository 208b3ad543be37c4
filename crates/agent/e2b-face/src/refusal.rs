//! Why something is not done, and how the control plane says so: `{code, message, error_code?}` (`hosted-apis` 2.4).

use std::time::Duration;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use gloveport_client::ClientError;
use gloveport_provider::ProviderError;
use http::{HeaderName, HeaderValue, StatusCode, header::RETRY_AFTER};
use serde_json::json;

/// Says whether it makes sense to send the request once more.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("should-retry");

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The status of the answer.
    pub status: StatusCode,
    /// What failed, why, and what to do.
    pub message: String,
    /// When it is worth trying again.
    pub retry_after: Option<Duration>,
    code: Option<&'static str>,
}

impl Refusal {
    /// With this status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None, code: None }
    }

    /// The same, with when it is worth trying again.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self { retry_after: Some(time), ..self }
    }

    /// The same, with a word for programs.
    pub(crate) fn called(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is no such sandbox, or it is somebody else's.
    pub(crate) fn no_sandbox(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("sandbox \"{id}\" doesn't exist or you don't have access to it"))
    }

    /// Something that E2B has and this does not.
    pub(crate) fn not_offered(what: &str) -> Self {
        let message =
            format!("{what} not offered by this server: it is a gateway of gloveport that speaks the API of E2B");
        Self::new(StatusCode::NOT_IMPLEMENTED, message)
    }
}

impl From<ProviderError> for Refusal {
    fn from(error: ProviderError) -> Self {
        let status = match &error {
            ProviderError::Quota { retry_after, .. } => {
                let retry_after = *retry_after;
                return Self::new(StatusCode::TOO_MANY_REQUESTS, error.to_string()).after(retry_after);
            }
            ProviderError::NotFound(id) => return Self::no_sandbox(id.as_str()),
            ProviderError::Access { .. } => StatusCode::FORBIDDEN,
            ProviderError::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
            ProviderError::Spec { .. } | ProviderError::Name(_) => StatusCode::BAD_REQUEST,
            ProviderError::SessionExists { .. } | ProviderError::State { .. } => StatusCode::CONFLICT,
            ProviderError::Unreachable { .. } | ProviderError::Timeout { .. } | ProviderError::Closed(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => {
                tracing::warn!(%error, "a sandbox could not be made or changed");
                return Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).called("sandbox_create_failed");
            }
        };
        Self::new(status, error.to_string())
    }
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        Self::new(
            StatusCode::BAD_GATEWAY,
            format!("the server of the sandbox did not do what it was asked to: {error}"),
        )
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = json!({"code": self.status.as_u16(), "message": self.message});
        if let Some(code) = self.code {
            body["error_code"] = code.into();
        }
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        let temporary = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        let after = self.retry_after.or(temporary.contains(&self.status).then_some(Duration::from_secs(4)));
        if let Some(after) = after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        } else if self.status.is_server_error() {
            // It would fail in the same way, or be made twice.
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_says_when_to_come_again_and_what_does_not_that_it_is_useless() {
        let quota = ProviderError::Quota { reason: "full".to_owned(), retry_after: Duration::from_millis(2500) };
        let response = Refusal::from(quota).into_response();
        assert_eq!((response.status().as_u16(), &response.headers()[RETRY_AFTER]), (429, &HeaderValue::from(3)));
        let unsupported = ProviderError::Unsupported { provider: "x".to_owned(), what: "labels".to_owned() };
        let response = Refusal::from(unsupported).into_response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()[SHOULD_RETRY]),
            (501, &HeaderValue::from_static("false"))
        );
    }
}

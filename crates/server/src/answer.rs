//! Answers with JSON.

use axum::{body::Body, response::Response};
use gloveport_protocol::{ErrorBody, ValidationErrorBody};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

/// What every unforeseen failure is answered with.
pub(crate) const UNEXPECTED: &str = "An unexpected error occurred. Please try again later.";

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => with_type(status, "application/json", bytes),
        Err(error) => {
            tracing::error!(%error, "an answer can not be written as JSON");
            unexpected()
        }
    }
}

/// An answer with `{"detail": ...}`.
pub(crate) fn detail(status: StatusCode, text: impl Into<String>) -> Response {
    json(status, &ErrorBody::new(text))
}

/// The answer to a request that does not have the form it must have.
pub(crate) fn invalid(errors: impl Into<String>) -> Response {
    json(StatusCode::UNPROCESSABLE_ENTITY, &ValidationErrorBody::new(errors))
}

/// The answer to what nobody foresaw.
pub(crate) fn unexpected() -> Response {
    detail(StatusCode::INTERNAL_SERVER_ERROR, UNEXPECTED)
}

/// An answer with a body of any type.
pub(crate) fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

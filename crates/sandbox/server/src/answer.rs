//! Answers with JSON.

use std::fmt::Write as _;

use axum::{body::Body, response::Response};
use gloveport_protocol::{ErrorBody, ValidationErrorBody};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;
use utoipa::ToSchema;

/// An answer of a program, and none of ours, has this among its extensions.
#[derive(Clone, Copy)]
pub(crate) struct OfProgram;

/// What every unforeseen failure is answered with.
pub(crate) const UNEXPECTED: &str = "An unexpected error occurred. Please try again later.";

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => with_type(status, "application/json", bytes),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            unexpected()
        }
    }
}

/// Body of every answer of the native interface that is an error.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorEnvelope {
    /// What failed.
    pub(crate) error: ErrorObject,
}

/// What failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorObject {
    /// A name for programs.
    #[schema(value_type = String, example = "not_found")]
    pub(crate) code: &'static str,
    /// What failed, for people.
    pub(crate) message: String,
    /// What to do about it; may be empty.
    #[schema(value_type = String)]
    pub(crate) hint: &'static str,
}

/// An error of the native interface.
pub(crate) fn native(
    status: StatusCode,
    code: &'static str,
    message: impl Into<String>,
    hint: &'static str,
) -> Response {
    json(status, &ErrorEnvelope { error: ErrorObject { code, message: message.into(), hint } })
}

/// Whether a path belongs to the interface of this program, with the errors of that, and not to the one of OpenHands 0.62.
pub(crate) fn is_native(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/") || path == "/ready" || path == "/metrics"
}

/// A refusal that says nothing of the call itself, in the form that errors of the path have.
pub(crate) fn refusal(
    path: &str,
    status: StatusCode,
    code: &'static str,
    message: impl Into<String>,
    hint: &'static str,
) -> Response {
    if is_native(path) { native(status, code, message, hint) } else { detail(status, message) }
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

/// The answer of the native interface to what nobody foresaw.
pub(crate) fn defect() -> Response {
    native(StatusCode::INTERNAL_SERVER_ERROR, "defect", UNEXPECTED, "look into the log of the server")
}

/// An answer with a body of any type.
pub(crate) fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The name that a file is offered under, and what stands behind it.
pub(crate) fn disposition(name: &str, ending: &str) -> HeaderValue {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte);
    let value = if name.bytes().all(plain) {
        format!("attachment; filename=\"{name}{ending}\"")
    } else {
        let mut value = "attachment; filename*=utf-8''".to_owned();
        for byte in name.bytes() {
            // Writing to a `String` cannot fail.
            let _written =
                if plain(byte) { write!(value, "{}", char::from(byte)) } else { write!(value, "%{byte:02X}") };
        }
        value + ending
    };
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_offered_by_its_name_whatever_it_is() {
        for (name, ending, expected) in [
            ("project", ".zip", "attachment; filename=\"project.zip\""),
            ("", ".zip", "attachment; filename=\".zip\""),
            ("a-b_1.txt", "", "attachment; filename=\"a-b_1.txt\""),
            ("my project", ".zip", "attachment; filename*=utf-8''my%20project.zip"),
            ("pro\"j\r\n", ".zip", "attachment; filename*=utf-8''pro%22j%0D%0A.zip"),
            ("é", "", "attachment; filename*=utf-8''%C3%A9"),
        ] {
            assert_eq!(disposition(name, ending), expected, "{name:?}");
        }
    }
}

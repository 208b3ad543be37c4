//! One form of errors: `{"error": {"code", "message", "request_id"}}`.

use axum::{body::Body, extract::Request, middleware::Next, response::Response};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use serde_json::json;

use crate::{
    entry::ID,
    fault::{Fault, Refusal, Told},
};

/// Gives all errors of the native API their form.
pub(crate) async fn shape(request: Request, next: Next) -> Response {
    let id = request.headers().get(ID).and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let response = next.run(request).await;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    let told = parts.extensions.remove::<Told>().map(|Told(fault)| fault);
    let beside = || parts.extensions.get::<Refusal>().map(|refusal| refusal.fault(status));
    let fault = told.or_else(beside).unwrap_or_else(|| Fault::new(status, reason(status)));
    let code = fault.code().unwrap_or_else(|| word(status));
    // The old API has no such words.
    parts.status = match code {
        "unsupported" => StatusCode::NOT_IMPLEMENTED,
        "engine_refused" => StatusCode::BAD_GATEWAY,
        // A plugin or a program that is not there, most of the time.
        "start_failed" => StatusCode::UNPROCESSABLE_ENTITY,
        _ => status,
    };
    let body = json!({"error": {"code": code, "message": fault.detail(), "request_id": id}}).to_string();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(body))
}

/// What is said of an answer that is not one of ours.
fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::METHOD_NOT_ALLOWED => "this path has other methods; GET /openapi.json has all",
        status => status.canonical_reason().unwrap_or("the request failed"),
    }
}

fn word(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::REQUEST_TIMEOUT => "timeout",
        StatusCode::CONFLICT => "conflict",
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::TOO_MANY_REQUESTS => "too_many_requests",
        StatusCode::NOT_IMPLEMENTED => "unsupported",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable",
        status if status.is_server_error() => "internal",
        _ => "invalid",
    }
}

//! Pages of other origins that may use the native interface from a browser.
//!
//! The key is in a header, or among the protocols that a WebSocket offers, and a browser adds neither of them by itself. So a
//! page that may ask still has to bring the key, and no answer ever allows credentials (cookies, certificates).

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};

use crate::{answer, app::App, auth, policy};

/// What pages may do.
const METHODS: HeaderValue = HeaderValue::from_static("DELETE, GET, HEAD, POST, PUT");
/// What the native interface and MCP read of a request, beside what every page may send.
const ACCEPTED: HeaderValue = HeaderValue::from_static(
    "X-Session-API-Key, Content-Type, Accept-Encoding, Cache-Control, If-Match, If-Modified-Since, If-None-Match, \
     If-Range, If-Unmodified-Since, Last-Event-ID, Range, Authorization, Mcp-Protocol-Version, Mcp-Session-Id",
);
/// What clients read of the head of an answer, beside what every page sees.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Accept-Ranges, Content-Disposition, Content-Length, Content-Range, ETag, Mcp-Session-Id, Retry-After, X-Exec-Id, \
     X-File-Mode, X-Output-Next, X-Output-Offset, X-Output-State",
);
/// Seconds for which a browser may keep the answer to a preflight.
const KEPT: HeaderValue = HeaderValue::from_static("600");
const DEPENDS: HeaderValue =
    HeaderValue::from_static("Origin, Access-Control-Request-Method, Access-Control-Request-Private-Network");
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Whether pages may use what is at a path: the native interface, and what clients ask of the server itself. Programs behind
/// ports say themselves which pages may use them, and the view of the browser has pages of its own.
fn is_for_pages(path: &str) -> bool {
    let is_native = path.starts_with("/v1/") && !path.starts_with(auth::PORTS) && !path.starts_with("/v1/browser/view");
    is_native || [auth::COMPUTER, auth::PROXY].contains(&path) || ["/alive", "/ready", "/server_info"].contains(&path)
}

/// Answers preflights, and says in answers which page may have them. Whoever asks still needs the key.
pub(crate) async fn with_origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let origins = &app.options.origins;
    if origins.is_empty() || app.options.session_key.is_none() || !is_for_pages(request.uri().path()) {
        return next.run(request).await;
    }
    let headers = request.headers();
    let allowed = headers.get(ORIGIN).and_then(|origin| origins.answer_to(origin));
    let is_preflight = request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match &allowed {
        Some(_) if is_preflight => preflight(headers.contains_key(ASKS_PRIVATE)),
        _ => next.run(request).await,
    };
    // The answer to one page is not the answer to another one.
    response.headers_mut().append(VARY, if is_preflight { DEPENDS } else { HeaderValue::from_static("Origin") });
    if let Some(allowed) = allowed {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    response
}

fn preflight(asks_private: bool) -> Response {
    let mut response = answer::with_type(StatusCode::OK, "text/plain; charset=utf-8", "OK");
    policy::apply(&mut response);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ACCEPTED);
    headers.insert(ACCESS_CONTROL_MAX_AGE, KEPT);
    if asks_private {
        headers.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
    }
    response
}

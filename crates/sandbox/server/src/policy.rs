//! What browsers may do with an answer: show it alone, as what it says it is, and nothing else.
//!
//! Files and output of programs come from a sandbox, and are answered under the origin of the server and of the pages of
//! plugins. Whatever is in them, they are never a page, a script or a style of that origin.

use axum::response::Response;
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS},
};

/// An answer loads nothing, runs nothing, and has an origin of its own.
const ALONE: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
);
/// The same for a page of ours that has its style in it.
const STYLED: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
);
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Says so in an answer. What the answer says itself stays. A change of the protocol is nothing that could be shown.
pub(crate) fn apply(response: &mut Response) {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return;
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, ALONE),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
        (OPENER_POLICY, HeaderValue::from_static("same-origin")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ] {
        headers.entry(name).or_insert(value);
    }
}

/// Lets a page of ours have its style.
pub(crate) fn styled(mut response: Response) -> Response {
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, STYLED);
    response
}

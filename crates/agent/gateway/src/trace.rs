//! Spans for traces (OpenTelemetry): a request, what the provider does for it, and its way to a sandbox. Where the program has
//! nobody who takes them, they cost nothing, and what a client says of its own trace reaches the sandbox as it came.

use http::{HeaderMap, Method, StatusCode};
use opentelemetry::global::get_text_map_propagator;
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use tracing::{Span, field::Empty, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The target of spans that are for traces and not for the log.
pub const TRACE_TARGET: &str = "gloveport::trace";

/// The span of a request; its parent is what the client names.
pub(crate) fn request(method: &Method, route: &str, headers: &HeaderMap, id: &str) -> Span {
    let span = info_span!(
        target: TRACE_TARGET,
        "request",
        otel.kind = "server",
        otel.name = format!("{method} {route}"),
        otel.status_code = Empty,
        http.request.method = %method,
        http.route = route,
        http.response.status_code = Empty,
        request.id = id,
    );
    if !span.is_disabled() {
        let parent = get_text_map_propagator(|propagator| propagator.extract(&HeaderExtractor(headers)));
        // It has not begun yet, so it can.
        let _set = span.set_parent(parent);
    }
    span
}

/// The span of a request on its way to a sandbox.
pub(crate) fn way(method: &Method, sandbox: &str) -> Span {
    info_span!(
        target: TRACE_TARGET,
        "sandbox",
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = %method,
        http.response.status_code = Empty,
        sandbox.id = sandbox,
    )
}

/// The status of an answer.
pub(crate) fn record(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

/// Tells whoever is asked which span asks.
pub(crate) fn tell(span: &Span, headers: &mut HeaderMap) {
    if !span.is_disabled() {
        let context = span.context();
        get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut HeaderInjector(headers)));
    }
}

//! Pages of other origins that may use the native interface from a browser ([`gloveport_origins`]).

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gloveport_origins::{Interface, Visit};
use http::StatusCode;

use crate::{answer, app::App, policy};

/// Answers preflights, and says in answers which page may have them. Whoever asks still needs the key.
pub(crate) async fn with_origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let origins = &app.options.origins;
    let is_for_pages = Interface::is_of_sandbox(request.uri().path());
    if origins.is_empty() || app.options.session_key.is_none() || !is_for_pages {
        return next.run(request).await;
    }
    let visit = Visit::new(origins, Interface::SANDBOX, request.method(), request.headers());
    let mut response = if visit.is_welcome_preflight() { preflight() } else { next.run(request).await };
    visit.mark(response.headers_mut());
    response
}

fn preflight() -> Response {
    let mut response = answer::with_type(StatusCode::OK, "text/plain; charset=utf-8", "OK");
    policy::apply(&mut response);
    response
}

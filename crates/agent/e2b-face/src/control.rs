//! The control plane (`hosted-apis` 2.2).

mod create;
mod filter;
mod list;
mod logs;
mod owner;
mod snapshots;
mod state;
mod templates;
mod view;

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{any, delete, get, post},
};
use http::StatusCode;
use tokio::time::timeout;

use self::owner::{Handle, Owner};
use crate::{Refusal, shared::Shared};

/// Most bytes of the body of a request.
const BODY: usize = 1024 * 1024;
/// Time for it to come.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The control plane.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/sandboxes", get(list::list_running).post(create::create))
        .route("/v2/sandboxes", get(list::list).post(create::create))
        .route("/sandboxes/{id}", get(view::detail).delete(state::kill))
        .route("/sandboxes/{id}/timeout", post(state::set_timeout))
        .route("/sandboxes/{id}/refreshes", post(state::refresh))
        .route("/sandboxes/{id}/pause", post(state::pause))
        .route("/sandboxes/{id}/resume", post(state::resume))
        .route("/sandboxes/{id}/connect", post(state::connect))
        .route("/v2/sandboxes/{id}/connect", post(state::connect))
        .route("/sandboxes/{id}/snapshots", post(snapshots::snapshot))
        .route("/sandboxes/{id}/logs", get(logs::logs))
        .route("/v2/sandboxes/{id}/logs", get(logs::entries))
        .route("/sandboxes/{id}/metrics", get(logs::metrics))
        .route("/sandboxes/metrics", get(logs::metrics_of_all))
        .route("/templates", get(templates::list).post(nowhere))
        .route("/templates/{id}", delete(snapshots::delete).get(templates::find))
        .route("/templates/aliases/{alias}", get(templates::alias))
        .route("/snapshots", get(snapshots::list))
        .route("/sandboxes/{id}/{*rest}", any(nowhere))
        .route("/v2/sandboxes/{id}/{*rest}", any(nowhere))
        .route("/v2/templates", any(nowhere))
        .route("/v2/templates/{*rest}", any(nowhere))
        .route("/v3/templates", any(nowhere))
        .route("/v3/templates/{*rest}", any(nowhere))
        .route("/volumes", any(nowhere))
        .route("/volumes/{*rest}", any(nowhere))
        .route("/secrets", any(nowhere))
        .route("/secrets/{*rest}", any(nowhere))
        .method_not_allowed_fallback(wrong_method)
        .route_layer(middleware::from_fn_with_state(Arc::clone(shared), with_key))
        .with_state(Arc::clone(shared))
}

async fn nowhere(request: Request) -> Refusal {
    Refusal::not_offered(&format!("{} {} is", request.method(), request.uri().path()))
}

async fn wrong_method(request: Request) -> Refusal {
    let message = format!("{} has no {}", request.uri().path(), request.method());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

/// Lets nobody pass without a key, and no body that is large or slow.
async fn with_key(State(shared): Handle, mut request: Request, next: Next) -> Response {
    let address = request.extensions().get::<IpAddr>().copied();
    match shared.host.tenant(request.headers(), address).await {
        Ok(tenant) => request.extensions_mut().insert(Owner(tenant)),
        Err(refusal) => return refusal.into_response(),
    };
    let (parts, body) = request.into_parts();
    match timeout(BODY_TIME, to_bytes(body, BODY)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(_)) => {
            let message = format!("the body of the request has more than {BODY} bytes, or broke off");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message).into_response()
        }
        Err(_) => {
            Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body of the request did not come in time").into_response()
        }
    }
}

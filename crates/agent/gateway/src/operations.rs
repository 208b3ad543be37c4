//! What operators and their programs ask: whether requests should come here, and the metrics.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::get,
};
use gloveport_metrics::{TYPE, Text};
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};

use crate::{api, fault::Fault, shared::Shared};

type Handle = State<Arc<Shared>>;

/// Beside the interface, where metrics need the key of the gateway.
pub(crate) fn beside_interface(shared: &Arc<Shared>) -> Router {
    Router::new().route("/readyz", get(ready)).route("/metrics", get(metrics_with_key)).with_state(Arc::clone(shared))
}

/// On an address of its own, without a key.
pub(crate) fn alone(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/healthz", get(api::healthy))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(Arc::clone(shared))
}

/// 503 tells balancers to send requests elsewhere.
async fn ready(State(shared): Handle) -> Response {
    let status = if shared.draining.is_cancelled() {
        "draining"
    } else if shared.engine_seen().await.states.is_err() {
        "engine"
    } else {
        "ready"
    };
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(serde_json::json!({"status": status}))).into_response()
}

async fn metrics_with_key(state: Handle, headers: HeaderMap) -> Response {
    // The keys of tenants open what is theirs, and the metrics are everybody's.
    if state.has_file_key(&headers) {
        return metrics(state).await;
    }
    let detail = "the metrics need the key of `gloveport gateway --key-file` in the header X-API-Key; without a key they are \
        on the address of --metrics-address";
    Fault::new(StatusCode::UNAUTHORIZED, detail).into_response()
}

async fn metrics(State(shared): Handle) -> Response {
    let seen = shared.engine_seen().await;
    let mut text = Text::default();
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    text.info("gateway_build_info", "Version of the gateway.", &version);
    shared.metrics.write(&mut text);
    shared.warm.write(&mut text);
    text.gauge("gateway_engine_up", "Whether the engine answers.", usize::from(seen.states.is_ok()));
    text.header("gateway_sandboxes", "gauge", "Sandboxes by state, unless the engine does not answer.");
    for (state, count) in seen.states.iter().flatten() {
        text.sample("gateway_sandboxes", &format!("state=\"{state}\""), count);
    }
    ([(CONTENT_TYPE, TYPE)], text.into_string()).into_response()
}

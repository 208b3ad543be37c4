//! `/api/init` (`agent-server-workspace-api` §9.4): a server that waits for its settings takes them, once. Until then it
//! answers that it lives, and nothing else.

use std::sync::Arc;

use axum::{
    extract::{Request, State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    middleware::Next,
    response::Response,
    routing::MethodRouter,
};
use gloveport_proxy::Trust;
use http::{StatusCode, Uri};
use serde_json::json;
use tokio::sync::oneshot;
use tower::ServiceExt as _;

use super::{
    answers::{failed, invalid},
    hosted,
    options::SettleError,
    settings::settings_of,
    sockets::{Farewell, close},
    waiting::{Assemble, State as Progress, Waiting},
};
use crate::{answer, app::App, auth, body, route::Route};

/// The path of the settings.
const PATH: &str = "/api/init";
/// Largest settings, in bytes.
const SETTINGS: usize = 1024 * 1024;

/// Of a server that has had its settings from the beginning.
pub(super) fn of_settled() -> Route {
    Route { method: "get", path: PATH, handler: axum::routing::get(not_waiting).post(refused) }
}

/// Of one that waits for them; with them it gets the routes that `assemble` makes.
pub(super) fn of_waiting(assemble: Assemble) -> [Route; 2] {
    let take = async move |State(app): State<Arc<App>>, request: Request| take(app, request, assemble).await;
    let handler: MethodRouter<Arc<App>> = axum::routing::get(progress).post(take);
    [Route { method: "get", path: PATH, handler }, Route::get("/sockets/{*path}", socket)]
}

/// Settings are taken from whoever has the secret for that, and nobody has one.
async fn refused() -> Response {
    answer::detail(StatusCode::UNAUTHORIZED, "Unauthorized")
}

async fn not_waiting() -> Response {
    answer::detail(StatusCode::NOT_FOUND, "The server was not started to wait for its settings (OH_DEFERRED_INIT)")
}

async fn progress(State(app): State<Arc<App>>) -> Response {
    let Some(waiting) = &app.waiting else { return not_waiting().await };
    told(&waiting.state())
}

fn told(state: &Progress) -> Response {
    let error = if let Progress::Dormant { error } = state { error.as_deref() } else { None };
    answer::json(StatusCode::OK, &json!({"state": state.name(), "error": error}))
}

async fn take(app: Arc<App>, request: Request, assemble: Assemble) -> Response {
    let Some(waiting) = &app.waiting else { return not_waiting().await };
    if auth::trust(&app.options, &request) == Trust::Stranger {
        return refused().await;
    }
    let bytes = match body::text_of_json(SETTINGS, request.into_body(), &app.options.limits).await {
        Ok(bytes) => bytes,
        Err(error) => return error.answer(),
    };
    let settings = match settings_of(&bytes) {
        Ok(settings) => settings,
        Err(wrong) => return invalid(&wrong),
    };
    let has_empty_key = settings.session_keys.iter().flatten().any(|key| key.secret().is_empty());
    if has_empty_key && matches!(waiting.state(), Progress::Dormant { .. }) {
        return answer::detail(StatusCode::UNPROCESSABLE_ENTITY, "session_api_keys cannot contain empty keys");
    }
    let (tell, outcome) = oneshot::channel();
    // Whoever asked may be gone.
    let tell = move |made| drop(tell.send(made));
    if let Err(state) = waiting.begin(&app, settings, assemble, tell) {
        return answer::detail(StatusCode::BAD_REQUEST, format!("server already in state: {}", state.name()));
    }
    match outcome.await {
        Ok(Ok(())) => {
            tracing::info!("the settings have come: the server serves");
            told(&Progress::Ready)
        }
        Ok(Err(SettleError::Refused(text))) => answer::detail(StatusCode::UNPROCESSABLE_ENTITY, text),
        Ok(Err(SettleError::Failed(text))) => {
            tracing::error!(%text, "the settings could not be used; the server waits for others");
            failed(StatusCode::INTERNAL_SERVER_ERROR, &text)
        }
        Err(_) => answer::unexpected(),
    }
}

/// Sends requests to what the server has become.
pub(crate) async fn pass_on(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let settled = app.waiting.as_ref().and_then(Waiting::settled);
    match settled.filter(|_| request.uri().path() != PATH) {
        Some(known) => match known.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        None => next.run(request).await,
    }
}

/// The answer of one that waits to what it will know, and to what it never will.
pub(crate) fn unknown_path(waiting: &Waiting, uri: &Uri) -> Response {
    if hosted::owns(uri.path()) {
        return failed(StatusCode::SERVICE_UNAVAILABLE, &advice(waiting));
    }
    answer::detail(StatusCode::NOT_FOUND, "Not Found")
}

fn advice(waiting: &Waiting) -> String {
    format!("server is in deferred-init state '{}'; call POST {PATH} first", waiting.state().name())
}

/// A refused handshake would be retried at once; this code says that it is to be retried later.
async fn socket(State(app): State<Arc<App>>, upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>) -> Response {
    let (Ok(upgrade), Some(waiting)) = (upgrade, &app.waiting) else {
        return answer::detail(StatusCode::NOT_FOUND, "Not Found");
    };
    let farewell = Farewell { code: close::TRY_LATER, reason: advice(waiting).into() };
    upgrade.on_upgrade(async move |socket| farewell.say(socket).await)
}

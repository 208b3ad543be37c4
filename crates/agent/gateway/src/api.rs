//! The requests of the interface (remote-runtime-api 2).

use std::sync::Arc;

use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{DefaultBodyLimit, Path, RawQuery, Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_provider::{ListFilter, Progress, ProviderError, Sandbox, SandboxId, SandboxState, SessionId};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;
use tokio::time::timeout;

use crate::{
    fault::Fault,
    heads::API_KEY,
    shared::{LABEL, Shared},
    start::StartRequest,
    view::{self, Runtime},
    way,
};

/// Most bytes of the body of a request of the interface.
const BODY: usize = 4 * 1024 * 1024;
/// Time for it to come.
const BODY_TIME: std::time::Duration = std::time::Duration::from_secs(30);
/// Most sessions in one request.
const BATCH: usize = 256;
/// Sandboxes that are asked about at a time.
const AT_ONCE: usize = 8;

type Answer = Result<Json<Runtime>, Fault>;
type Handle = State<Arc<Shared>>;

pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let interface = Router::new()
        .route("/start", post(start))
        .route("/stop", post(stop))
        .route("/pause", post(pause))
        .route("/resume", post(resume))
        .route("/sessions/batch", get(batch))
        .route("/sessions/{session_id}", get(session))
        .route("/runtime/{runtime_id}", get(runtime))
        .route("/list", get(list))
        .route("/registry_prefix", get(no_images))
        .route("/image_exists", get(no_images))
        .route("/build", post(no_images))
        .route("/build_status", get(no_images))
        .route("/api/warm-runtime-configs", get(no_warm))
        .layer(DefaultBodyLimit::max(BODY))
        .route_layer(middleware::from_fn_with_state(Arc::clone(shared), with_key));
    Router::new().route("/healthz", get(healthy)).merge(interface).fallback(way::pass).with_state(Arc::clone(shared))
}

/// Lets nobody pass without the key.
async fn with_key(State(shared): Handle, request: Request, next: Next) -> Response {
    if has_key(&shared, request.headers()) {
        return match whole(request).await {
            Ok(request) => next.run(request).await,
            Err(fault) => fault.into_response(),
        };
    }
    no_key().into_response()
}

/// Whether these headers have the key of the gateway.
pub(crate) fn has_key(shared: &Shared, headers: &HeaderMap) -> bool {
    let shown = headers.get(API_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    bool::from(shared.options.key.expose().as_bytes().ct_eq(shown))
}

pub(crate) fn no_key() -> Fault {
    let detail = "the key in the header X-API-Key is missing or wrong; it is that of `gloveport gateway --key-file`";
    Fault::new(StatusCode::UNAUTHORIZED, detail)
}

pub(crate) async fn healthy() -> Json<serde_json::Value> {
    Json(serde_json::json!({"status": "ok"}))
}

/// The request with all of its body, which must come in time and be small.
async fn whole(request: Request) -> Result<Request, Fault> {
    let (parts, body) = request.into_parts();
    let large =
        || Fault::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body of the request has more than {BODY} bytes"));
    if axum::body::HttpBody::size_hint(&body).lower() > BODY as u64 {
        return Err(large());
    }
    match timeout(BODY_TIME, to_bytes(body, BODY)).await {
        Ok(Ok(body)) => Ok(Request::from_parts(parts, Body::from(body))),
        Ok(Err(_)) => Err(large()),
        Err(_) => Err(Fault::new(StatusCode::REQUEST_TIMEOUT, "the body of the request did not come in time")),
    }
}

fn json<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, Fault> {
    // An array would be taken for the members in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Fault::wrong("the body of the request must be a JSON object"));
    }
    serde_json::from_slice(body)
        .map_err(|error| Fault::wrong(format!("the body of the request is not as it must be: {error}")))
}

async fn start(State(shared): Handle, headers: HeaderMap, body: Bytes) -> Answer {
    let public = shared.public_url(&headers)?;
    let request: StartRequest = json(&body)?;
    let spec = request.spec(&shared.can, &shared.options)?;
    let (sandbox, created) = match shared.provider.create(&spec, &Progress::silent()).await {
        Ok(sandbox) => (sandbox, true),
        Err(ProviderError::SessionExists { sandbox, .. }) => (shared.go_on(&sandbox).await?, false),
        Err(error) => return Err(error.into()),
    };
    shared.known.forget(&sandbox.id);
    let mut told = view::runtime(&sandbox, &public, false).await;
    told.created = Some(created);
    Ok(Json(told))
}

/// What names a sandbox in a body.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    runtime_id: Option<String>,
}

async fn stop(State(shared): Handle, body: Bytes) -> Result<Json<serde_json::Value>, Fault> {
    let sandbox = shared.named(&body).await?;
    let deleted = shared.provider.delete(&sandbox.id).await;
    shared.known.forget(&sandbox.id);
    if deleted? { Ok(done(&sandbox)) } else { Err(Fault::missing("runtime")) }
}

async fn pause(State(shared): Handle, body: Bytes) -> Result<Json<serde_json::Value>, Fault> {
    let sandbox = shared.named(&body).await?;
    let paused = shared.provider.pause(&sandbox.id).await;
    shared.known.forget(&sandbox.id);
    paused?;
    Ok(done(&sandbox))
}

async fn resume(State(shared): Handle, headers: HeaderMap, body: Bytes) -> Answer {
    let public = shared.public_url(&headers)?;
    let sandbox = shared.named(&body).await?;
    let sandbox = shared.go_on(&sandbox.id).await?;
    Ok(Json(view::runtime(&sandbox, &public, false).await))
}

fn done(sandbox: &Sandbox) -> Json<serde_json::Value> {
    Json(serde_json::json!({"runtime_id": sandbox.id, "session_id": sandbox.session_id}))
}

async fn session(State(shared): Handle, headers: HeaderMap, Path(session): Path<String>) -> Answer {
    let public = shared.public_url(&headers)?;
    let sandbox = shared.of_session(&session).await?.ok_or_else(|| Fault::missing("session"))?;
    Ok(Json(view::runtime(&sandbox, &public, true).await))
}

/// The sandboxes of several sessions; of those that there are.
async fn batch(
    State(shared): Handle,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Json<Vec<Runtime>>, Fault> {
    let public = shared.public_url(&headers)?;
    let query = query.unwrap_or_default();
    // Ids of sessions have no characters that are written otherwise in a query.
    let ids: Vec<String> = query.split('&').filter_map(|pair| pair.strip_prefix("ids=").map(str::to_owned)).collect();
    if ids.len() > BATCH {
        return Err(Fault::wrong(format!("{BATCH} sessions are possible in one request at most")));
    }
    let told = stream::iter(ids).map(|id| {
        let (shared, public) = (&shared, &public);
        async move {
            match shared.of_session(&id).await? {
                Some(sandbox) => Ok::<_, Fault>(Some(view::runtime(&sandbox, public, true).await)),
                None => Ok(None),
            }
        }
    });
    let told: Vec<Option<Runtime>> = told.buffered(AT_ONCE).try_collect().await?;
    Ok(Json(told.into_iter().flatten().collect()))
}

async fn runtime(State(shared): Handle, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    let public = shared.public_url(&headers)?;
    let sandbox = shared.own(&id).await?;
    Ok(Json(view::runtime(&sandbox, &public, true).await))
}

/// All that have not ended, and with `?ended=true`, which is of ours, the others, too. Paused ones are among them, with their
/// status.
async fn list(
    State(shared): Handle,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Json<serde_json::Value>, Fault> {
    let public = shared.public_url(&headers)?;
    let label = shared.can.labels.then(|| (LABEL.0.to_owned(), LABEL.1.to_owned()));
    let ended = query.unwrap_or_default().split('&').any(|pair| pair == "ended=true");
    let filter = ListFilter { labels: label.into_iter().collect(), ended };
    let listed = shared.provider.list(&filter).await?;
    let told = stream::iter(listed).map(|sandbox| {
        let (shared, public) = (&shared, &public);
        async move {
            // Some engines tell keys of one sandbox only.
            let whole = match &sandbox.session_key {
                Some(_) => None,
                None => shared.provider.find(&sandbox.id).await?,
            };
            Ok::<_, ProviderError>(view::runtime(whole.as_ref().unwrap_or(&sandbox), public, false).await)
        }
    });
    let told: Vec<Runtime> = told.buffered(AT_ONCE).try_collect().await?;
    Ok(Json(serde_json::json!({"runtimes": told})))
}

async fn no_images() -> Fault {
    let detail = "this gateway builds no images; name one that is there: sandbox.runtime_container_image in OpenHands";
    Fault::new(StatusCode::NOT_IMPLEMENTED, detail)
}

async fn no_warm() -> Json<serde_json::Value> {
    Json(serde_json::json!({"configs": []}))
}

impl Shared {
    /// The sandbox of this id, if it is one of the gateway's.
    async fn own(&self, id: &str) -> Result<Sandbox, Fault> {
        let missing = || Fault::missing("runtime");
        let id = SandboxId::new(id).map_err(|_| missing())?;
        self.provider.find(&id).await?.filter(|sandbox| self.is_own(sandbox)).ok_or_else(missing)
    }

    async fn named(&self, body: &Bytes) -> Result<Sandbox, Fault> {
        let named: Named = json(body)?;
        let id = named.runtime_id.ok_or_else(|| Fault::wrong("`runtime_id` is missing"))?;
        self.own(&id).await
    }

    async fn of_session(&self, session: &str) -> Result<Option<Sandbox>, Fault> {
        let Ok(session) = SessionId::new(session) else { return Ok(None) };
        Ok(self.provider.find_session(&session).await?.filter(|sandbox| self.is_own(sandbox)))
    }

    /// A sandbox that goes on if it rests.
    async fn go_on(&self, id: &SandboxId) -> Result<Sandbox, Fault> {
        let sandbox = self.own(id.as_str()).await?;
        if sandbox.state != SandboxState::Paused {
            return Ok(sandbox);
        }
        let resumed = self.provider.resume(id).await;
        self.known.forget(id);
        resumed?;
        self.own(id.as_str()).await
    }
}

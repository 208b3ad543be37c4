//! The requests of the interface (remote-runtime-api 2).

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{DefaultBodyLimit, Path, RawQuery, Request, State},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gloveport_provider::{ListFilter, Sandbox, SandboxId};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    caller::ClientAddress,
    fault::Fault,
    identity::{self, Identity},
    images,
    labels::LABEL,
    policy,
    shared::Shared,
    start::StartRequest,
    starting::{self, Ask, said},
    view::{self, Runtime},
    way,
};

/// Most bytes of the body of a request of the interface.
pub(crate) const BODY: usize = 4 * 1024 * 1024;
/// Time for it to come.
const BODY_TIME: std::time::Duration = std::time::Duration::from_secs(30);
/// Most sessions in one request.
const BATCH: usize = 256;
/// Sandboxes that are asked about at a time.
const AT_ONCE: usize = 8;

type Answer = Result<Json<Runtime>, Fault>;
type Handle = State<Arc<Shared>>;
type Who = Extension<Identity>;

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
        .route("/api/warm-runtime-configs", get(warm))
        .layer(DefaultBodyLimit::max(BODY))
        .route_layer(middleware::from_fn_with_state(Arc::clone(shared), with_key));
    Router::new()
        .route("/healthz", get(healthy))
        .merge(interface)
        .merge(images::router(shared))
        .fallback(way::pass)
        .with_state(Arc::clone(shared))
}

/// Lets nobody pass without a key.
pub(crate) async fn with_key(State(shared): Handle, mut request: Request, next: Next) -> Response {
    let address = request.extensions().get::<ClientAddress>().map(|client| client.0);
    match shared.identify(request.headers(), address).await {
        Ok(who) => request.extensions_mut().insert(who),
        Err(fault) => return fault.into_response(),
    };
    match whole(request).await {
        Ok(request) => next.run(request).await,
        Err(fault) => fault.into_response(),
    }
}

pub(crate) async fn healthy() -> Json<serde_json::Value> {
    Json(serde_json::json!({"status": "ok"}))
}

/// The request with all of its body, which must come in time and be small.
pub(crate) async fn whole(request: Request) -> Result<Request, Fault> {
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

/// Reads a body that is a JSON object.
pub(crate) fn json<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, Fault> {
    // An array would be taken for the members in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Fault::wrong("the body of the request must be a JSON object"));
    }
    serde_json::from_slice(body)
        .map_err(|error| Fault::wrong(format!("the body of the request is not as it must be: {error}")))
}

async fn start(State(shared): Handle, Extension(who): Who, headers: HeaderMap, body: Bytes) -> Result<Response, Fault> {
    let public = shared.public_url(&headers)?;
    let request: StartRequest = json(&body)?;
    let session = request.session_id.clone();
    let ask = Ask { who, session: session.clone(), target: session, action: "start" };
    let make = async move |shared: Arc<Shared>, who: Identity, left: Option<SandboxId>| {
        let asked = request.asked();
        shared.start(&who, request.spec(&shared.can, &shared.options)?, &asked, left.as_ref()).await
    };
    let say = async move |sandbox: Sandbox, is_new| {
        let mut told = view::runtime(&sandbox, &public, false).await;
        told.created = Some(is_new);
        said(StatusCode::OK, &told)
    };
    starting::answer(&shared, ask, make, say).await
}

/// What names a sandbox in a body.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    runtime_id: Option<String>,
}

async fn stop(State(shared): Handle, Extension(who): Who, body: Bytes) -> Result<Json<serde_json::Value>, Fault> {
    let id = named(&body)?;
    let stopped = async {
        let sandbox = shared.own(&who, &id).await?;
        let deleted = shared.provider.delete(&sandbox.id).await;
        shared.known.forget(&sandbox.id);
        let deleted = deleted?;
        shared.hub.ended(&sandbox.id);
        shared.noted(async |store| store.ended(sandbox.id.as_str(), "it was stopped").await).await;
        if deleted { Ok(done(&sandbox)) } else { Err(Fault::missing("runtime")) }
    };
    let stopped = stopped.await;
    shared.audit(&who, "stop", &id, &stopped);
    stopped
}

async fn pause(State(shared): Handle, Extension(who): Who, body: Bytes) -> Result<Json<serde_json::Value>, Fault> {
    let id = named(&body)?;
    let paused = async {
        let sandbox = shared.own(&who, &id).await?;
        let paused = shared.provider.pause(&sandbox.id).await;
        shared.known.forget(&sandbox.id);
        shared.hub.nudge();
        paused?;
        shared.noted(async |store| store.paused(sandbox.id.as_str()).await).await;
        Ok(done(&sandbox))
    };
    let paused = paused.await;
    shared.audit(&who, "pause", &id, &paused);
    paused
}

async fn resume(State(shared): Handle, Extension(who): Who, headers: HeaderMap, body: Bytes) -> Answer {
    let public = shared.public_url(&headers)?;
    let id = named(&body)?;
    let resumed = async { shared.go_on(&who, &shared.own(&who, &id).await?.id).await }.await;
    shared.audit(&who, "resume", &id, &resumed);
    Ok(Json(view::runtime(&resumed?, &public, false).await))
}

fn done(sandbox: &Sandbox) -> Json<serde_json::Value> {
    Json(serde_json::json!({"runtime_id": sandbox.id, "session_id": sandbox.session_id}))
}

async fn session(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    Path(session): Path<String>,
) -> Answer {
    let public = shared.public_url(&headers)?;
    let sandbox = shared.of_session(&who, &session).await?.ok_or_else(|| Fault::missing("session"))?;
    Ok(Json(view::runtime(&sandbox, &public, true).await))
}

/// The sandboxes of several sessions; of those that there are.
async fn batch(
    State(shared): Handle,
    Extension(who): Who,
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
        let (shared, who, public) = (&shared, &who, &public);
        async move {
            match shared.of_session(who, &id).await? {
                Some(sandbox) => Ok::<_, Fault>(Some(view::runtime(&sandbox, public, true).await)),
                None => Ok(None),
            }
        }
    });
    let told: Vec<Option<Runtime>> = told.buffered(AT_ONCE).try_collect().await?;
    Ok(Json(told.into_iter().flatten().collect()))
}

async fn runtime(State(shared): Handle, Extension(who): Who, headers: HeaderMap, Path(id): Path<String>) -> Answer {
    let public = shared.public_url(&headers)?;
    let sandbox = shared.own(&who, &id).await?;
    Ok(Json(view::runtime(&sandbox, &public, true).await))
}

/// All that have not ended, and with `?ended=true`, which is of ours, the others, too. Paused ones are among them, with their
/// status.
async fn list(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Json<serde_json::Value>, Fault> {
    let public = shared.public_url(&headers)?;
    let label = shared.can.labels.then(|| (LABEL.0.to_owned(), LABEL.1.to_owned()));
    let ended = query.unwrap_or_default().split('&').any(|pair| pair == "ended=true");
    let tenant = identity::filter(who.name()).filter(|_| shared.can.labels);
    let filter = ListFilter { labels: label.into_iter().chain(tenant).collect(), ended };
    let listed = shared.provider.list(&filter).await?;
    let told = stream::iter(listed).map(|sandbox| {
        let (shared, who, public) = (&shared, &who, &public);
        async move {
            let Some(sandbox) = shared.of_tenant(who, sandbox).await? else { return Ok(None) };
            // Some engines tell keys of one sandbox only.
            let whole = match &sandbox.session_key {
                Some(_) => None,
                None => shared.provider.find(&sandbox.id).await?,
            };
            let whole = whole.map(|whole| Sandbox { session_id: sandbox.session_id.clone(), ..whole });
            Ok::<_, Fault>(Some(view::runtime(whole.as_ref().unwrap_or(&sandbox), public, false).await))
        }
    });
    let told: Vec<Option<Runtime>> = told.buffered(AT_ONCE).try_collect().await?;
    let told: Vec<Runtime> = told.into_iter().flatten().collect();
    Ok(Json(serde_json::json!({"runtimes": told})))
}

/// The pools of which the tenant may have sandboxes.
async fn warm(State(shared): Handle, Extension(who): Who) -> Json<serde_json::Value> {
    let may_use = |image: &str| {
        let is_of_others = shared.builds.as_ref().is_some_and(|builds| builds.is_of_others(who.name(), image));
        !is_of_others && who.tenant.as_ref().is_none_or(|tenant| policy::allows(tenant, image))
    };
    Json(serde_json::json!({"configs": shared.warm.told(may_use)}))
}

/// The sandbox that a body names.
fn named(body: &Bytes) -> Result<String, Fault> {
    let named: Named = json(body)?;
    named.runtime_id.ok_or_else(|| Fault::wrong("`runtime_id` is missing"))
}

impl Shared {
    /// The sandbox of this id, if it is one of the tenant's.
    pub(crate) async fn own(&self, who: &Identity, id: &str) -> Result<Sandbox, Fault> {
        let missing = || Fault::missing("runtime");
        let id = SandboxId::new(id).map_err(|_| missing())?;
        let found = self.provider.find(&id).await?.ok_or_else(missing)?;
        self.of_tenant(who, found).await?.ok_or_else(missing)
    }
}

//! The native API of the gateway: sandboxes with all that the runtime can do with them.
//!
//! | module | idea |
//! |---|---|
//! | `context` | what every request begins with |
//! | `shape` | one form of errors |
//! | `request` | bodies of requests |
//! | `query` | queries, read strictly |
//! | `view` | a sandbox as it is told |
//! | `list` | lists in pages |
//! | `cursor` | where a page begins |
//! | `snapshots` | what is kept of sandboxes |
//! | `logs` | what the server of a sandbox writes |
//! | `events` | what happens to sandboxes, as it happens |
//! | `capabilities` | what the runtime can do for clients |

mod capabilities;
mod context;
mod cursor;
mod events;
mod list;
mod logs;
mod query;
mod request;
mod shape;
mod snapshots;
mod view;

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, RawQuery, State},
    middleware,
    response::Response,
    routing::{any, delete, get, post},
};
use gloveport_provider::{Sandbox, SandboxId, SandboxState, SessionId};
use http::{HeaderMap, StatusCode};
use serde_json::json as value;

use crate::{
    api::{BODY, json, with_key},
    fault::Fault,
    fork,
    identity::Identity,
    shared::Shared,
    starting::{self, Ask, said},
};
use context::{Handle, Who, own};
use query::Query;
use request::{CreateRequest, ExtendRequest, ForkRequest, SnapshotRequest};
pub(crate) use shape::shape;
use view::View;

/// The requests of the native API.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/capabilities", get(capabilities::tell))
        .route("/v1/sandboxes", get(list::list).post(create))
        .route("/v1/sandboxes/events", get(events::of_all))
        .route("/v1/sandboxes/{id}", get(find).delete(end))
        .route("/v1/sandboxes/{id}/pause", post(pause))
        .route("/v1/sandboxes/{id}/resume", post(resume))
        .route("/v1/sandboxes/{id}/snapshot", post(snapshot))
        .route("/v1/sandboxes/{id}/fork", post(fork))
        .route("/v1/snapshots", get(snapshots::list))
        .route("/v1/snapshots/{image}", delete(snapshots::delete))
        .route("/v1/sandboxes/{id}/extend", post(extend))
        .route("/v1/sandboxes/{id}/logs", get(logs::logs))
        .route("/v1/sandboxes/{id}/events", get(events::of_one))
        .layer(DefaultBodyLimit::max(BODY))
        .route_layer(middleware::from_fn_with_state(Arc::clone(shared), with_key))
        // No sandbox can be called so.
        .route("/v1/{*rest}", any(nowhere))
        .layer(middleware::from_fn(shape))
        .with_state(Arc::clone(shared))
}

async fn nowhere() -> Fault {
    Fault::missing("path in the native API; GET /openapi.json has all")
}

async fn create(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, Fault> {
    let public = shared.public_url(&headers)?;
    let returns = Query::read(query.as_deref(), &["if_exists"])?.word("if_exists", &["error", "return"])?;
    let request: CreateRequest = json(&body)?;
    let session = request.session()?;
    let ask = Ask { who, session: session.to_string(), target: session.to_string(), action: "sandbox create" };
    let make = async move |shared: Arc<Shared>, who: Identity, left: Option<SandboxId>| {
        let (spec, asked) = request.spec(session.clone(), &shared, &who)?;
        let is_refused = |id: &SandboxId| returns.as_deref() != Some("return") && left.as_ref() != Some(id);
        let there = shared.of_session(&who, session.as_str()).await?;
        // Of one that is pending it is not known yet whether it stays.
        let is_there = |state: &SandboxState| state.is_live() && *state != SandboxState::Pending;
        if there.is_some_and(|there| is_there(&there.state) && is_refused(&there.id)) {
            return Err(fork::exists(&session));
        }
        let started = shared.start(&who, spec, &asked, left.as_ref()).await?;
        if !started.is_new && is_refused(&started.sandbox.id) {
            return Err(fork::exists(&session));
        }
        Ok(started)
    };
    starting::answer(&shared, ask, make, async move |sandbox: Sandbox, is_new| {
        said(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &View::of(&sandbox, &public))
    })
    .await
}

async fn find(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    Path(id): Path<String>,
) -> Result<Json<View>, Fault> {
    Query::read(query.as_deref(), &[])?;
    let public = shared.public_url(&headers)?;
    Ok(Json(View::of(&own(&shared, &who, &id).await?, &public)))
}

async fn end(State(shared): Handle, Extension(who): Who, Path(id): Path<String>) -> Result<StatusCode, Fault> {
    let deleted = async {
        let sandbox = own(&shared, &who, &id).await?;
        let deleted = shared.provider.delete(&sandbox.id).await;
        shared.known.forget(&sandbox.id);
        let was_there = deleted?;
        shared.hub.ended(&sandbox.id);
        shared.noted(async |store| store.ended(sandbox.id.as_str(), "it was deleted").await).await;
        if was_there { Ok(StatusCode::NO_CONTENT) } else { Err(Fault::missing("sandbox")) }
    };
    let deleted = deleted.await;
    shared.audit(&who, "sandbox delete", &id, &deleted);
    deleted
}

async fn pause(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Json<View>, Fault> {
    let public = shared.public_url(&headers)?;
    let paused = async {
        let sandbox = own(&shared, &who, &id).await?;
        let paused = shared.provider.pause(&sandbox.id).await;
        shared.known.forget(&sandbox.id);
        shared.hub.nudge();
        paused?;
        shared.noted(async |store| store.paused(sandbox.id.as_str()).await).await;
        own(&shared, &who, &id).await
    };
    let paused = paused.await;
    shared.audit(&who, "sandbox pause", &id, &paused);
    Ok(Json(View::of(&paused?, &public)))
}

async fn resume(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Json<View>, Fault> {
    let public = shared.public_url(&headers)?;
    let resumed = async { shared.go_on(&who, &own(&shared, &who, &id).await?.id).await }.await;
    shared.audit(&who, "sandbox resume", &id, &resumed);
    Ok(Json(View::of(&resumed?, &public)))
}

async fn snapshot(
    State(shared): Handle,
    Extension(who): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<serde_json::Value>), Fault> {
    let request: SnapshotRequest = json(&body)?;
    let kept = async {
        let sandbox = own(&shared, &who, &id).await?;
        shared.keep_as(&who, &sandbox, request.name()?).await
    };
    let kept = kept.await;
    shared.audit(&who, "sandbox snapshot", &id, &kept);
    Ok((StatusCode::CREATED, Json(value!({"image": kept?}))))
}

async fn fork(
    State(shared): Handle,
    Extension(who): Who,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Fault> {
    let public = shared.public_url(&headers)?;
    let request: ForkRequest = json(&body)?;
    let session = match request.session_id {
        Some(id) => SessionId::new(id).map_err(|error| Fault::wrong(error.to_string()))?,
        None => request::random()?,
    };
    let ask = Ask { who, session: session.to_string(), target: id.clone(), action: "sandbox fork" };
    let make = async move |shared: Arc<Shared>, who: Identity, _| {
        shared.fork(&who, &own(&shared, &who, &id).await?, &session).await
    };
    let say = async move |sandbox: Sandbox, _| said(StatusCode::CREATED, &View::of(&sandbox, &public));
    starting::answer(&shared, ask, make, say).await
}

/// No engine lets the end of a sandbox be changed. Whoever asks is told so, and not that it was done.
async fn extend(
    State(shared): Handle,
    Extension(who): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<View>, Fault> {
    let request: ExtendRequest = json(&body)?;
    let extended: Result<Json<View>, Fault> = async {
        request.check()?;
        own(&shared, &who, &id).await?;
        Err(shared.provider.cannot("changing when a sandbox ends").into())
    }
    .await;
    shared.audit(&who, "sandbox extend", &id, &extended);
    extended
}

//! The requests: what sessions there are, and how they begin, rest and end.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{StatusCode, Uri, header::LOCATION};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    acts,
    ask::{Handle, Wait, Who, json as body_of, key as key_of, query},
    events,
    fault::Fault,
    ledger::Ledger,
    record::{Key, Record, State as SessionState},
    request::StartRequest,
    sessions::Sessions,
};

/// Most bytes of a body.
const BODY: usize = 4 * 1024 * 1024;
/// Most sessions on a page, and how many there are unless it is said.
const PAGE: usize = 100;

pub(crate) fn router(sessions: &Arc<Sessions>) -> Router {
    Router::new()
        .route("/v1/sessions", post(start).get(list))
        .route("/v1/sessions/{session}", get(show).delete(delete))
        .route("/v1/sessions/{session}/pause", post(pause))
        .route("/v1/sessions/{session}/resume", post(resume))
        .route("/v1/sessions/{session}/actions", post(acts::act))
        .route("/v1/sessions/{session}/events", get(events::events))
        .route("/v1/sessions/{session}/questions", get(acts::questions))
        .route("/v1/sessions/{session}/confirm", post(acts::confirm))
        .route("/v1/sessions/{session}/environment", post(acts::environment))
        .route("/v1/sessions/{session}/secrets", post(acts::secrets))
        .route("/v1/sessions/{session}/microagents", get(acts::microagents))
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(Arc::clone(sessions))
}

async fn start(State(sessions): Handle, Extension(owner): Who, uri: Uri, body: Bytes) -> Result<Response, Fault> {
    let wait = Wait::of(&uri)?;
    let request: StartRequest = if body.is_empty() { StartRequest::default() } else { body_of(&body)? };
    let (id, wanted, hidden) = request.parse()?;
    let key = key_of(&owner, id.as_str())?;
    let used = sessions.start(&key, &owner, wanted, hidden).await?;
    if let Some(limit) = wait {
        // What did not work is told in what is shown.
        let _told = used.live.risen(limit).await;
    }
    let shown = tell(&sessions, &key).await?;
    Ok((StatusCode::CREATED, [(LOCATION, format!("/v1/sessions/{id}"))], Json(shown)).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<String>,
    limit: Option<usize>,
    state: Option<SessionState>,
}

/// The sessions of the tenant by their ids; those after one of these, where that is asked for.
async fn list(State(sessions): Handle, Extension(owner): Who, uri: Uri) -> Result<Json<Value>, Fault> {
    let page: Page = query(&uri)?;
    let limit = page.limit.unwrap_or(PAGE);
    if !(1..=PAGE).contains(&limit) {
        return Err(Fault::wrong(format!("`limit` must be 1 to {PAGE}")));
    }
    // It checks the tenant, too.
    key_of(&owner, "any")?;
    let mut all = sessions.files.of_tenant(&owner.tenant).await?;
    if let Some(after) = &page.after {
        all.retain(|key| key.id.as_str() > after.as_str());
    }
    let (mut told, mut next) = (Vec::new(), None);
    for key in all {
        if told.len() == limit {
            next = told.last().map(|session: &Value| session["id"].clone());
            break;
        }
        let Some(record) = sessions.files.record(&key).await? else { continue };
        if page.state.is_none_or(|state| state == record.state) {
            told.push(brief(&key, &record));
        }
    }
    Ok(Json(json!({"sessions": told, "next": next})))
}

async fn show(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
) -> Result<Json<Value>, Fault> {
    let key = key_of(&owner, &session)?;
    let record = sessions.record(&key).await?;
    if record.state == SessionState::Starting && sessions.served(&key).await.is_none() {
        // Whoever has begun it may have died; if not, it is told as it is.
        let _served_elsewhere = sessions.take_up_within(&key, &owner, Duration::ZERO).await;
    }
    Ok(Json(tell(&sessions, &key).await?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deletion {
    #[serde(default)]
    history: bool,
}

async fn delete(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
    uri: Uri,
) -> Result<Json<Value>, Fault> {
    let Deletion { history } = query(&uri)?;
    let key = key_of(&owner, &session)?;
    sessions.delete(&key, &owner, history).await?;
    if history {
        return Ok(Json(json!({"id": key.id, "state": SessionState::Ended})));
    }
    Ok(Json(tell(&sessions, &key).await?))
}

async fn pause(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
) -> Result<Json<Value>, Fault> {
    let key = key_of(&owner, &session)?;
    sessions.pause(&key, &owner).await?;
    Ok(Json(tell(&sessions, &key).await?))
}

/// Longest time for a sandbox to come back.
const RESUME: Duration = Duration::from_mins(2);

async fn resume(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
) -> Result<Json<Value>, Fault> {
    let key = key_of(&owner, &session)?;
    let used = sessions.take_up(&key, &owner).await?;
    used.live.rise();
    used.live.risen(RESUME).await?;
    Ok(Json(tell(&sessions, &key).await?))
}

/// A session in a list.
fn brief(key: &Key, record: &Record) -> Value {
    json!({
        "id": key.id,
        "state": record.state,
        "reason": record.reason,
        "sandbox": record.sandbox,
        "created_at": record.created,
        "changed_at": record.changed,
    })
}

/// A session with all that is known of it.
async fn tell(sessions: &Sessions, key: &Key) -> Result<Value, Fault> {
    let record = sessions.record(key).await?;
    let served = sessions.served(key).await;
    let mut told = brief(key, &record);
    let (status, mut ledger, latest) = if let Some(used) = &served {
        let (name, text) = used.live.status.latest();
        let text = used.live.masked(&text).await;
        let latest = used.live.stream.store().latest_id().await?;
        (Some((name, text)), used.live.tracker.ledger(), latest)
    } else {
        let reader = sessions.files.events(key);
        let (ledger, next) = Ledger::read(&reader, record.settled).await?;
        (None, ledger, reader.latest_id().await?.max(next - 1))
    };
    if record.state.is_over() {
        // Nobody can decide any more.
        ledger.asked.clear();
    }
    let wanted = &record.wanted;
    told["status"] = json!(status.as_ref().map(|(name, _)| name));
    told["status_text"] = json!(status.as_ref().map(|(_, text)| text));
    told["last_event_id"] = json!(latest);
    told["pending"] = json!(ledger.asked.keys().collect::<Vec<_>>());
    told["open"] = json!(ledger.open.keys().collect::<Vec<_>>());
    told["image"] = json!(wanted.image);
    told["plugins"] = json!(wanted.plugins);
    told["repository"] = json!(
        wanted
            .repository
            .as_ref()
            .map(|name| { json!({"name": name, "branch": wanted.branch, "directory": record.cloned}) })
    );
    told["security"] = json!({"confirmation_mode": wanted.confirmation_mode, "analyzer": wanted.analyzer});
    Ok(told)
}

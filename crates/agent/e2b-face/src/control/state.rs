//! What sandboxes do: run, rest, go on, end, and until when.

use std::time::{Duration, SystemTime};

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use gloveport_provider::Sandbox;
use http::StatusCode;
use serde::Deserialize;

use super::{
    create,
    owner::{Handle, Owner, Who, json},
    view,
};
use crate::{
    Refusal,
    lives::Life,
    mark::{self, Mark},
    shared::Shared,
};

/// Most seconds of one `refreshes`.
const REFRESH: u64 = 3600;

#[derive(Debug, Deserialize)]
struct TimeoutRequest {
    timeout: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RefreshRequest {
    duration: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PauseRequest {
    memory: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ConnectRequest {
    timeout: Option<u64>,
    memory: Option<bool>,
    auto_pause: Option<bool>,
}

/// How long a sandbox may run at most, if this is not longer.
pub(super) fn check_timeout(shared: &Shared, seconds: u64) -> Result<Duration, Refusal> {
    let longest = shared.options.longest;
    if Duration::from_secs(seconds) > longest {
        let message = format!("timeout cannot be greater than {} hours", longest.as_secs() / 3600);
        return Err(Refusal::wrong(message));
    }
    Ok(longest)
}

/// The time of a sandbox begins.
pub(super) fn begin(shared: &Shared, sandbox: &Sandbox, mark: &Mark, seconds: u64) {
    let life = Life { until: SystemTime::now() + Duration::from_secs(seconds), auto_pause: mark.auto_pause };
    shared.lives.set(&sandbox.id, life);
}

/// The time of a sandbox gets longer, and never shorter.
fn lengthen(shared: &Shared, sandbox: &Sandbox, mark: &Mark, seconds: u64) {
    let until = SystemTime::now() + Duration::from_secs(seconds);
    let known = shared.lives.get(&sandbox.id).map(|life| life.until);
    shared
        .lives
        .set(&sandbox.id, Life { until: known.map_or(until, |known| known.max(until)), auto_pause: mark.auto_pause });
}

/// A sandbox of who asks that was made here.
async fn made_here(owner: &Owner, id: &str) -> Result<(Sandbox, Mark), Refusal> {
    let sandbox = owner.find(id).await?;
    let mark = Mark::of(&sandbox).ok_or_else(|| Refusal::no_sandbox(id))?;
    Ok((sandbox, mark))
}

pub(super) async fn kill(
    State(shared): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    let (sandbox, _) = made_here(&owner, &id).await?;
    let deleted = owner.0.delete(&sandbox.id).await;
    shared.places.forget(&sandbox.id);
    if deleted? {
        shared.lives.forget(&sandbox.id);
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Refusal::no_sandbox(&id))
    }
}

pub(super) async fn set_timeout(
    State(shared): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let TimeoutRequest { timeout } = json(&body)?;
    check_timeout(&shared, timeout)?;
    let (sandbox, mark) = running(&owner, &id).await?;
    begin(&shared, &sandbox, &mark, timeout);
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn refresh(
    State(shared): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let RefreshRequest { duration } = json(&body)?;
    let duration = duration.unwrap_or(create::TIMEOUT);
    if duration > REFRESH {
        return Err(Refusal::wrong(format!("duration must be {REFRESH} seconds at most, and is {duration}")));
    }
    let (sandbox, mark) = running(&owner, &id).await?;
    lengthen(&shared, &sandbox, &mark, duration);
    Ok(StatusCode::NO_CONTENT)
}

/// A sandbox that is not paused: the time of others does not go by.
async fn running(owner: &Owner, id: &str) -> Result<(Sandbox, Mark), Refusal> {
    let (sandbox, mark) = made_here(owner, id).await?;
    if mark::is_paused(&sandbox) == Some(false) { Ok((sandbox, mark)) } else { Err(Refusal::no_sandbox(id)) }
}

pub(super) async fn pause(
    State(shared): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let PauseRequest { memory } = json(&body)?;
    if memory == Some(false) {
        return Err(Refusal::not_offered("a pause that keeps the files alone (memory: false) is"));
    }
    let (sandbox, _) = made_here(&owner, &id).await?;
    if mark::is_paused(&sandbox) == Some(true) {
        return Err(Refusal::new(StatusCode::CONFLICT, format!("sandbox \"{id}\" is already paused")));
    }
    let paused = owner.0.pause(&sandbox.id).await;
    shared.places.forget(&sandbox.id);
    paused?;
    shared.lives.forget(&sandbox.id);
    Ok(StatusCode::NO_CONTENT)
}

/// Wakes a sandbox that is paused, and lengthens the time of one that runs.
pub(super) async fn connect(
    State(shared): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let request: ConnectRequest = json(&body)?;
    woken(&shared, &owner, &id, &request).await
}

/// The same as older SDKs ask for it: one that runs is refused.
pub(super) async fn resume(
    State(shared): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let request: ConnectRequest = json(&body)?;
    let (sandbox, _) = made_here(&owner, &id).await?;
    if mark::is_paused(&sandbox) != Some(true) {
        return Err(Refusal::new(StatusCode::CONFLICT, format!("sandbox \"{id}\" is already running")));
    }
    woken(&shared, &owner, &id, &request).await
}

async fn woken(shared: &Shared, owner: &Owner, id: &str, request: &ConnectRequest) -> Result<Response, Refusal> {
    if request.memory == Some(false) {
        return Err(Refusal::not_offered("a start from the files alone (memory: false) is"));
    }
    let seconds = request.timeout.unwrap_or(create::TIMEOUT);
    check_timeout(shared, seconds)?;
    let (sandbox, mut mark) = made_here(owner, id).await?;
    mark.auto_pause = request.auto_pause.unwrap_or(mark.auto_pause);
    if mark::is_paused(&sandbox) != Some(true) {
        lengthen(shared, &sandbox, &mark, seconds);
        return Ok((StatusCode::OK, Json(view::sandbox(shared, &sandbox, &mark))).into_response());
    }
    let resumed = owner.0.resume(&sandbox.id).await;
    shared.places.forget(&sandbox.id);
    resumed?;
    begin(shared, &sandbox, &mark, seconds);
    let sandbox = create::alive(owner, owner.find(id).await?).await?;
    shared.places.forget(&sandbox.id);
    Ok((StatusCode::CREATED, Json(view::sandbox(shared, &sandbox, &mark))).into_response())
}

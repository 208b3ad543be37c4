//! What the servers of sandboxes write, and what they use.

use std::time::{Duration, SystemTime};

use axum::{
    Extension, Json,
    extract::{Path, RawQuery, State},
};
use futures_util::StreamExt as _;
use gloveport_provider::LogOptions;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    list,
    owner::{Handle, Owner, Who},
    view,
};
use crate::{Refusal, place::Place, shared::Shared};

/// Lines, if nothing is said.
const LINES: usize = 1000;
/// Most bytes of a log that are looked at.
const BYTES: usize = 4 * 1024 * 1024;
/// Time for a log to come.
const TIME: Duration = Duration::from_secs(20);

fn limit(query: Option<&str>) -> Result<usize, Refusal> {
    let query = query.unwrap_or_default();
    let asked = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "limit");
    let Some((_, text)) = asked else { return Ok(LINES) };
    let limit = text.parse().ok().filter(|limit| *limit <= LINES);
    limit.ok_or_else(|| Refusal::wrong(format!("limit must be a number up to {LINES}")))
}

/// The last lines of the log of a sandbox. Engines do not tell when a line was written.
async fn lines(owner: &Owner, id: &str, limit: usize) -> Result<Vec<String>, Refusal> {
    let sandbox = owner.find(id).await?;
    let mut log = owner.0.logs(&sandbox.id, LogOptions { follow: false, tail: Some(limit) }).await?;
    let mut whole = Vec::new();
    let read = async {
        while let Some(piece) = log.next().await {
            whole.extend_from_slice(&piece?);
            if whole.len() > BYTES {
                break;
            }
        }
        Ok::<_, Refusal>(())
    };
    // What there is is told, though the rest may be missing.
    timeout(TIME, read).await.unwrap_or(Ok(()))?;
    let text = String::from_utf8_lossy(&whole);
    let all: Vec<&str> = text.lines().collect();
    Ok(all.iter().skip(all.len().saturating_sub(limit)).map(|line| (*line).to_owned()).collect())
}

pub(super) async fn logs(
    State(_): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Refusal> {
    let now = view::time(SystemTime::now());
    let lines = lines(&owner, &id, limit(query.as_deref())?).await?;
    let entries: Vec<Value> = lines.iter().map(|line| entry(&now, line)).collect();
    let logs: Vec<Value> = lines.iter().map(|line| json!({"timestamp": now, "line": line})).collect();
    Ok(Json(json!({"logs": logs, "logEntries": entries})))
}

pub(super) async fn entries(
    State(_): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Refusal> {
    let now = view::time(SystemTime::now());
    let lines = lines(&owner, &id, limit(query.as_deref())?).await?;
    Ok(Json(json!({"logs": lines.iter().map(|line| entry(&now, line)).collect::<Vec<_>>()})))
}

fn entry(now: &str, line: &str) -> Value {
    json!({"timestamp": now, "message": line, "level": "info", "fields": {}})
}

/// What the server of a sandbox uses now; earlier samples are not kept.
pub(super) async fn metrics(
    State(shared): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
) -> Result<Json<Vec<Value>>, Refusal> {
    let sandbox = owner.find(&id).await?;
    let place = shared.places.get(&*shared.host, &sandbox.id).await?;
    Ok(Json(vec![sample(&shared, &place).await?]))
}

/// The same of all that run, as far as they answer.
pub(super) async fn metrics_of_all(State(shared): Handle, Extension(owner): Who) -> Result<Json<Value>, Refusal> {
    let mut all = Map::new();
    for told in list::running(&shared, &owner).await? {
        let Some(id) = told["sandboxID"].as_str() else { continue };
        let sandbox = owner.find(id).await?;
        if let Ok(place) = shared.places.get(&*shared.host, &sandbox.id).await
            && let Ok(sample) = sample(&shared, &place).await
        {
            all.insert(id.to_owned(), sample);
        }
    }
    Ok(Json(json!({"sandboxes": all})))
}

async fn sample(shared: &Shared, place: &Place) -> Result<Value, Refusal> {
    let info = place.client.server_info().await?.resources;
    let now = SystemTime::now();
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let options = &shared.options;
    Ok(json!({
        "timestamp": view::time(now), "timestampUnix": seconds,
        "cpuCount": options.cpus, "cpuUsedPct": info.cpu_percent,
        "memUsed": info.memory.rss, "memTotal": options.memory_mib * 1024 * 1024, "memCache": 0,
        "diskUsed": info.disk.used, "diskTotal": info.disk.total,
    }))
}

//! A sandbox as the control plane tells it.

use std::time::SystemTime;

use axum::{
    Extension, Json,
    extract::{Path, State},
};
use gloveport_provider::Sandbox;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use super::owner::{Handle, Who};
use crate::{
    Refusal,
    mark::{self, Mark},
    shared::Shared,
    token::{self, Purpose},
};

/// The version of the agent whose interface this has.
pub(crate) const AGENT_VERSION: &str = "0.6.4";
/// Who runs it, where E2B has a name of its own for that.
pub(super) const CLIENT: &str = "gloveport";

/// What whoever has made or woken a sandbox is told (`Sandbox`).
pub(super) fn sandbox(shared: &Shared, sandbox: &Sandbox, mark: &Mark) -> Value {
    json!({
        "templateID": mark.template,
        "alias": mark.template,
        "sandboxID": sandbox.id,
        "clientID": CLIENT,
        "envdVersion": AGENT_VERSION,
        "envdAccessToken": token::of(sandbox, Purpose::Agent),
        "trafficAccessToken": token::of(sandbox, Purpose::Traffic),
        "domain": shared.options.domain,
    })
}

/// What lists have of a sandbox (`ListedSandbox`).
pub(super) fn listed(shared: &Shared, sandbox: &Sandbox, mark: &Mark) -> Value {
    let options = &shared.options;
    let is_paused = mark::is_paused(sandbox) == Some(true);
    // Of a paused one the time does not go by.
    let life = shared.lives.get(&sandbox.id).filter(|_| !is_paused);
    let end = life.map_or_else(|| mark::first_end(sandbox, mark), |life| life.until);
    json!({
        "templateID": mark.template,
        "alias": mark.template,
        "sandboxID": sandbox.id,
        "clientID": CLIENT,
        "startedAt": time(mark::created(sandbox)),
        "endAt": time(end),
        "cpuCount": options.cpus,
        "memoryMB": options.memory_mib,
        "diskSizeMB": 0,
        "metadata": mark.metadata,
        "state": if is_paused { "paused" } else { "running" },
        "envdVersion": AGENT_VERSION,
    })
}

/// What is told of one sandbox (`SandboxDetail`).
pub(super) async fn detail(
    State(shared): Handle,
    Extension(owner): Who,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let sandbox = owner.find(&id).await?;
    let mark = Mark::of(&sandbox).ok_or_else(|| Refusal::no_sandbox(&id))?;
    let mut told = listed(&shared, &sandbox, &mark);
    told["envdAccessToken"] = json!(token::of(&sandbox, Purpose::Agent));
    told["domain"] = json!(shared.options.domain);
    told["allowInternetAccess"] = json!(mark.internet);
    told["lifecycle"] = json!({"autoResume": false, "onTimeout": if mark.auto_pause { "pause" } else { "kill" }});
    Ok(Json(told))
}

/// A time as RFC 3339 has it, in milliseconds.
pub(super) fn time(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    time.round(Unit::Millisecond).unwrap_or(time).to_string()
}

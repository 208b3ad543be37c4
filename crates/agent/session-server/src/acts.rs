//! What is done in a session: actions, decisions, variables, microagents.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use gloveport_event_stream::Search;
use gloveport_protocol::{ActionEvent, Event, EventSource, Observation, Secret, SecurityRisk};
use gloveport_runtime::Submitted;
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    ask::{self, Handle, Wait, Who},
    fault::Fault,
    ledger::{Asked, Ledger},
    live::{InUse, Live, joined},
    record::State as SessionState,
    request::check_variables,
    sessions::Sessions,
};

/// Most actions without an answer.
const OPEN: usize = 64;
/// Time for the sandbox to answer where nothing can be done without it.
const RISE: Duration = Duration::from_mins(2);
/// Time for variables to be set, and for microagents to be read.
const SET: Duration = Duration::from_mins(1);

/// The session, with its sandbox on the way.
async fn at_work(sessions: &Sessions, key: &crate::record::Key, owner: &crate::Owner) -> Result<InUse, Fault> {
    let used = sessions.take_up(key, owner).await?;
    if used.live.record.lock().await.state == SessionState::Paused {
        return Err(Fault::conflict("the session is paused; resume it first"));
    }
    used.live.rise();
    Ok(used)
}

/// Submits an action. It is answered with its number; with `?wait`, what came of it is added if it comes in time.
pub(crate) async fn act(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Fault> {
    let wait = Wait::of(&uri)?;
    let key = ask::key(&owner, &session)?;
    let (action, source) = action(&body)?;
    let used = at_work(&sessions, &key, &owner).await?;
    let live = &used.live;
    if live.tracker.open() >= OPEN {
        return Err(Fault::too_many(format!("{OPEN} actions of the session have no answer yet")));
    }
    let submitted = live.runtime.submit(action, source).await?;
    if let Some(fault) = live.over() {
        // Nobody executes it any more.
        live.answer_open(&fault.detail).await;
    }
    let (id, outcome, assessment) = match submitted {
        Submitted::Accepted { id } => (id, "accepted", None),
        Submitted::Awaiting { id, assessment } => (id, "awaiting", Some(assessment)),
        Submitted::Refused { id, assessment } => (id, "refused", Some(assessment)),
    };
    let mut told = json!({"id": id, "outcome": outcome});
    if let Some(assessment) = assessment {
        told["risk"] = json!(word(assessment.risk));
        told["reasons"] =
            assessment.rules.iter().map(|found| format!("{}: {}", found.rule, found.explanation)).collect();
    }
    // What waits for the user has no observation before.
    let wait = wait.filter(|_| outcome != "awaiting");
    answered(live, id, wait, told).await
}

/// The action that a body has, and whose it is.
fn action(body: &Bytes) -> Result<(ActionEvent, EventSource), Fault> {
    let value: Value = ask::json(body)?;
    let mut action =
        ActionEvent::from_value(value).map_err(|error| Fault::wrong(format!("it is no action: {error}")))?;
    // The history gives these.
    (action.id, action.timestamp, action.cause) = (None, None, None);
    match action.source.take().unwrap_or(EventSource::Agent) {
        EventSource::Environment => Err(Fault::wrong("the source of an action is `agent` or `user`")),
        source => Ok((action, source)),
    }
}

/// The answer, with the observation of this action if it comes in time.
async fn answered(live: &Live, id: i64, wait: Option<Duration>, mut told: Value) -> Result<Response, Fault> {
    let observed = match wait {
        Some(limit) => observation(live, id, limit).await?,
        None => None,
    };
    let status = if observed.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    told["observation"] = observed.unwrap_or(Value::Null);
    Ok((status, Json(told)).into_response())
}

/// What came of an action, if it comes in time.
async fn observation(live: &Live, id: i64, limit: Duration) -> Result<Option<Value>, Fault> {
    let deadline = Instant::now() + limit;
    let mut latest = live.tracker.latest();
    let mut from = id + 1;
    loop {
        latest.mark_unchanged();
        let is_gone = live.gone.is_cancelled();
        let mut found = live.stream.store().search(Search { start: from, ..Search::default() });
        while let Some(event) = found.next().await? {
            from = event.id().map_or(from, |id| id + 1);
            let is_state =
                matches!(&event, Event::Observation(it) if matches!(it.observation, Observation::AgentStateChanged(_)));
            if event.cause() == Some(id) && matches!(event, Event::Observation(_)) && !is_state {
                return Ok(Some(event.to_value()));
            }
        }
        if is_gone {
            return Ok(None);
        }
        // When it is let go, all that comes has come.
        let grown = timeout_at(deadline, live.gone.run_until_cancelled(latest.changed()));
        match grown.await {
            Ok(Some(Ok(())) | None) => {}
            Ok(Some(Err(_))) | Err(_) => return Ok(None),
        }
    }
}

/// The actions that wait for a decision, the oldest first.
pub(crate) async fn questions(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
) -> Result<Json<Value>, Fault> {
    let key = ask::key(&owner, &session)?;
    let record = sessions.record(&key).await?;
    let ledger = match sessions.served(&key).await {
        Some(used) => used.live.tracker.ledger(),
        None => Ledger::read(&sessions.files.events(&key), record.settled).await?.0,
    };
    // Nobody can decide on those of a session that is over.
    let asked = ledger.asked.into_iter().filter(|_| !record.state.is_over());
    let told: Vec<Value> = asked.map(|(id, asked)| question(id, &asked)).collect();
    Ok(Json(json!({"questions": told})))
}

fn question(id: i64, asked: &Asked) -> Value {
    let risk = asked.action.action.security_risk().unwrap_or(SecurityRisk::Unknown);
    json!({"event_id": id, "risk": word(risk), "reason": asked.reason, "action": asked.action.to_value()})
}

const fn word(risk: SecurityRisk) -> &'static str {
    match risk {
        SecurityRisk::Unknown => "unknown",
        SecurityRisk::Low => "low",
        SecurityRisk::Medium => "medium",
        SecurityRisk::High => "high",
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirmation {
    event_id: i64,
    decision: Decision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Accept,
    Reject,
}

/// Decides about an action that waits. It is in the history once more then, under the number that is answered.
pub(crate) async fn confirm(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Fault> {
    let wait = Wait::of(&uri)?;
    let Confirmation { event_id, decision } = ask::json(&body)?;
    let key = ask::key(&owner, &session)?;
    let used = at_work(&sessions, &key, &owner).await?;
    let live = &used.live;
    let next = live.stream.store().next_id().await?;
    let asked = live.runtime.pending().into_iter().find(|waiting| waiting.id == event_id);
    match decision {
        Decision::Accept => live.runtime.confirm(event_id).await?,
        Decision::Reject => live.runtime.reject(event_id).await?,
    }
    if let Some(fault) = live.over() {
        live.answer_open(&fault.detail).await;
    }
    let Some(asked) = asked else { return Err(Fault::conflict(format!("no action {event_id} waits for a decision"))) };
    let mut found = live.stream.store().search(Search { start: next, ..Search::default() });
    let mut again = None;
    while let (None, Some(event)) = (again, found.next().await?) {
        let Event::Action(action) = &event else { continue };
        let decided = gloveport_security::decided(asked.action.clone(), action.confirmation());
        again = action.id.filter(|_| decided.action == action.action);
    }
    let told = json!({"event_id": event_id, "id": again});
    match again {
        Some(id) => answered(live, id, wait, told).await,
        None => Ok((StatusCode::ACCEPTED, Json(told)).into_response()),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variables {
    variables: BTreeMap<String, Secret>,
}

/// Sets variables of the tools.
pub(crate) async fn environment(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Fault> {
    let Variables { variables } = ask::json(&body)?;
    let set = variables.clone();
    let change = |hidden: &mut crate::record::Hidden| hidden.environment = joined(&hidden.environment, set);
    add(&sessions, &owner, &session, variables, change).await
}

/// Sets variables of the tools that are masked in the history.
pub(crate) async fn secrets(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Fault> {
    let Variables { variables } = ask::json(&body)?;
    let set = variables.clone();
    let change = |hidden: &mut crate::record::Hidden| hidden.secrets = joined(&hidden.secrets, set);
    add(&sessions, &owner, &session, variables, change).await
}

async fn add(
    sessions: &Sessions,
    owner: &crate::Owner,
    session: &str,
    variables: BTreeMap<String, Secret>,
    change: impl FnOnce(&mut crate::record::Hidden),
) -> Result<Json<Value>, Fault> {
    check_variables(&variables)?;
    let key = ask::key(owner, session)?;
    let used = at_work(sessions, &key, owner).await?;
    used.live.risen(RISE).await?;
    if !used.live.tracker.rests() {
        return Err(Fault::conflict("an action is being executed; set variables when it is answered"));
    }
    let set = timeout(SET, Sessions::add_variables(&used.live, change, &variables)).await;
    set.map_err(|_| Fault::later("the tools did not take the variables in time"))??;
    Ok(Json(json!({"set": variables.keys().collect::<Vec<_>>()})))
}

/// The microagents of the repository, or of the workspace.
pub(crate) async fn microagents(
    State(sessions): Handle,
    Extension(owner): Who,
    Path(session): Path<String>,
) -> Result<Json<Value>, Fault> {
    let key = ask::key(&owner, &session)?;
    let used = at_work(&sessions, &key, &owner).await?;
    used.live.risen(RISE).await?;
    let repository = used.live.record.lock().await.wanted.repository.clone();
    let found = timeout(SET, used.live.runtime.microagents(repository.as_deref())).await;
    let found = match found.map_err(|_| Fault::later("the microagents were not read in time"))? {
        Ok(found) => found,
        Err(error) => return Err(used.live.fault(error).await),
    };
    let told: Vec<Value> = found
        .iter()
        .map(|it| {
            json!({"name": it.name, "kind": it.kind.as_str(), "triggers": it.metadata.triggers, "content": it.content})
        })
        .collect();
    Ok(Json(json!({"microagents": told})))
}

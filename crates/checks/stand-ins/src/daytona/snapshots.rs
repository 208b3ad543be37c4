//! What sandboxes are made from.

use std::{path::PathBuf, time::SystemTime};

use axum::{http::Method, response::Response};
use serde_json::{Value, json};

use super::{
    sandboxes::{time, view as view_of},
    state::{Call, Daytona, Snapshot},
};
use crate::{
    World,
    answers::{refusal, told},
    lock,
};

/// The snapshot that every organization has.
const GENERAL: &str = "daytonaio/sandbox";

fn view(id: &str, snapshot: &Snapshot) -> Value {
    let now = time(SystemTime::now());
    json!({
        "id": id, "organizationId": "org", "general": false, "name": snapshot.name, "state": snapshot.state,
        "size": 1, "entrypoint": [], "cpu": 1, "gpu": 0, "mem": 1, "disk": 3, "errorReason": null,
        "createdAt": now, "updatedAt": now, "lastUsedAt": now,
    })
}

/// The files of a snapshot; none for the general one.
pub(super) fn layer(world: &World<Daytona>, named: &str) -> Result<Option<PathBuf>, Box<Response>> {
    if named == GENERAL {
        return Ok(None);
    }
    match of(world, named) {
        Some((_, snapshot)) => Ok(Some(snapshot.layer.clone())),
        None => Err(Box::new(refusal(
            400,
            &format!("Snapshot {named} not found. Did you add it through the Daytona Dashboard?"),
        ))),
    }
}

fn of<'a>(world: &'a World<Daytona>, named: &str) -> Option<(&'a String, &'a Snapshot)> {
    world.face.snapshots.iter().find(|(id, snapshot)| *id == named || snapshot.name == named)
}

/// Keeps the files of a sandbox.
pub(super) fn keep(call: &Call, id: &str) -> Response {
    let Some(name) = call.json["name"].as_str() else { return refusal(400, "name is missing") };
    let mut world = lock(&call.world);
    if of(&world, name).is_some() {
        return refusal(409, &format!("Snapshot with name {name} already exists"));
    }
    let Some(machine) = world.sandboxes.get(id).and_then(|sandbox| sandbox.machine.clone()) else {
        return refusal(404, "Sandbox not found");
    };
    let snapshot = World::<Daytona>::next("snapshot-");
    let layer = world.root.join(&snapshot);
    machine.keep(&layer);
    world.face.snapshots.insert(snapshot, Snapshot { name: name.to_owned(), state: "active", layer });
    let told_of = world.sandboxes.get(id).map(|sandbox| view_of(&world, id, sandbox, false)).unwrap_or_default();
    told(200, &told_of)
}

pub(super) fn answer(call: &Call, method: &Method, rest: &[&str]) -> Response {
    let mut world = lock(&call.world);
    match (method, rest) {
        (&Method::GET, []) => {
            let all: Vec<Value> = world.face.snapshots.iter().map(|(id, snapshot)| view(id, snapshot)).collect();
            let number = |name: &str, default: usize| call.of(name).and_then(|it| it.parse().ok()).unwrap_or(default);
            let (page, limit) = (number("page", 1).max(1), number("limit", 100).min(world.page).max(1));
            let items: Vec<&Value> = all.iter().skip((page - 1) * limit).take(limit).collect();
            let pages = all.len().div_ceil(limit);
            told(200, &json!({"items": items, "total": all.len(), "page": page, "totalPages": pages}))
        }
        // Names may have slashes, which are encoded, and are decoded here word by word.
        (&Method::GET, name) => match of(&world, &decoded(&name.join("/"))) {
            Some((id, snapshot)) => told(200, &view(id, snapshot)),
            None => refusal(404, "Snapshot not found"),
        },
        (&Method::DELETE, name) => {
            let found = of(&world, &decoded(&name.join("/"))).map(|(id, _)| id.clone());
            match found.and_then(|id| world.face.snapshots.remove(&id)) {
                Some(_) => told(200, &Value::Null),
                None => refusal(404, "Snapshot not found"),
            }
        }
        _ => refusal(405, "no such method"),
    }
}

fn decoded(text: &str) -> String {
    let parsed = form_urlencoded::parse(text.as_bytes()).next();
    parsed.map(|(name, _)| name.into_owned()).unwrap_or_default()
}

//! Sandboxes: made, told, changed.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{http::Method, response::Response};
use serde_json::{Value, json};

use super::{
    life, snapshots,
    state::{Call, Daytona, Held, More},
};
use crate::{
    Machine, Sandbox, World,
    answers::{refusal, told},
    lock, milliseconds,
};

/// Processors and memory of a sandbox that asks for none.
const SIZE: (u64, u64, u64) = (1, 1, 3);

/// A time as the service writes it: it only needs to be one, and to be later than others that are.
pub(super) fn time(time: SystemTime) -> String {
    let (days, rest) = (milliseconds(time) / 86_400_000, milliseconds(time) % 86_400_000);
    // By the count of days of the civil calendar.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (date, month) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second, milli) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// What lists tell, and single answers as well.
pub(super) fn view(world: &World<Daytona>, id: &str, sandbox: &Held, is_listed: bool) -> Value {
    let (more, wish) = (&sandbox.more, &sandbox.more.wish);
    let number = |name: &str, default: u64| wish[name].as_u64().unwrap_or(default);
    let updated = sandbox.created + Duration::from_millis(more.changes);
    let mut view = json!({
        "id": id, "organizationId": "org", "name": more.name, "labels": sandbox.labels, "state": sandbox.state,
        "user": wish["user"].as_str().unwrap_or("root"), "public": wish["public"] == true, "target": "us",
        "cpu": number("cpu", SIZE.0), "gpu": 0, "memory": number("memory", SIZE.1), "disk": number("disk", SIZE.2),
        "networkBlockAll": wish["networkBlockAll"] == true, "kvm": false, "sandboxClass": more.class,
        "snapshot": wish["snapshot"], "autoStopInterval": more.auto_stop, "autoDeleteInterval": more.auto_delete,
        "createdAt": time(sandbox.created), "updatedAt": time(updated), "lastActivityAt": time(more.used),
        "toolboxProxyUrl": format!("{}/toolbox", world.url), "daemonVersion": "0.226.1",
    });
    if let Some(at) = more.destroyed {
        view["autoDestroyAt"] = json!(time(at));
    }
    if let Some(reason) = more.reason {
        view["errorReason"] = json!(reason);
    }
    if !is_listed {
        view["env"] = if wish["env"].is_object() { wish["env"].clone() } else { json!({}) };
        view["networkAllowList"] = wish["networkAllowList"].clone();
    }
    view
}

/// The id of a sandbox that is named by its id or its name.
fn id_of(world: &World<Daytona>, name: &str) -> Option<String> {
    if world.sandboxes.contains_key(name) {
        return Some(name.to_owned());
    }
    world.sandboxes.iter().find(|(_, sandbox)| sandbox.more.name == name).map(|(id, _)| id.clone())
}

pub(super) async fn answer(call: &Call, method: &Method, rest: &[&str]) -> Response {
    match (method, rest) {
        (&Method::POST, []) => make(call),
        (&Method::GET, []) => list(call),
        (method, [name, rest @ ..]) => {
            let found = id_of(&lock(&call.world), name);
            let Some(id) = found else {
                return refusal(404, &format!("Sandbox with ID or name {name} not found"));
            };
            one(call, method, &id, rest).await
        }
        _ => refusal(405, "no such method"),
    }
}

fn make(call: &Call) -> Response {
    let wish = &call.json;
    let (world, slow, id) = (&call.world, lock(&call.world).slow, World::<Daytona>::next("0000-"));
    let name = wish["name"].as_str().unwrap_or(&id).to_owned();
    let (machine, reason) = {
        let world = lock(world);
        if id_of(&world, &name).is_some() {
            return refusal(409, &format!("Sandbox with name {name} already exists"));
        }
        let sizes = ["cpu", "memory", "disk"];
        if wish["buildInfo"].is_null() && sizes.iter().any(|size| !wish[*size].is_null()) {
            return refusal(400, "Cannot specify Sandbox resources when using a snapshot");
        }
        if !wish["buildInfo"].is_null() && !wish["snapshot"].is_null() {
            return refusal(400, "snapshot and buildInfo exclude each other");
        }
        let layer = match wish["snapshot"].as_str() {
            None => None,
            Some(named) => match snapshots::layer(&world, named) {
                Ok(layer) => layer,
                Err(refused) => return *refused,
            },
        };
        let dockerfile = wish["buildInfo"]["dockerfileContent"].as_str().unwrap_or_default();
        let fails = dockerfile.contains("image-that-does-not-build");
        (
            Machine::new(world.kind, world.root.join(&id), layer.as_deref()),
            fails.then_some("failed to pull the image: not found"),
        )
    };
    let view = {
        let mut world = lock(world);
        // Somebody else may have been faster.
        if id_of(&world, &name).is_some() {
            return refusal(409, &format!("Sandbox with name {name} already exists"));
        }
        let now = world.now();
        let ttl = wish["ttlMinutes"].as_u64().map(|minutes| now + Duration::from_secs(minutes * 60));
        let more = More {
            name,
            wish: wish.clone(),
            class: if world.face.has_machines { "linux-vm" } else { "container" },
            turns: 0,
            changes: 0,
            used: now,
            auto_stop: wish["autoStopInterval"].as_u64().unwrap_or(15),
            auto_delete: wish["autoDeleteInterval"].as_i64().unwrap_or(-1),
            destroyed: ttl,
            reason,
            sessions: BTreeMap::new(),
        };
        let labels = serde_json::from_value(wish["labels"].clone()).unwrap_or_default();
        let state = match reason {
            Some(_) => "build_failed",
            None if slow.is_zero() => "started",
            None => "creating",
        };
        let sandbox = Sandbox { machine: Some(Arc::new(machine)), labels, state: state.to_owned(), created: now, more };
        world.sandboxes.insert(id.clone(), sandbox);
        if world.face.is_late {
            world.face.late.insert(id.clone());
        }
        world.changed();
        view(&world, &id, &world.sandboxes[&id], false)
    };
    if !slow.is_zero() && reason.is_none() {
        tokio::spawn(life::boot(Arc::clone(&call.world), id));
    }
    told(200, &view)
}

fn list(call: &Call) -> Response {
    let wanted = call.of("labels").map_or(Ok(BTreeMap::new()), serde_json::from_str::<BTreeMap<String, String>>);
    let Ok(wanted) = wanted else { return refusal(400, "labels are no JSON") };
    let world = lock(&call.world);
    let fits = |id: &str, sandbox: &Held| {
        !world.face.late.contains(id)
            && sandbox.state != "destroying"
            && wanted.iter().all(|(name, value)| sandbox.labels.get(name) == Some(value))
    };
    let all = world.sandboxes.iter().filter(|(id, sandbox)| fits(id, sandbox));
    let all: Vec<Value> = all.map(|(id, sandbox)| view(&world, id, sandbox, !call.is_whole)).collect();
    if call.is_whole {
        return told(200, &all.into());
    }
    let begin: usize = call.of("cursor").and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
    let limit = call.of("limit").and_then(|limit| limit.parse().ok()).unwrap_or(100).min(world.page);
    let page: Vec<Value> = all.iter().skip(begin).take(limit).cloned().collect();
    let next = begin + page.len();
    let cursor = (next < all.len()).then(|| next.to_string());
    told(200, &json!({"items": page, "nextCursor": cursor}))
}

async fn one(call: &Call, method: &Method, id: &str, rest: &[&str]) -> Response {
    let (world, name) = (Arc::clone(&call.world), id.to_owned());
    match (method, rest) {
        (&Method::DELETE, []) => {
            let answer = change(call, id, |sandbox| {
                sandbox.destroy();
                Ok(())
            });
            tokio::spawn(life::bury(world, name));
            return answer;
        }
        (&Method::POST, ["start"]) => {
            let answer = change(call, id, |sandbox| match &*sandbox.state {
                "stopped" => {
                    sandbox.enter("starting");
                    Ok(())
                }
                "paused" => {
                    sandbox.enter("resuming");
                    Ok(())
                }
                "started" => Ok(()),
                _ => Err("Sandbox is not in a state to be started"),
            });
            let begins = lock(&call.world).sandboxes.get(id).is_some_and(|it| it.state != "started");
            if begins && answer.status().is_success() {
                life::boot(world, name).await;
            }
            return answer;
        }
        (&Method::POST, [how @ ("stop" | "pause")]) => {
            let with_memory = *how == "pause";
            let answer = change(call, id, |sandbox| match &*sandbox.state {
                "started" if with_memory && sandbox.more.class == "container" => Err("containers cannot be paused"),
                "started" => {
                    sandbox.enter(if with_memory { "pausing" } else { "stopping" });
                    Ok(())
                }
                _ => Err("Sandbox is not started"),
            });
            if answer.status().is_success() {
                tokio::spawn(life::rest(world, name, with_memory));
            }
            return answer;
        }
        _ => {}
    }
    change_or_tell(call, method, id, rest)
}

/// Changes a sandbox, and tells it.
fn change(call: &Call, id: &str, work: impl FnOnce(&mut Held) -> Result<(), &'static str>) -> Response {
    let mut world = lock(&call.world);
    let Some(sandbox) = world.sandboxes.get_mut(id) else { return refusal(404, "Sandbox not found") };
    if let Err(reason) = work(sandbox) {
        return refusal(400, reason);
    }
    world.changed();
    told(200, &view(&world, id, &world.sandboxes[id], false))
}

fn change_or_tell(call: &Call, method: &Method, id: &str, rest: &[&str]) -> Response {
    let now = lock(&call.world).now();
    let whole = |minutes: &str| minutes.parse::<i64>().map_err(|_| "no number");
    match (method, rest) {
        (&Method::GET, []) => change(call, id, |_| Ok(())),
        (&Method::PUT, ["labels"]) => {
            change(call, id, |sandbox| {
                sandbox.labels = serde_json::from_value(call.json["labels"].clone()).map_err(|_| "labels")?;
                Ok(())
            });
            told(200, &json!({"labels": call.json["labels"]}))
        }
        (&Method::POST, ["last-activity"]) => {
            change(call, id, |sandbox| {
                sandbox.more.used = now;
                Ok(())
            });
            told(201, &Value::Null)
        }
        (&Method::POST, ["autostop", minutes]) => change(call, id, |sandbox| {
            sandbox.more.auto_stop = u64::try_from(whole(minutes)?).map_err(|_| "negative")?;
            Ok(())
        }),
        (&Method::POST, ["autodelete", minutes]) => change(call, id, |sandbox| {
            sandbox.more.auto_delete = whole(minutes)?;
            Ok(())
        }),
        (&Method::POST, ["ttl", minutes]) => change(call, id, |sandbox| {
            let minutes = u64::try_from(whole(minutes)?).map_err(|_| "negative")?;
            sandbox.more.destroyed = (minutes > 0).then(|| sandbox.created + Duration::from_secs(minutes * 60));
            Ok(())
        }),
        (&Method::POST, ["snapshot"]) => snapshots::keep(call, id),
        (&Method::GET, ["ports", port, "preview-url"]) => {
            let world = lock(&call.world);
            let Some(sandbox) = world.sandboxes.get(id) else { return refusal(404, "Sandbox not found") };
            let (url, token) = (format!("{}/preview/{id}/{port}", world.url), sandbox.token(id));
            told(200, &json!({"sandboxId": id, "url": url, "token": token}))
        }
        _ => refusal(404, "no such path"),
    }
}

//! Sandboxes: made, told, changed.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{http::Method, response::Response};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::{
    executions, life,
    state::{Call, Devbox, More, Runloop},
    stored,
};
use crate::{
    Machine, World,
    answers::{refusal, told},
    lock, milliseconds,
};

/// Longest time that a sandbox can be given.
const LONGEST: u64 = 172_800;
/// Longest wait of one request.
const WAIT: f64 = 30.0;

impl Devbox {
    pub(super) fn view(&self, id: &str) -> Value {
        let wish = &self.more.wish;
        let transition = |(status, at): &(String, u64)| json!({"status": status, "transition_time_ms": at});
        let mut view = json!({
            "id": id, "status": self.state, "create_time_ms": milliseconds(self.created), "metadata": self.labels,
            "launch_parameters": if wish["launch_parameters"].is_object() { wish["launch_parameters"].clone() } else { json!({}) },
            "capabilities": [], "state_transitions": self.more.transitions.iter().map(transition).collect::<Vec<_>>(),
        });
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                view[name] = value;
            }
        };
        for name in ["name", "blueprint_id", "snapshot_id"] {
            set(name, wish[name].clone());
        }
        set("end_time_ms", json!(self.more.ended.map(milliseconds)));
        set("failure_reason", json!(self.more.failure));
        set("shutdown_reason", json!(self.more.shutdown));
        set("tunnel", json!(self.more.tunnel));
        view
    }
}

pub(super) async fn answer(call: &Call, method: &Method, rest: &[&str]) -> Response {
    match (method, rest) {
        (&Method::POST, []) => create(call).await.1,
        (&Method::POST, ["create_and_await_running"]) => create_and_wait(call).await,
        (&Method::GET, []) => list(call),
        (&Method::GET, [id]) => with(call, id, |devbox, _| told(200, &devbox.view(id))),
        (&Method::POST, [id]) => with(call, id, |devbox, _| {
            if let Ok(labels) = serde_json::from_value(call.json["metadata"].clone()) {
                devbox.labels = labels;
            }
            if call.json["name"].is_string() {
                devbox.more.wish["name"] = call.json["name"].clone();
            }
            told(200, &devbox.view(id))
        }),
        (&Method::POST, [id, "wait_for_status"]) => wait(call, id).await,
        (&Method::POST, [id, "shutdown"]) => with(call, id, |devbox, now| {
            devbox.shut_down("api_shutdown", now);
            told(200, &devbox.view(id))
        }),
        (&Method::POST, [id, "suspend"]) => suspend(call, id),
        (&Method::POST, [id, "resume"]) => resume(call, id),
        (&Method::POST, [id, "keep_alive"]) => running(call, id, |devbox, now| {
            devbox.more.used = Some(now);
            told(200, &json!({}))
        }),
        (&Method::POST, [id, "enable_tunnel"]) => running(call, id, |devbox, now| {
            let tunnel = tunnel(&call.json, now);
            devbox.more.tunnel = Some(tunnel.clone());
            told(200, &tunnel)
        }),
        (&Method::POST, [id, "create_tunnel"]) => {
            let url = lock(&call.world).url.clone();
            running(call, id, |devbox, now| old_tunnel(devbox, id, &url, &call.json["port"], now))
        }
        (&Method::POST, [id, "remove_tunnel"]) => with(call, id, |devbox, _| {
            devbox.more.tunnel = None;
            told(200, &json!({}))
        }),
        (&Method::GET, [id, "logs"]) => with(call, id, |devbox, _| told(200, &json!({"logs": devbox.more.logs}))),
        (&Method::POST, [id, "snapshot_disk_async"]) => stored::snapshot(call, id),
        (&Method::POST, [id, rest @ ("execute" | "execute_async")]) => executions::start(call, id, rest).await,
        (&Method::POST, [id, rest @ ("read_file_contents" | "write_file_contents" | "download_file")]) => {
            executions::file(call, id, rest)
        }
        _ => refusal(404, "no such path"),
    }
}

/// Does something with a sandbox.
pub(super) fn with(call: &Call, id: &str, work: impl FnOnce(&mut Devbox, SystemTime) -> Response) -> Response {
    let mut world = lock(&call.world);
    let now = world.now();
    let Some(devbox) = world.sandboxes.get_mut(id) else { return refusal(404, "Devbox not found") };
    let answer = work(devbox, now);
    world.changed();
    answer
}

/// The same with one that runs.
pub(super) fn running(call: &Call, id: &str, work: impl FnOnce(&mut Devbox, SystemTime) -> Response) -> Response {
    with(call, id, |devbox, now| {
        if devbox.state == "running" {
            work(devbox, now)
        } else {
            refusal(400, &format!("Devbox is not running, it is {}", devbox.state))
        }
    })
}

/// A tunnel with a new key.
fn tunnel(wish: &Value, now: SystemTime) -> Value {
    let key = World::<Runloop>::next("tk");
    let mode = wish["auth_mode"].as_str().unwrap_or("open");
    let mut tunnel = json!({
        "tunnel_key": key, "auth_mode": mode, "http_keep_alive": wish["http_keep_alive"] != false,
        "wake_on_http": wish["wake_on_http"] == true, "create_time_ms": milliseconds(now),
    });
    if mode == "authenticated" {
        tunnel["auth_token"] = json!(format!("token-of-{key}"));
    }
    tunnel
}

/// The URL of one port, as older releases of the SDK ask for it (`spec/third-party-runtimes.md` 2.2): everybody reaches it, and it
/// is the same when it is asked for again.
fn old_tunnel(devbox: &mut Devbox, id: &str, url: &str, port: &Value, now: SystemTime) -> Response {
    if !port.is_u64() {
        return refusal(400, "port is missing");
    }
    let tunnel = devbox.more.tunnel.get_or_insert_with(|| tunnel(&Value::Null, now));
    let key = tunnel["tunnel_key"].as_str().unwrap_or_default();
    told(200, &json!({"devbox_id": id, "port": port, "url": format!("{url}/tunnels/{key}/{port}")}))
}

/// What the service refuses of a wish.
fn wrong(world: &World<Runloop>, wish: &Value) -> Option<Response> {
    let origins = ["blueprint_id", "blueprint_name", "snapshot_id"];
    if origins.iter().filter(|name| !wish[**name].is_null()).count() > 1 {
        return Some(refusal(400, "Only one of blueprint_id, blueprint_name, snapshot_id may be given"));
    }
    let has = |name: &str, all: &dyn Fn(&str) -> bool| wish[name].as_str().is_none_or(all);
    let face = &world.face;
    if !has("snapshot_id", &|id| face.snapshots.contains_key(id)) {
        return Some(refusal(404, "Snapshot not found"));
    }
    if !has("blueprint_id", &|id| face.blueprints.contains_key(id))
        || !has("blueprint_name", &|name| face.blueprints.values().any(|one| one["name"] == name))
    {
        return Some(refusal(404, "Blueprint not found"));
    }
    let parameters = &wish["launch_parameters"];
    if parameters["keep_alive_time_seconds"].as_u64().is_some_and(|seconds| seconds > LONGEST) {
        return Some(refusal(400, "keep_alive_time_seconds may be 172800 at most"));
    }
    let sizes = ["X_SMALL", "SMALL", "MEDIUM", "LARGE", "X_LARGE", "XX_LARGE", "CUSTOM_SIZE"];
    if parameters["resource_size_request"].as_str().is_some_and(|size| !sizes.contains(&size)) {
        return Some(refusal(400, "unknown resource_size_request"));
    }
    if parameters["network_policy_id"].as_str().is_some_and(|id| !face.policies.contains_key(id)) {
        return Some(refusal(404, "Network policy not found"));
    }
    let mounts = wish["mounts"].as_array().into_iter().flatten();
    for object in mounts.filter(|mount| mount["type"] == "object_mount") {
        let found = object["object_id"].as_str().and_then(|id| face.objects.get(id));
        if found.is_none_or(|object| object.view["state"] != "READ_ONLY") {
            return Some(refusal(400, "Object not found, or not complete"));
        }
    }
    None
}

/// Makes a sandbox, and gives its id with the answer.
async fn create(call: &Call) -> (Option<String>, Response) {
    let wish = call.json.clone();
    let metadata = serde_json::from_value::<Option<BTreeMap<String, String>>>(wish["metadata"].clone());
    let Ok(labels) = metadata else { return (None, refusal(400, "metadata must be texts")) };
    let (id, kind, directory, layer) = {
        let world = lock(&call.world);
        if let Some(refused) = wrong(&world, &wish) {
            return (None, refused);
        }
        let id = World::<Runloop>::next("dbx_");
        let snapshot = wish["snapshot_id"].as_str().and_then(|id| world.face.snapshots.get(id));
        let layer = snapshot.map(|snapshot| snapshot.layer.clone());
        (id.clone(), world.kind, world.root.join(&id), layer)
    };
    let machine = spawn_blocking(move || Machine::new(kind, directory, layer.as_deref())).await.unwrap();
    let mut world = lock(&call.world);
    // The same request may have come twice at the same time.
    if let Some(made) = call.request.as_ref().and_then(|request| world.face.wishes.get(request)) {
        return (made["id"].as_str().map(str::to_owned), told(200, made));
    }
    let now = world.now();
    let wished = wish["tunnel"].is_object().then(|| tunnel(&wish["tunnel"], now));
    let more = More { wish, tunnel: wished, ..More::default() };
    let machine = Some(Arc::new(machine));
    let mut devbox = Devbox { machine, labels: labels.unwrap_or_default(), state: String::new(), created: now, more };
    devbox.enter("provisioning", now);
    let view = devbox.view(&id);
    world.sandboxes.insert(id.clone(), devbox);
    tokio::spawn(life::boot(Arc::clone(&call.world), id.clone(), true));
    (Some(id), call.made(&mut world, view))
}

/// The same, with an answer when it runs, or after a while.
async fn create_and_wait(call: &Call) -> Response {
    let (id, answer) = create(call).await;
    let Some(id) = id else { return answer };
    let statuses = ["running", "failure", "shutdown"].map(|status| json!(status));
    let reached = wait_for(call, &id, &statuses, WAIT).await;
    if reached.status() == 408 { answer } else { reached }
}

fn list(call: &Call) -> Response {
    let world = lock(&call.world);
    let wanted = call.of("status");
    // The newest first.
    let fits = |devbox: &Devbox| wanted.is_none_or(|status| devbox.state == status);
    let mut all: Vec<_> = world.sandboxes.iter().filter(|(_, devbox)| fits(devbox)).collect();
    all.sort_by_key(|(id, devbox)| std::cmp::Reverse((devbox.created, (*id).clone())));
    let all = all.into_iter().map(|(id, devbox)| devbox.view(id)).collect();
    match call.page(world.page, all) {
        Ok((page, more)) => told(200, &json!({"devboxes": page, "has_more": more})),
        Err(refused) => refused,
    }
}

async fn wait(call: &Call, id: &str) -> Response {
    let statuses = call.json["statuses"].as_array().cloned().unwrap_or_default();
    if statuses.is_empty() {
        return refusal(400, "statuses is empty");
    }
    wait_for(call, id, &statuses, call.json["timeout_seconds"].as_f64().unwrap_or(WAIT).clamp(0.0, WAIT)).await
}

/// The answer when a sandbox has one of these states, or after so many seconds.
async fn wait_for(call: &Call, id: &str, statuses: &[Value], seconds: f64) -> Response {
    let mut changes = lock(&call.world).changes();
    let reached = async {
        loop {
            let view = lock(&call.world).sandboxes.get(id).map(|devbox| devbox.view(id));
            match view {
                None => return refusal(404, "Devbox not found"),
                Some(view) if statuses.contains(&view["status"]) => return told(200, &view),
                Some(_) => {}
            }
            if changes.changed().await.is_err() {
                return refusal(503, "the service ends");
            }
        }
    };
    let late = || refusal(408, "none of the statuses was reached in time");
    tokio::time::timeout(Duration::from_secs_f64(seconds), reached).await.unwrap_or_else(|_| late())
}

fn suspend(call: &Call, id: &str) -> Response {
    let slow = lock(&call.world).slow;
    running(call, id, |devbox, now| {
        devbox.enter("suspending", now);
        let (world, name) = (Arc::clone(&call.world), id.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(slow).await;
            let of = Arc::clone(&world);
            spawn_blocking(move || {
                let mut world = lock(&of);
                let now = world.now();
                if let Some(devbox) = world.sandboxes.get_mut(&name) {
                    devbox.rest(now);
                }
                world.changed();
            })
            .await
            .unwrap();
        });
        told(200, &devbox.view(id))
    })
}

fn resume(call: &Call, id: &str) -> Response {
    with(call, id, |devbox, now| {
        if devbox.state != "suspended" {
            return refusal(400, &format!("Devbox is not suspended, it is {}", devbox.state));
        }
        devbox.enter("resuming", now);
        // The token of a tunnel is another one afterwards.
        if let Some(tunnel) = &mut devbox.more.tunnel
            && let Some(token) = tunnel["auth_token"].as_str()
        {
            tunnel["auth_token"] = json!(format!("{token}-again"));
        }
        let view = devbox.view(id);
        tokio::spawn(life::boot(Arc::clone(&call.world), id.to_owned(), false));
        told(200, &view)
    })
}

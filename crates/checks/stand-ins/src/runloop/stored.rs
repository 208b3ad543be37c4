//! What is stored apart from sandboxes: objects, snapshots, blueprints, network policies.

use std::sync::Arc;

use axum::{body::Bytes, http::Method, response::Response};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::state::{Call, Object, Runloop, Snapshot};
use crate::{
    Shared, World,
    answers::{empty, refusal, told},
    lock, milliseconds,
};

/// What a list tells, or why there is none.
fn listed(call: &Call, name: &str, all: Vec<Value>, page: usize) -> Response {
    match call.page(page, all) {
        Ok((page, more)) => told(200, &json!({name: page, "has_more": more})),
        Err(refused) => refused,
    }
}

/// Whether a member has a value that a list asks for.
fn fits(call: &Call, view: &Value, names: &[&str]) -> bool {
    names.iter().all(|name| call.of(name).is_none_or(|wanted| view[*name] == wanted))
}

/// The bytes of an object.
pub(super) fn upload(world: &Shared<Runloop>, id: &str, body: &Bytes) -> Response {
    let mut world = lock(world);
    match world.face.objects.get_mut(id) {
        Some(object) if object.view["state"] == "UPLOADING" => {
            object.content = body.to_vec();
            empty(200)
        }
        _ => refusal(403, "the URL is not valid any more"),
    }
}

pub(super) fn objects(call: &Call, method: &Method, rest: &[&str]) -> Response {
    let mut world = lock(&call.world);
    let (now, url, page) = (world.now(), world.url.clone(), world.page);
    match (method, rest) {
        (&Method::POST, []) => {
            let (name, kind) = (&call.json["name"], &call.json["content_type"]);
            let kinds = ["unspecified", "text", "binary", "gzip", "tar", "tgz"];
            if !name.is_string() || kind.as_str().is_none_or(|kind| !kinds.contains(&kind)) {
                return refusal(400, "name and content_type are needed");
            }
            let id = World::<Runloop>::next("obj_");
            let mut view = json!({
                "id": id, "name": name, "content_type": kind, "state": "UPLOADING", "create_time_ms": milliseconds(now),
                "upload_url": format!("{url}/uploads/{id}"),
            });
            if call.json["metadata"].is_object() {
                view["metadata"] = call.json["metadata"].clone();
            }
            world.face.objects.insert(id, Object { view: view.clone(), content: Vec::new() });
            call.made(&mut world, view)
        }
        (&Method::GET, []) => {
            let all = world.face.objects.values().map(|object| object.view.clone());
            listed(call, "objects", all.filter(|view| fits(call, view, &["name", "state"])).collect(), page)
        }
        (_, [id, rest @ ..]) => {
            let Some(object) = world.face.objects.get_mut(*id) else { return refusal(404, "Object not found") };
            match (method, rest) {
                (&Method::GET, []) => told(200, &object.view),
                (&Method::POST, ["complete"]) => {
                    object.view["state"] = json!("READ_ONLY");
                    object.view["size_bytes"] = json!(object.content.len());
                    if let Some(view) = object.view.as_object_mut() {
                        view.remove("upload_url");
                    }
                    told(200, &object.view)
                }
                (&Method::POST, ["delete"]) => {
                    let mut view = object.view.clone();
                    view["state"] = json!("DELETED");
                    world.face.objects.remove(*id);
                    told(200, &view)
                }
                _ => refusal(404, "no such path"),
            }
        }
        _ => refusal(404, "no such path"),
    }
}

/// Keeps the disk of a sandbox.
pub(super) fn snapshot(call: &Call, id: &str) -> Response {
    let id_of_it = World::<Runloop>::next("snp_");
    let (machine, layer, view) = {
        let world = lock(&call.world);
        let Some(devbox) = world.sandboxes.get(id) else { return refusal(404, "Devbox not found") };
        let Some(machine) = devbox.machine.clone() else { return refusal(400, "Devbox has ended") };
        let mut view = json!({
            "id": id_of_it, "create_time_ms": milliseconds(world.now()), "source_devbox_id": id, "status": "in_progress",
            "metadata": if call.json["metadata"].is_object() { call.json["metadata"].clone() } else { json!({}) },
        });
        if call.json["name"].is_string() {
            view["name"] = call.json["name"].clone();
        }
        (machine, world.root.join(format!("layer-{id_of_it}")), view)
    };
    let answer = {
        let mut world = lock(&call.world);
        world.face.snapshots.insert(id_of_it.clone(), Snapshot { view: view.clone(), layer: layer.clone() });
        call.made(&mut world, view)
    };
    let (world, slow) = (Arc::clone(&call.world), lock(&call.world).slow);
    tokio::spawn(async move {
        spawn_blocking(move || machine.keep(&layer)).await.unwrap();
        tokio::time::sleep(slow).await;
        if let Some(snapshot) = lock(&world).face.snapshots.get_mut(&id_of_it) {
            snapshot.view["status"] = json!("complete");
        }
    });
    answer
}

pub(super) fn snapshots(call: &Call, method: &Method, rest: &[&str]) -> Response {
    let mut world = lock(&call.world);
    match (method, rest) {
        (&Method::GET, []) => {
            let of = |view: &Value| call.of("devbox_id").is_none_or(|id| view["source_devbox_id"] == id);
            let metadata = call.query.iter().filter_map(|(name, value)| {
                Some((name.strip_prefix("metadata[")?.strip_suffix(']')?.to_owned(), value.clone()))
            });
            let metadata: Vec<_> = metadata.collect();
            let fits = |view: &Value| metadata.iter().all(|(name, value)| view["metadata"][name] == **value);
            let all = world.face.snapshots.values().map(|snapshot| snapshot.view.clone());
            listed(call, "snapshots", all.filter(|view| of(view) && fits(view)).collect(), world.page)
        }
        (&Method::GET, [id, "status"]) => match world.face.snapshots.get(*id) {
            Some(snapshot) => told(200, &json!({"status": snapshot.view["status"], "snapshot": snapshot.view})),
            None => refusal(404, "Snapshot not found"),
        },
        (&Method::POST, [id, "delete"]) => match world.face.snapshots.remove(*id) {
            Some(_) => told(200, &json!({})),
            None => refusal(404, "Snapshot not found"),
        },
        _ => refusal(404, "no such path"),
    }
}

pub(super) fn blueprints(call: &Call, method: &Method, rest: &[&str]) -> Response {
    let mut world = lock(&call.world);
    match (method, rest) {
        (&Method::POST, []) => {
            if !call.json["name"].is_string() {
                return refusal(400, "name is needed");
            }
            let id = World::<Runloop>::next("bp_");
            let broken = call.json["dockerfile"].as_str().is_some_and(|file| !file.starts_with("FROM "));
            let view = json!({
                "id": id, "name": call.json["name"], "create_time_ms": milliseconds(world.now()), "state": "created",
                "status": "building", "parameters": call.json, "metadata": call.json["metadata"],
            });
            world.face.blueprints.insert(id.clone(), view.clone());
            let (shared, slow) = (Arc::clone(&call.world), world.slow);
            tokio::spawn(async move {
                tokio::time::sleep(slow).await;
                if let Some(view) = lock(&shared).face.blueprints.get_mut(&id) {
                    view["status"] = json!(if broken { "failed" } else { "build_complete" });
                    if broken {
                        view["failure_reason"] = json!("build_failed");
                    }
                }
            });
            call.made(&mut world, view)
        }
        (&Method::GET, []) => {
            let all = world.face.blueprints.values().filter(|view| fits(call, view, &["name", "status"]));
            listed(call, "blueprints", all.cloned().collect(), world.page)
        }
        (&Method::GET, [id]) => match world.face.blueprints.get(*id) {
            Some(view) => told(200, view),
            None => refusal(404, "Blueprint not found"),
        },
        (&Method::POST, [id, "delete"]) => match world.face.blueprints.remove(*id) {
            Some(_) => told(200, &json!({})),
            None => refusal(404, "Blueprint not found"),
        },
        _ => refusal(404, "no such path"),
    }
}

pub(super) fn policies(call: &Call, method: &Method, rest: &[&str]) -> Response {
    let mut world = lock(&call.world);
    match (method, rest) {
        (&Method::POST, []) => {
            if !call.json["name"].is_string() {
                return refusal(400, "name is needed");
            }
            let id = World::<Runloop>::next("np_");
            let of = |name: &str| call.json[name] == true;
            let all = |name: &str| if call.json[name].is_array() { call.json[name].clone() } else { json!([]) };
            let now = milliseconds(world.now());
            let view = json!({
                "id": id, "name": call.json["name"], "create_time_ms": now, "update_time_ms": now,
                "egress": {
                    "allow_all": of("allow_all"), "allow_agent_gateway": of("allow_agent_gateway"),
                    "allow_devbox_to_devbox": of("allow_devbox_to_devbox"), "allow_mcp_gateway": of("allow_mcp_gateway"),
                    "allow_runloop_mirrors": of("allow_runloop_mirrors"), "allowed_cidrs": all("allowed_cidrs"),
                    "allowed_hostnames": all("allowed_hostnames"),
                },
            });
            world.face.policies.insert(id, view.clone());
            call.made(&mut world, view)
        }
        (&Method::GET, []) => {
            let all = world.face.policies.values().filter(|view| fits(call, view, &["name"]));
            listed(call, "network_policies", all.cloned().collect(), world.page)
        }
        (&Method::POST, [id, "delete"]) => match world.face.policies.remove(*id) {
            Some(view) => told(200, &view),
            None => refusal(404, "Network policy not found"),
        },
        _ => refusal(404, "no such path"),
    }
}

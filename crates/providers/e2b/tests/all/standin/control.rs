//! The control plane.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    body::Bytes,
    http::{Method, request::Parts},
    response::{IntoResponse as _, Response},
};
use gloveport_stand_ins::answers::{refusal, told};
use serde_json::{Value, json};

use super::{Sandbox, Shared, World, copy, lock, machine::Machine};

/// A time as the service writes it.
fn time(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).unwrap().to_string()
}

impl Sandbox {
    /// What lists tell.
    fn listed(&self, id: &str) -> Value {
        json!({
            "sandboxID": id, "templateID": self.template, "clientID": "c", "envdVersion": "0.6.13",
            "startedAt": time(self.started), "endAt": time(self.ends), "metadata": self.metadata,
            "state": if self.paused { "paused" } else { "running" },
            "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024,
        })
    }

    fn whole(&self, id: &str) -> Value {
        let mut told = self.listed(id);
        told["envdAccessToken"] = json!(self.agent_token);
        told["domain"] = Value::Null;
        told
    }

    /// What the answers to create and connect tell.
    fn made(&self, id: &str) -> Value {
        json!({
            "sandboxID": id, "templateID": self.template, "clientID": "c", "envdVersion": "0.6.13",
            "envdAccessToken": self.agent_token, "trafficAccessToken": self.traffic_token, "domain": null,
        })
    }
}

impl World {
    /// Makes a sandbox, and gives its id.
    pub(super) fn create(
        &mut self,
        template: &str,
        metadata: BTreeMap<String, String>,
        limit: Duration,
        auto_pause: bool,
        private: bool,
    ) -> String {
        let id = Self::next();
        let snapshot = self.snapshots.get(template).map(|(_, layer)| layer.clone());
        let machine = Arc::new(Machine::new(self.kind, self.root.join(&id), snapshot.as_deref()));
        let started = SystemTime::now();
        let sandbox = Sandbox {
            machine,
            metadata,
            template: template.to_owned(),
            paused: false,
            auto_pause,
            started,
            ends: started + limit,
            agent_token: format!("agent-{id}"),
            traffic_token: private.then(|| format!("traffic-{id}-0")),
            turns: 0,
        };
        self.sandboxes.insert(id.clone(), sandbox);
        id
    }
}

fn seconds(body: &Value, name: &str) -> Option<Duration> {
    body[name].as_u64().map(Duration::from_secs)
}

/// A query or a part of one: names and values that are encoded.
fn pairs(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

pub(super) async fn answer(world: &Shared, parts: &Parts, body: &Bytes) -> Response {
    let key = parts.headers.get("x-api-key").and_then(|key| key.to_str().ok());
    if key != Some(super::KEY) {
        return refusal(401, "Invalid API key");
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let query = pairs(parts.uri.query().unwrap_or_default());
    let path = parts.uri.path().trim_start_matches('/').to_owned();
    let words: Vec<String> = path.split('/').map(str::to_owned).collect();
    // What takes a while is not to keep others waiting who ask for something else.
    let (world, method, headers) = (Arc::clone(world), parts.method.clone(), parts.headers.clone());
    let idempotency = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
    tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut world = lock(&world);
        match (method, &*words) {
            (Method::POST, ["v2", "sandboxes"]) if !world.old => make(&mut world, &body, idempotency),
            (Method::POST, ["sandboxes"]) if body["secure"] == true => make(&mut world, &body, None),
            (Method::GET, ["v2", "sandboxes"]) => list(&world, &query),
            (Method::POST, ["v2", "sandboxes", id, "connect"]) if !world.old => connect(&mut world, id, &body),
            (Method::POST, ["sandboxes", id, "resume"]) => connect(&mut world, id, &body),
            (Method::GET, ["snapshots"]) => {
                let all = world.snapshots.iter().map(|(id, (name, _))| json!({"snapshotID": id, "names": [name]}));
                told(200, &all.collect())
            }
            (Method::DELETE, ["templates", id]) => match world.snapshots.remove(*id) {
                Some(_) => told(204, &Value::Null),
                None => refusal(404, "template not found"),
            },
            (method, ["sandboxes", id, rest @ ..]) => one(&mut world, &method, id, rest, &body),
            _ => refusal(404, "no such path"),
        }
    })
    .await
    .unwrap()
}

fn make(world: &mut World, body: &Value, idempotency: Option<String>) -> Response {
    if let Some(made) = idempotency.as_ref().and_then(|key| world.wishes.get(key)) {
        return told(201, made);
    }
    let template = body["templateID"].as_str().unwrap_or_default();
    if template != "base" && !world.snapshots.contains_key(template) {
        return refusal(404, &format!("template '{template}' not found"));
    }
    let limit = seconds(body, "timeout").unwrap_or(Duration::from_mins(5));
    if limit > world.longest {
        return refusal(400, "Timeout cannot be greater than 1 hours");
    }
    let metadata = serde_json::from_value(body["metadata"].clone()).unwrap();
    let private = body["network"]["allowPublicTraffic"] == false;
    let id = world.create(template, metadata, limit, body["autoPause"] == true, private);
    let made = world.sandboxes[&id].made(&id);
    if let Some(key) = idempotency {
        world.wishes.insert(key, made.clone());
    }
    told(201, &made)
}

fn list(world: &World, query: &[(String, String)]) -> Response {
    let of = |name: &str| query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
    let wanted = pairs(of("metadata").unwrap_or_default());
    // Names and values are encoded once more.
    let decoded = |text: &str| pairs(text).into_iter().next().map(|(name, _)| name).unwrap_or_default();
    let fits = |sandbox: &Sandbox| {
        wanted.iter().all(|(name, value)| sandbox.metadata.get(&decoded(name)) == Some(&decoded(value)))
    };
    let begin: usize = of("nextToken").map_or(0, |token| token.parse().unwrap());
    let all: Vec<Value> =
        world.sandboxes.iter().filter(|(_, sandbox)| fits(sandbox)).map(|(id, sandbox)| sandbox.listed(id)).collect();
    let page: Vec<Value> = all.iter().skip(begin).take(world.page).cloned().collect();
    let next = begin + page.len();
    let mut answer = told(200, &Value::Array(page));
    let token = if next < all.len() { next.to_string() } else { String::new() };
    answer.headers_mut().insert("x-next-token", token.parse().unwrap());
    answer
}

fn connect(world: &mut World, id: &str, body: &Value) -> Response {
    let Some(sandbox) = world.sandboxes.get_mut(id) else { return refusal(404, "sandbox not found") };
    let ends = SystemTime::now() + seconds(body, "timeout").unwrap_or_default();
    let rested = sandbox.paused;
    if rested {
        sandbox.machine.go_on();
        (sandbox.paused, sandbox.started, sandbox.ends) = (false, SystemTime::now(), ends);
        sandbox.turns += 1;
        if let Some(token) = &mut sandbox.traffic_token {
            *token = format!("traffic-{id}-{}", sandbox.turns);
        }
    } else {
        sandbox.ends = sandbox.ends.max(ends);
    }
    told(if rested { 201 } else { 200 }, &sandbox.made(id))
}

fn one(world: &mut World, method: &Method, id: &str, rest: &[&str], body: &Value) -> Response {
    let longest = world.longest;
    let Some(sandbox) = world.sandboxes.get_mut(id) else { return refusal(404, "sandbox not found") };
    match (method, rest) {
        (&Method::GET, []) => told(200, &sandbox.whole(id)),
        (&Method::DELETE, []) => {
            world.sandboxes.remove(id);
            axum::http::StatusCode::NO_CONTENT.into_response()
        }
        (&Method::POST, ["timeout"]) => match seconds(body, "timeout") {
            Some(limit) if limit <= longest => {
                sandbox.ends = SystemTime::now() + limit;
                axum::http::StatusCode::NO_CONTENT.into_response()
            }
            _ => refusal(400, "Timeout cannot be greater than 1 hours"),
        },
        (&Method::POST, ["pause"]) if sandbox.paused => refusal(409, "already paused"),
        (&Method::POST, ["pause"]) => {
            sandbox.machine.stop();
            sandbox.paused = true;
            axum::http::StatusCode::NO_CONTENT.into_response()
        }
        (&Method::POST, ["snapshots"]) => {
            let layer = sandbox.machine.layer();
            let (snapshot, name) = (World::next(), body["name"].as_str().unwrap_or_default().to_owned());
            let kept = world.root.join(format!("snapshot-{snapshot}"));
            copy(&layer, &kept);
            let answer = json!({"snapshotID": snapshot, "names": [name]});
            world.snapshots.insert(snapshot, (name, kept));
            told(201, &answer)
        }
        _ => refusal(404, "no such path"),
    }
}

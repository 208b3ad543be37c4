//! The face of Runloop (`spec/hosted-apis.md` 4).
//!
//! Ports are reached below `/tunnels/{tunnel_key}/{port}`, as host names would need a name server.
//!
//! | module | idea |
//! |---|---|
//! | `devboxes` | sandboxes: made, told, changed |
//! | `life` | how they start, rest, go on and end |
//! | `executions` | programs and files in them |
//! | `stored` | objects, snapshots, blueprints, network policies |

mod devboxes;
mod executions;
mod life;
mod stored;

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use axum::{
    http::{Method, request::Parts},
    response::Response,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::{
    Asked, Execution, Face, Route, Sandbox, Shared, World,
    answers::{pairs, refusal, told},
    lock,
};

/// A sandbox of Runloop.
pub type Devbox = Sandbox<More>;

/// What Runloop knows of a sandbox beside what the core does.
#[derive(Default)]
pub struct More {
    /// What was asked for.
    wish: Value,
    /// States that it had, with their times in milliseconds.
    transitions: Vec<(String, u64)>,
    /// When it was last of use.
    used: Option<SystemTime>,
    tunnel: Option<Value>,
    failure: Option<&'static str>,
    shutdown: Option<&'static str>,
    ended: Option<SystemTime>,
    /// Programs by id.
    executions: BTreeMap<String, Arc<Execution>>,
    /// What the platform has written of it.
    logs: Vec<Value>,
}

/// What Runloop has beside sandboxes.
#[derive(Default)]
pub struct Runloop {
    objects: BTreeMap<String, Object>,
    snapshots: BTreeMap<String, Snapshot>,
    blueprints: BTreeMap<String, Value>,
    policies: BTreeMap<String, Value>,
    /// Answers by the id of their request.
    wishes: HashMap<String, Value>,
}

struct Object {
    view: Value,
    content: Vec<u8>,
}

struct Snapshot {
    view: Value,
    layer: PathBuf,
}

impl Runloop {
    /// The programs that were stored, by name, with their lengths.
    pub fn objects(&self) -> Vec<(String, usize)> {
        let name = |object: &Object| object.view["name"].as_str().unwrap_or_default().to_owned();
        self.objects.values().map(|object| (name(object), object.content.len())).collect()
    }

    /// Names of the snapshots.
    pub fn snapshots(&self) -> Vec<String> {
        self.snapshots.values().map(|it| it.view["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Names of the network policies.
    pub fn policies(&self) -> Vec<String> {
        self.policies.values().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Names of the blueprints.
    pub fn blueprints(&self) -> Vec<String> {
        self.blueprints.values().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Face for Runloop {
    type More = More;
    const NAME: &'static str = "runloop";
    const KEY: &'static str = "ak_of_the_stand_in";

    fn variables(url: &str) -> Vec<(&'static str, String)> {
        vec![
            ("RUNLOOP_API_KEY", Self::KEY.to_owned()),
            ("RUNLOOP_BASE_URL", url.to_owned()),
            ("TUNNELS", format!("{url}/tunnels/{{tunnel_key}}/{{port}}")),
        ]
    }

    fn route(world: &mut World<Self>, parts: &Parts) -> Route {
        let Some(rest) = parts.uri.path().strip_prefix("/tunnels/") else { return Route::Face };
        let mut words = rest.splitn(3, '/');
        let (key, port) = (words.next().unwrap_or_default(), words.next().and_then(|port| port.parse().ok()));
        let query = parts.uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let path = format!("/{}{query}", words.next().unwrap_or_default());
        let now = world.now();
        let of_key = |devbox: &Devbox| devbox.more.tunnel.as_ref().is_some_and(|tunnel| tunnel["tunnel_key"] == key);
        let found = world.sandboxes.iter_mut().find(|(_, devbox)| of_key(devbox));
        let (Some((id, devbox)), Some(port)) = (found, port) else {
            return Route::Refused(refusal(404, "there is no such tunnel"));
        };
        let tunnel = devbox.more.tunnel.clone().unwrap_or_default();
        if tunnel["auth_mode"] == "authenticated" {
            let expected = format!("Bearer {}", tunnel["auth_token"].as_str().unwrap_or_default());
            let given = parts.headers.get("x-runloop-tunnel-authorization").and_then(|value| value.to_str().ok());
            if given != Some(&expected) {
                return Route::Refused(refusal(401, "the tunnel asks for its token"));
            }
        }
        if devbox.state != "running" {
            return Route::Refused(refusal(502, "the devbox does not run"));
        }
        if tunnel["http_keep_alive"] == true {
            devbox.more.used = Some(now);
        }
        Route::Port { id: id.clone(), port, path }
    }

    fn turn(world: &mut World<Self>) {
        life::turn(world);
    }

    fn answer(world: Shared<Self>, asked: Asked) -> BoxFuture<'static, Response> {
        Box::pin(answer(world, asked))
    }
}

async fn answer(world: Shared<Runloop>, asked: Asked) -> Response {
    let Asked { parts, body } = asked;
    let path = parts.uri.path().to_owned();
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    // A URL of an upload is a right by itself.
    if let (&Method::PUT, ["uploads", id]) = (&parts.method, &*words) {
        return stored::upload(&world, id, &body);
    }
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if header("authorization") != Some(format!("Bearer {}", Runloop::KEY)) {
        return refusal(401, "Invalid API key");
    }
    let query = pairs(parts.uri.query());
    let ["v1", rest @ ..] = &*words else { return refusal(404, "no such path") };
    if let (&Method::POST, ["devboxes", id, "upload_file"]) = (&parts.method, rest) {
        return executions::upload(&world, id, &parts.headers, body).await;
    }
    let json = if body.is_empty() { Ok(json!({})) } else { serde_json::from_slice::<Value>(&body) };
    let Ok(json) = json else { return refusal(400, "the body is no JSON") };
    let request = header("x-request-id");
    // What is made for one request is made once.
    if let Some(made) = request.as_ref().and_then(|request| lock(&world).face.wishes.get(request).cloned()) {
        return told(200, &made);
    }
    let call = Call { world, query, json, request };
    match (parts.method, rest) {
        (Method::GET, ["accounts", "me"]) => told(200, &account()),
        (method, ["devboxes", "disk_snapshots", rest @ ..]) => stored::snapshots(&call, &method, rest),
        (method, ["devboxes", id, "executions", rest @ ..]) => executions::one(&call, &method, id, rest).await,
        (method, ["devboxes", rest @ ..]) => devboxes::answer(&call, &method, rest).await,
        (method, ["objects", rest @ ..]) => stored::objects(&call, &method, rest),
        (method, ["blueprints", rest @ ..]) => stored::blueprints(&call, &method, rest),
        (method, ["network-policies", rest @ ..]) => stored::policies(&call, &method, rest),
        _ => refusal(404, "no such path"),
    }
}

/// A request that was understood so far.
struct Call {
    world: Shared<Runloop>,
    query: Vec<(String, String)>,
    json: Value,
    /// Its id, which is the same when it is sent again.
    request: Option<String>,
}

impl Call {
    fn of(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The answer of something that was made, now and when the same is asked again.
    fn made(&self, world: &mut World<Runloop>, view: Value) -> Response {
        let answer = told(200, &view);
        if let Some(request) = &self.request {
            world.face.wishes.insert(request.clone(), view);
        }
        answer
    }

    /// A page of a list, and whether there is more: members in their order, after the one that was named.
    #[expect(clippy::result_large_err, reason = "an answer is what is wanted")]
    fn page(&self, page: usize, all: Vec<Value>) -> Result<(Vec<Value>, bool), Response> {
        let begin = match self.of("starting_after") {
            None | Some("") => 0,
            Some(id) => match all.iter().position(|one| one["id"] == id) {
                Some(at) => at + 1,
                None => return Err(refusal(400, "starting_after names nothing")),
            },
        };
        let limit = self.of("limit").map_or(Some(20), |limit| limit.parse().ok()).unwrap_or_default();
        if !(1..=5000).contains(&limit) {
            return Err(refusal(400, "limit must be between 1 and 5000"));
        }
        let limit = limit.min(page);
        let more = all.len() > begin + limit;
        Ok((all.into_iter().skip(begin).take(limit).collect(), more))
    }
}

fn account() -> Value {
    json!({
        "id": "acc_1", "name": "tests", "account_status": "ACCOUNT_STATUS_ENABLED", "tier": "ACCOUNT_TIER_PRO",
        "created_at": "2026-01-01T00:00:00Z", "billing": {"account_billing_type": "STRIPE"},
    })
}

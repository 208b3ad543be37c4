//! The face of Runloop (`spec/hosted-apis.md` 4).
//!
//! Ports are reached below `/tunnels/{tunnel_key}/{port}`, as host names would need a name server.
//!
//! | module | idea |
//! |---|---|
//! | `devboxes` | sandboxes: made, told, changed |
//! | `life` | how they start, rest, go on and end |
//! | `executions` | programs and files in them |
//! | `state` | what the service has, and what it is asked |
//! | `stored` | objects, snapshots, blueprints, network policies |

mod devboxes;
mod executions;
mod life;
mod state;
mod stored;

use axum::{
    http::{Method, request::Parts},
    response::Response,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use state::Call;
pub use state::{Devbox, More, Runloop};

use crate::{
    Asked, Face, Route, Shared, World,
    answers::{pairs, refusal, told},
    lock,
};

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

    fn more(more: &More) -> Value {
        let mut told = json!({"wish": more.wish, "tunnel": more.tunnel, "shutdown_reason": more.shutdown});
        told["failure_reason"] = json!(more.failure);
        told
    }

    fn kept(&self) -> Value {
        let objects: Vec<String> = self.objects().into_iter().map(|(name, _)| name).collect();
        json!({"objects": objects, "snapshots": self.snapshots(), "policies": self.policies(), "blueprints": self.blueprints()})
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

fn account() -> Value {
    json!({
        "id": "acc_1", "name": "tests", "account_status": "ACCOUNT_STATUS_ENABLED", "tier": "ACCOUNT_TIER_PRO",
        "created_at": "2026-01-01T00:00:00Z", "billing": {"account_billing_type": "STRIPE"},
    })
}

//! The face of Daytona, platform v0 (`spec/hosted-apis.md` 3).
//!
//! The API is below `/api`, the daemons of sandboxes below `/toolbox/{id}`, and ports are reached below `/preview/{id}/{port}`, as
//! host names would need a name server.
//!
//! | module | idea |
//! |---|---|
//! | `state` | what the service has, and what it is asked |
//! | `sandboxes` | sandboxes: made, told, changed |
//! | `life` | how they start, rest, go on and end |
//! | `toolbox` | programs and files in them |
//! | `snapshots` | what they are made from |

mod life;
mod sandboxes;
mod snapshots;
mod state;
mod toolbox;

use axum::{
    http::{Method, request::Parts},
    response::Response,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use state::{Call, header};
pub use state::{Daytona, More};

use crate::{
    Asked, Face, Route, Shared, World,
    answers::{pairs, refusal, told},
};

/// The first minor release of the SDK to which lists are told in pages, as far as is known here.
const PAGES: u32 = 100;

impl Face for Daytona {
    type More = More;
    const NAME: &'static str = "daytona";
    const KEY: &'static str = "dtn_of_the_stand_in";

    fn variables(url: &str) -> Vec<(&'static str, String)> {
        vec![
            ("DAYTONA_API_KEY", Self::KEY.to_owned()),
            ("DAYTONA_API_URL", format!("{url}/api")),
            ("DAYTONA_TARGET", "us".to_owned()),
        ]
    }

    fn route(world: &mut World<Self>, parts: &Parts) -> Route {
        let Some(rest) = parts.uri.path().strip_prefix("/preview/") else { return Route::Face };
        let mut words = rest.splitn(3, '/');
        let (id, port) = (words.next().unwrap_or_default(), words.next().and_then(|port| port.parse().ok()));
        let query = parts.uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let path = format!("/{}{query}", words.next().unwrap_or_default());
        let now = world.now();
        let (Some(sandbox), Some(port)) = (world.sandboxes.get_mut(id), port) else {
            return Route::Refused(refusal(404, "Sandbox not found"));
        };
        let is_public = sandbox.more.wish["public"] == true;
        if !is_public && header(&parts.headers, "x-daytona-preview-token") != Some(&sandbox.token(id)) {
            return Route::Refused(refusal(401, "unauthorized: the preview asks for its token"));
        }
        if sandbox.state != "started" {
            return Route::Refused(refusal(502, "the sandbox is not started"));
        }
        sandbox.more.used = now;
        Route::Port { id: id.to_owned(), port, path }
    }

    fn turn(world: &mut World<Self>) {
        life::turn(world);
    }

    fn more(more: &More) -> Value {
        let sessions: Vec<&String> = more.sessions.keys().collect();
        json!({"name": more.name, "wish": more.wish, "autoStop": more.auto_stop, "autoDelete": more.auto_delete, "sessions": sessions})
    }

    fn kept(&self) -> Value {
        json!({"snapshots": self.snapshots()})
    }

    fn answer(world: Shared<Self>, asked: Asked) -> BoxFuture<'static, Response> {
        Box::pin(answer(world, asked))
    }
}

/// Whether this release of the SDK expects a list as a whole: that of OpenHands 0.62 does.
fn has_no_pages(release: &str) -> bool {
    let minor = release.strip_prefix("0.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    minor.is_some_and(|minor| minor < PAGES)
}

async fn answer(world: Shared<Daytona>, asked: Asked) -> Response {
    let Asked { parts, body } = asked;
    let path = parts.uri.path().to_owned();
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    if header(&parts.headers, "authorization") != Some(&format!("Bearer {}", Daytona::KEY)) {
        return refusal(401, "Invalid credentials");
    }
    let query = pairs(parts.uri.query());
    // Older releases of the SDK do not ask where toolboxes are.
    if let ["toolbox", id, rest @ ..] | ["api", "toolbox", id, "toolbox", rest @ ..] = &*words {
        let call = Call { world, query, json: serde_json::from_slice(&body).unwrap_or_default(), is_whole: false };
        return toolbox::answer(&call, &parts, id, rest, body).await;
    }
    let ["api", rest @ ..] = &*words else { return refusal(404, "no such path") };
    let json = if body.is_empty() { Ok(json!({})) } else { serde_json::from_slice::<Value>(&body) };
    let Ok(json) = json else { return refusal(400, "the body is no JSON") };
    let is_whole = header(&parts.headers, "x-daytona-sdk-version").is_some_and(has_no_pages);
    let call = Call { world, query, json, is_whole };
    match (parts.method, rest) {
        (Method::GET, ["api-keys", "current"]) => told(
            200,
            &json!({"name": "tests", "value": "dtn_***", "permissions": [], "createdAt": "2026-01-01T00:00:00Z"}),
        ),
        (method, ["sandbox", rest @ ..]) => sandboxes::answer(&call, &method, rest).await,
        (method, ["snapshots", rest @ ..]) => snapshots::answer(&call, &method, rest),
        _ => refusal(404, "no such path"),
    }
}

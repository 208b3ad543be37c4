//! The key (`agent-server-workspace-api` 2).

use reqwest::Method;
use serde_json::json;

use super::calls::{EVENTS, EXECUTE, SEARCH, START, execute, printed};
use crate::{Check, check::Expect, server::Request};

const SPEC: &str = "agent-server-workspace-api 2";

fn refused() -> Expect {
    Expect::detail(401, "Unauthorized")
}

fn with(request: Request, key: &str) -> Request {
    request.without_key().header("x-session-api-key", key)
}

/// All routes of a sandbox, none of which does anything like this.
fn all() -> Vec<Request> {
    let posts = [
        EXECUTE,
        START,
        "/api/bash/bash_commands/00000000-0000-0000-0000-000000000007/stop",
        "/api/file/upload",
        "/api/file/create_directory",
        "/api/hooks",
    ];
    let gets = [
        SEARCH,
        "/api/bash/bash_events/x",
        "/api/bash/bash_events/",
        "/api/file/download",
        "/api/file/home",
        "/api/file/search_subdirs",
        "/api/git/changes",
        "/api/git/diff",
        "/api/git/commits",
        "/api/git/commits/abcd/changes",
        "/api/vscode/status",
        "/api/vscode/url",
        "/api/tools/",
    ];
    let mut all: Vec<Request> = posts.iter().map(|path| Request::new(Method::POST, path)).collect();
    all.extend(gets.iter().map(|path| Request::get(path)));
    all.push(Request::new(Method::DELETE, EVENTS));
    all
}

pub(super) fn checks() -> Vec<Check> {
    let all_refused = |check: Check, key: Option<&str>| {
        all().into_iter().fold(check.with_key(), |check, request| {
            let request = key.map_or_else(|| request.clone().without_key(), |key| with(request.clone(), key));
            check.send(request, refused())
        })
    };
    vec![
        all_refused(Check::new("keys/none", "no route of the sandbox answers without the key", SPEC), None),
        all_refused(Check::new("keys/wrong", "no route of the sandbox answers with a wrong key", SPEC), Some("wrong")),
        Check::new("keys/empty", "an empty key is none", SPEC)
            .with_key()
            .send(with(Request::get("/api/file/home"), ""), refused()),
        Check::new("keys/elsewhere", "the headers of other protocols are no keys", SPEC)
            .with_key()
            .send(Request::get("/api/file/home").without_key().header("authorization", "Bearer wrong"), refused())
            .send(Request::get("/api/file/home").without_key().header("x-api-key", "wrong"), refused()),
        Check::new("keys/open", "what tells that the server lives needs no key", SPEC)
            .send(with(Request::get("/alive"), "wrong"), Expect::whole(json!({"status": "ok"})))
            .send(with(Request::get("/server_info"), "wrong"), Expect::status(200))
            .send(Request::get("/openapi.json").without_key(), Expect::status(200)),
        Check::new("keys/right", "the key opens", SPEC).with_key().send(execute("true"), printed("", "", 0)),
    ]
}

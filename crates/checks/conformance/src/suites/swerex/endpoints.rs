//! What the server is, keys, and requests that are none (`swe-rex-api` 1 and 2).

use reqwest::Method;
use serde_json::json;

use super::calls::{execute, shell};
use crate::{
    Check,
    check::{Expect, Text, Want},
    server::{Part, Request},
};

const CONVENTIONS: &str = "swe-rex-api 1";
const ENDPOINTS: &str = "swe-rex-api 2";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        Check::new("info/hello", "the root greets", ENDPOINTS)
            .send(Request::get("/"), Expect::whole(json!({"message": "hello world"}))),
        Check::new("info/alive", "a live server says so", ENDPOINTS)
            .send(Request::get("/is_alive"), Expect::whole(json!({"is_alive": true, "message": ""}))),
        Check::new("info/json", "answers are JSON", ENDPOINTS).send(
            Request::get("/is_alive"),
            Expect::status(200).want(Want::Header("content-type", Text::Starts("application/json".to_owned()))),
        ),
        Check::new("info/unknown-path", "an unknown path is not found", CONVENTIONS)
            .send(Request::json("/no/such", &json!({})), Expect::detail(404, "Not Found"))
            .send(Request::get("/no-such"), Expect::detail(404, "Not Found")),
        Check::new("info/wrong-method", "a known path with another method is refused", CONVENTIONS)
            .send(Request::get("/execute"), Expect::detail(405, "Method Not Allowed"))
            .send(Request::new(Method::DELETE, "/run_in_session"), Expect::detail(405, "Method Not Allowed"))
            .send(Request::json("/is_alive", &json!({})), Expect::detail(405, "Method Not Allowed")),
    ];
    checks.extend(keys());
    checks.extend(invalid());
    checks
}

/// All requests, none of which does anything.
fn all() -> Vec<Request> {
    let posts = ["/create_session", "/run_in_session", "/close_session", "/execute", "/read_file", "/write_file"];
    let mut all: Vec<Request> = posts.iter().map(|path| Request::json(path, &json!({}))).collect();
    all.push(Request::form("/upload", &[Part::field("unzip", "false")]));
    all.push(Request::post("/close", ""));
    all.extend([Request::get("/"), Request::get("/is_alive")]);
    all
}

fn keys() -> Vec<Check> {
    let why = "the reference does so with another version of its framework";
    let none = || {
        let body = json!({"detail": "Not authenticated"});
        Expect::detail(403, "Not authenticated").or(Expect::status(401).want(Want::Whole(body)), why)
    };
    let wrong = || Expect::detail(401, "Invalid API Key").or(Expect::status(500), why);
    let mut without = Check::new("keys/none", "no request is answered without the key", CONVENTIONS).with_key();
    let mut with_wrong = Check::new("keys/wrong", "no request is answered with a wrong key", CONVENTIONS).with_key();
    for request in all() {
        without = without.send(request.clone().without_key(), none());
        with_wrong = with_wrong.send(request.without_key().header("x-api-key", "wrong"), wrong());
    }
    vec![
        without,
        with_wrong,
        Check::new("keys/other-header", "the header of other protocols is no key", CONVENTIONS)
            .with_key()
            .send(Request::get("/is_alive").without_key().header("x-session-api-key", "wrong"), none()),
        Check::new("keys/right", "the key opens", CONVENTIONS).with_key().send(shell("true"), Expect::status(200)),
    ]
}

/// A refusal that tells what is wrong.
fn refused() -> Expect {
    Expect::status(422)
        .at("/detail/0/loc/0", "body")
        .want(Want::Present("/detail/0/type"))
        .want(Want::Present("/detail/0/msg"))
        .want(Want::Present("/detail/0/input"))
}

/// A refusal that names the member of the body.
fn names(member: &str) -> Expect {
    refused().at("/detail/0/loc/1", member)
}

fn invalid() -> Vec<Check> {
    let post = |path: &str, body: serde_json::Value| Request::json(path, &body);
    vec![
        Check::new("validation/missing", "what is missing in a request is named", CONVENTIONS)
            .send(post("/execute", json!({})), names("command"))
            .send(post("/read_file", json!({})), names("path"))
            .send(post("/write_file", json!({"path": "{dir}/x"})), names("content")),
        Check::new("validation/types", "what has another type is refused", CONVENTIONS)
            .send(post("/read_file", json!({"path": 7})), refused())
            .send(post("/write_file", json!({"path": "{dir}/x", "content": 7})), refused())
            .send(execute("true", &json!({"timeout": "soon"})), refused())
            .send(execute("true", &json!({"env": {"A": 1}})), Expect::status(422)),
        Check::new("validation/discriminator", "a request of a session needs its kind", CONVENTIONS)
            .send(post("/run_in_session", json!({"command": "true", "session": "{session}"})), Expect::status(422))
            .send(post("/create_session", json!({"session": "{session}"})), Expect::status(422)),
        Check::new("validation/not-json", "a body that is not JSON is refused", CONVENTIONS)
            .send(Request::post("/execute", "{"), Expect::status(422))
            .send(Request::post("/execute", "[]"), Expect::status(422))
            .send(Request::post("/execute", ""), Expect::status(422)),
        Check::new("validation/unknown", "members that are unknown do not matter", CONVENTIONS)
            .send(execute(json!(["true"]), &json!({"unknown": [1]})), Expect::status(200).at("/exit_code", 0)),
    ]
}

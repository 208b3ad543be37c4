//! Paths, methods and bodies (`agent-server-workspace-api` 2).

use reqwest::Method;
use serde_json::{Value, json};

use super::calls::{EVENTS, EXECUTE, SEARCH, START, execute_with, printed};
use crate::{
    Check,
    check::{Expect, Text, Want},
    server::Request,
};

const SPEC: &str = "agent-server-workspace-api 2";

fn not_allowed(methods: &str) -> Expect {
    Expect::detail(405, "Method Not Allowed").want(Want::Header("allow", Text::Is(methods.to_owned())))
}

fn moved(to: &str) -> Expect {
    Expect::status(307).want(Want::Header("location", Text::Ends(to.to_owned())))
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        Check::new("paths/unknown", "an unknown path is not found, with a key and without one", SPEC)
            .send(Request::get("/no/such"), Expect::detail(404, "Not Found"))
            .send(Request::get("/api/no/such"), Expect::detail(404, "Not Found"))
            .send(Request::get("/api/no/such").without_key(), Expect::detail(404, "Not Found")),
        Check::new("paths/wrong-method", "another method is refused with those that there are", SPEC)
            .send(Request::get(EXECUTE), not_allowed("POST"))
            .send(Request::new(Method::PUT, EXECUTE), not_allowed("POST"))
            .send(Request::new(Method::POST, SEARCH), not_allowed("GET"))
            .send(Request::new(Method::POST, "/health"), not_allowed("GET")),
        Check::new("paths/slash", "a slash too many or too few leads to the right path", SPEC)
            .send(Request::get("/health/"), moved("/health"))
            .send(Request::json(&format!("{EXECUTE}/"), &json!({"command": "true"})), moved(EXECUTE))
            .send(Request::get("/api/tools"), moved("/api/tools/")),
        Check::new("paths/slash-query", "the query goes along", SPEC)
            .send(Request::get(&format!("{SEARCH}/")).query("limit", "1"), moved(&format!("{SEARCH}?limit=1"))),
        Check::new("paths/headers", "headers of tracing and members that are unknown do not matter", SPEC).send(
            execute_with("echo hi", &json!({"unknown": [1]}))
                .header("traceparent", "00-00000000000000000000000000000001-0000000000000001-01")
                .header("baggage", "a=b")
                .header("x-openhands-observability-tags", "x"),
            printed("hi\n", "", 0),
        ),
    ];
    checks.extend(bodies());
    checks
}

/// A refusal of this member of the body, or of the whole of it.
fn refused(kind: &str, loc: Value) -> Expect {
    Expect::status(422).at("/detail/0/type", kind).at("/detail/0/loc", loc).want(Want::Present("/detail/0/msg"))
}

fn bodies() -> Vec<Check> {
    let command = || json!(["body", "command"]);
    let mut missing = Check::new("bodies/missing", "a body without a command is refused", SPEC);
    let mut types = Check::new("bodies/types", "what has another type is named", SPEC);
    let mut broken = Check::new("bodies/not-json", "a body that is no JSON, or no object, is refused", SPEC);
    for path in [EXECUTE, START] {
        missing = missing.send(Request::json(path, &json!({})), refused("missing", command()));
        for (name, body) in [
            ("command", json!({"command": 7})),
            ("command", json!({"command": null})),
            ("cwd", json!({"command": "true", "cwd": 7})),
            ("timeout", json!({"command": "true", "timeout": 1.5})),
            ("timeout", json!({"command": "true", "timeout": "soon"})),
            ("timeout", json!({"command": "true", "timeout": null})),
        ] {
            types =
                types.send(Request::json(path, &body), Expect::status(422).at("/detail/0/loc", json!(["body", name])));
        }
        for body in ["", "{", "[]", "\"echo hi\"", "null"] {
            broken = broken.send(Request::post(path, body), Expect::status(422).at("/detail/0/loc/0", "body"));
        }
    }
    vec![
        missing,
        types,
        broken,
        Check::new("bodies/several", "all that is wrong is told", SPEC).send(
            Request::json(EXECUTE, &json!({"cwd": 7, "timeout": "soon"})),
            Expect::status(422).want(Want::Present("/detail/2")).want(Want::Absent("/detail/3")),
        ),
        Check::new("bodies/number-in-a-text", "a whole number may be a text", SPEC)
            .send(Request::json(EXECUTE, &json!({"command": "true", "timeout": "5"})), printed("", "", 0))
            .send(Request::json(EXECUTE, &json!({"command": "true", "timeout": 5.0})), printed("", "", 0)),
        Check::new("bodies/events", "the ids of several events are a list of texts", SPEC)
            .send(several(r#"{"ids": []}"#), Expect::status(422))
            .send(several("[1]"), Expect::status(422))
            .send(several("[]"), Expect::whole(json!([]))),
    ]
}

fn several(body: &str) -> Request {
    Request { method: Method::GET, ..Request::post(&format!("{EVENTS}/"), body.to_owned()) }
}

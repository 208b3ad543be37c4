//! Numbers that nobody would send: in every numeric field of every route, taken from the server's own description and from
//! the recorded actions, so that a new field is covered the day it is described.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::common::{Server, request, run, within};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};

/// What stands in the place of a number, as JSON text.
const NUMBERS: [&str; 24] = [
    "0",
    "-0.0",
    "-1",
    "0.5",
    "1e-9",
    "5e-324",
    "-1e19",
    "1e9",
    "1e10",
    "1e19",
    "9.3e18",
    "1e308",
    "-1e308",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "\"NaN\"",
    "\"-Infinity\"",
];
/// What is no JSON at all, but is written by some.
const NO_JSON: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
/// Stands in a body until a number takes its place.
const PLACE: &str = "the place of a number";
/// Time for a server to answer, whatever it was sent before.
const ALIVE: Duration = Duration::from_secs(1);

/// One request with a place for a number.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    method: String,
    path: String,
    header: Option<String>,
    body: Option<String>,
}

/// A schema with its references resolved.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

fn is_number(schema: &Value) -> bool {
    let is = |kind: &Value| ["integer", "number"].iter().any(|name| kind == name);
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(is),
        kind => is(kind),
    }
}

/// A value that a field may have.
fn sample(document: &Value, name: &str, schema: &Value) -> Value {
    let schema = resolved(document, schema);
    if is_number(schema) {
        return json!(1);
    }
    match (name, schema["type"].as_str()) {
        ("command", _) => json!("true"),
        ("code", _) => json!("1"),
        ("path" | "from", _) => json!("file"),
        ("to", _) => json!("other"),
        (_, Some("array")) => json!([sample(document, "", &schema["items"])]),
        (_, Some("object")) => object(document, schema, None),
        (_, Some("boolean")) => json!(false),
        _ => json!("x"),
    }
}

/// An object with what it must have, and this field.
fn object(document: &Value, schema: &Value, with: Option<(&str, Value)>) -> Value {
    let mut fields = Map::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        fields.insert(name.to_owned(), sample(document, name, &schema["properties"][name]));
    }
    if let Some((name, value)) = with {
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

/// The cases of the description. `ids` are what stands for parts of paths.
fn described(document: &Value, ids: &dyn Fn(&str) -> String) -> Vec<Case> {
    let mut cases = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let method = method.to_uppercase();
            let mut filled = path.clone();
            for name in ["id", "name"] {
                filled = filled.replace(&format!("{{{name}}}"), &ids(path));
            }
            let body = operation.pointer("/requestBody/content/application~1json/schema");
            let schema = body.map(|schema| resolved(document, schema));
            let whole = schema.filter(|schema| schema["type"] == "object").map(|schema| object(document, schema, None));
            let parameters = operation["parameters"].as_array();
            for parameter in parameters.into_iter().flatten().filter(|parameter| is_number(&parameter["schema"])) {
                let name = parameter["name"].as_str().unwrap();
                let in_header = parameter["in"] == "header";
                let needed = if path.starts_with("/v1/files") { "path=.&" } else { "" };
                cases.push(Case {
                    name: format!("{method} {path}: {name}"),
                    method: method.clone(),
                    path: if in_header { filled.clone() } else { format!("{filled}?{needed}{name}={PLACE}") },
                    header: in_header.then(|| name.to_owned()),
                    body: whole.as_ref().map(Value::to_string),
                });
            }
            for (name, field) in schema.and_then(|schema| schema["properties"].as_object()).into_iter().flatten() {
                if is_number(resolved(document, field)) {
                    let body = object(document, schema.unwrap(), Some((name, json!(PLACE))));
                    cases.push(Case {
                        name: format!("{method} {path}: {name}"),
                        method: method.clone(),
                        path: filled.clone(),
                        header: None,
                        body: Some(body.to_string()),
                    });
                }
            }
        }
    }
    cases
}

/// The places of numbers in a value, as pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| places(field, &format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

/// The actions that are executed here, with all their numbers.
fn actions(file: &str) -> Vec<Case> {
    let all = [
        json!({"action": "run", "timeout": 1.5, "args": {"command": "true", "blocking": false}}),
        json!({"action": "run", "timeout": 1.5, "args": {"command": "true", "blocking": true}}),
        json!({"action": "run", "timeout": 1.5, "args": {"command": "true", "is_static": true}}),
        json!({"action": "run", "timeout": 1.5, "id": 1, "cause": 1, "args": {"command": "", "is_input": true}}),
        json!({"action": "run_ipython", "timeout": 1.5, "args": {"code": "1"}}),
        json!({"action": "read", "timeout": 1.5, "args": {"path": file, "start": 0, "end": -1, "view_range": [1, 2]}}),
        json!({"action": "read", "args": {"path": file, "impl_source": "oh_aci", "view_range": [1, 2]}}),
        json!({"action": "write", "args": {"path": file, "content": "a\nb", "start": 0, "end": -1}}),
        json!({"action": "edit", "args": {"path": file, "command": "view", "impl_source": "oh_aci", "view_range": [1, 2]}}),
        json!({"action": "edit", "args": {"path": file, "command": "insert", "impl_source": "oh_aci", "new_str": "n", "insert_line": 1}}),
        json!({"action": "edit", "args": {"path": file, "content": "c", "start": 1, "end": -1}}),
        json!({"action": "browse", "timeout": 1.5, "args": {"url": "http://127.0.0.1:9/"}}),
        json!({"action": "call_tool_mcp", "timeout": 1.5, "args": {"name": "x", "arguments": {"number": 1}}}),
    ];
    let mut cases = Vec::new();
    for action in all {
        let mut found = Vec::new();
        places(&action, "", &mut found);
        for place in found {
            let mut body = json!({"action": action});
            *body["action"].pointer_mut(&place).unwrap() = json!(PLACE);
            cases.push(Case {
                name: format!("{} {}: {place}", action["action"], action["args"]["command"]),
                method: "POST".to_owned(),
                path: "/execute_action".to_owned(),
                header: None,
                body: Some(body.to_string()),
            });
        }
    }
    cases
}

/// Sends a case. The status, and as much of the body as comes in a moment: a stream has no end.
async fn send(server: &Server, case: &Case, number: &str) -> (u16, String) {
    let plain = number.trim_matches('"');
    let path = case.path.replace(PLACE, &plain.replace('+', "%2B"));
    let body = case.body.as_ref().map_or(String::new(), |body| body.replace(&format!("\"{PLACE}\""), number));
    let mut request = request(&case.method, &path, body);
    if let Some(header) = &case.header {
        let name: http::HeaderName = header.to_lowercase().parse().unwrap();
        request.headers_mut().insert(name, plain.parse().unwrap());
    }
    let mut client = server.connect().await;
    let answer = tokio::time::timeout(Duration::from_secs(20), client.sender.send_request(request)).await;
    let Ok(answer) = answer else { panic!("{} {number}: no answer", case.name) };
    let (head, body) = answer.unwrap().into_parts();
    let body = tokio::time::timeout(Duration::from_millis(300), body.collect()).await;
    let body = body.map_or(Vec::new(), |body| body.map_or(Vec::new(), |body| body.to_bytes().to_vec()));
    (head.status.as_u16(), String::from_utf8_lossy(&body).into_owned())
}

/// The server answers, and a command runs at once.
async fn lives(server: &Server, context: &str) {
    let began = Instant::now();
    let both = async {
        assert_eq!(server.get("/alive").await.status, 200, "{context}");
        loop {
            let answer = server.post("/execute_action", run("echo well")).await.json();
            if answer["content"] == "well" {
                break;
            }
            // A command whose time was over at once may not have ended yet, and then nothing else is executed.
            let told = answer["extras"]["metadata"]["suffix"].as_str().unwrap_or_default();
            assert!(told.contains("is NOT executed"), "{context}: {answer}");
        }
    };
    let in_time = tokio::time::timeout(ALIVE * 10, both).await;
    assert!(in_time.is_ok() && began.elapsed() < ALIVE, "{context}: it took {:?}", began.elapsed());
}

async fn all(server: &Server, cases: Vec<Case>, of_wire: bool) {
    for case in cases {
        let in_json = case.body.as_ref().is_some_and(|body| body.contains(PLACE));
        let more = if in_json { NO_JSON.as_slice() } else { &[] };
        for number in NUMBERS.iter().chain(more) {
            let context = format!("{} = {number}", case.name);
            let (status, body) = send(server, &case, number).await;
            // An action that is refused is status 500 on that wire, with a text; our own defects have another one.
            let refused = of_wire && status == 500 && body.contains("\"detail\"");
            assert!((200..500).contains(&status) || refused, "{context}: {status} {body}");
            for word in ["defect", "panicked", "overflow when"] {
                assert!(!body.to_lowercase().contains(word), "{context}: {status} {body}");
            }
            lives(server, &context).await;
        }
    }
}

async fn document(server: &Server) -> Value {
    server.get("/openapi.json").await.json()
}

#[tokio::test]
async fn the_description_has_the_numeric_fields_that_are_known() {
    within(async {
        let server = Server::start().await;
        let cases = described(&document(&server).await, &|_| "x".to_owned());
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        for known in [
            "POST /v1/exec: timeout",
            "POST /v1/exec: Last-Event-ID",
            "GET /v1/exec/{id}/output: offset",
            "GET /v1/exec/{id}/output: max",
            "GET /v1/files/list: depth",
            "GET /v1/files/list: limit",
            "POST /v1/files/glob: limit",
            "POST /v1/files/grep: context",
            "POST /v1/terminals: columns",
            "POST /v1/terminals/{id}/resize: rows",
            "GET /v1/terminals/{id}/attach: offset",
            "POST /v1/kernels/{name}/execute: timeout",
        ] {
            assert!(names.contains(&known), "{known} is not among {names:?}");
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_number_in_any_field_of_the_native_api_holds_up_the_server_or_is_a_failure_of_it() {
    let server = Server::start().await;
    fs::write(server.directory.path().join("file"), "content").unwrap();
    let started = server.post("/v1/exec?follow=false", json!({"command": "echo one", "id": "known"}).to_string()).await;
    assert_eq!(started.status, 202, "{started:?}");
    let terminal = server.post("/v1/terminals", json!({"id": "known", "argv": ["cat"]}).to_string()).await;
    assert_eq!(terminal.status, 201, "{terminal:?}");
    let ids = |path: &str| if path.contains("/kernels/") { "default".to_owned() } else { "known".to_owned() };
    all(&server, described(&document(&server).await, &ids), false).await;
    tokio::time::timeout(Duration::from_secs(10), server.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_number_in_any_field_of_an_action_holds_up_the_server_or_is_a_failure_of_it() {
    let server = Server::start().await;
    let file = server.directory.path().join("file");
    fs::write(&file, "one\ntwo\nthree\n").unwrap();
    all(&server, actions(file.to_str().unwrap()), true).await;
    // Ending it is what a wedged session prevents.
    tokio::time::timeout(Duration::from_secs(10), server.stop()).await.unwrap();
}

#[tokio::test]
async fn ranges_and_modes_in_text_are_bounded_too() {
    within(async {
        let server = Server::start().await;
        fs::write(server.directory.path().join("file"), "content").unwrap();
        for range in [
            "bytes=0-18446744073709551615",
            "bytes=18446744073709551615-",
            "bytes=-18446744073709551615",
            "bytes=18446744073709551616-99999999999999999999999",
            "bytes=9223372036854775807-9223372036854775808",
            "bytes=-0",
            "bytes=1e3-",
        ] {
            let mut get = request("GET", "/v1/files/content?path=file", "");
            get.headers_mut().insert("range", range.parse().unwrap());
            let status = server.connect().await.request(get).await.status;
            assert!(status.is_success() || status == 416 || status == 400, "{range}: {status}");
            lives(&server, range).await;
        }
        for mode in ["-1", "10000", "77777777777", "37777777777", "1e3", "0x1ff", "NaN"] {
            let path = format!("/v1/files/content?path=new&mode={mode}");
            let status = server.connect().await.request(request("PUT", &path, "x")).await.status;
            assert_eq!(status, 400, "{mode}");
        }
        assert!(!server.directory.path().join("new").exists());
        server.stop().await;
    })
    .await;
}

//! Traces of a gateway, as a collector of OpenTelemetry gets them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    gateway::{KEY, Program},
    gateway_wire::request,
    support::gloveport,
};

type Got = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

/// A collector that keeps what it gets; its URL.
async fn collector() -> (String, Got) {
    let got = Got::default();
    let keep = async |State(got): State<Got>, headers: HeaderMap, body: Bytes| {
        got.lock().unwrap().push((headers, serde_json::from_slice(&body).unwrap()));
        "{}"
    };
    let routes = Router::new().route("/v1/traces", post(keep)).with_state(Arc::clone(&got));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, got)
}

/// The attributes of a span, as text.
fn attributes(span: &Value) -> BTreeMap<String, String> {
    let one = |entry: &Value| {
        let value = entry["value"].as_object().unwrap().values().next().unwrap();
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (entry["key"].as_str().unwrap().to_owned(), value)
    };
    span["attributes"].as_array().unwrap().iter().map(one).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_from_the_request_through_the_provider_to_the_sandbox() {
    let home = tempfile::tempdir().unwrap();
    let (url, got) = collector().await;
    let key = home.path().join("key");
    fs::write(&key, KEY).unwrap();
    let mut command = gloveport(home.path());
    command.args(["gateway", "--port", "0", "--key-file"]).arg(&key);
    command.env("XDG_STATE_HOME", home.path()).env_remove("XDG_RUNTIME_DIR").env("LOG_LEVEL", "info");
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=mine");
    let program = Program::start(command);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let _installed_before = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
    let asked = |request: reqwest::RequestBuilder| {
        let request = request.header("x-api-key", KEY).header("traceparent", parent);
        async move { request.send().await.unwrap() }
    };
    let post = |path: &str, body: Value| {
        let request = client.post(format!("{}{path}", program.url)).header("content-type", "application/json");
        asked(request.body(body.to_string()))
    };
    let get = |path: &str| asked(client.get(format!("{}{path}", program.url)));
    let sandbox = post("/start", json!({"session_id": "traced"})).await.text().await.unwrap();
    let sandbox: Value = serde_json::from_str(&sandbox).unwrap();
    let session_key = sandbox["session_api_key"].as_str().unwrap().to_owned();
    assert_eq!(get("/traced/alive").await.status(), 200);
    assert_eq!(get("/sessions/nobody").await.status(), 404);
    assert_eq!(post("/stop", json!({"runtime_id": "traced"})).await.status(), 200);
    // What is left is told at the end.
    let log = tokio::task::spawn_blocking(move || program.end()).await.unwrap();

    let told = got.lock().unwrap().clone();
    assert!(told.iter().all(|(headers, _)| headers["x-tenant"] == "mine"));
    let resource = &told[0].1["resourceSpans"][0]["resource"];
    assert_eq!(attributes(resource)["service.name"], "gloveport-gateway");
    let spans: Vec<Value> = told
        .iter()
        .flat_map(|(_, body)| body["resourceSpans"].as_array().unwrap().clone())
        .flat_map(|resource| resource["scopeSpans"].as_array().unwrap().clone())
        .flat_map(|scope| scope["spans"].as_array().unwrap().clone())
        .collect();
    let named = |name: &str| {
        spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("there is no span {name}: {spans:?}"))
    };
    // All of it is a part of the trace of the client.
    let started = named("POST /start");
    assert_eq!((&started["traceId"], &started["parentSpanId"]), (&json!(&parent[3..35]), &json!(&parent[36..52])));
    assert_eq!(attributes(started)["http.response.status_code"], "200");
    let created = named("local create");
    assert_eq!((&created["traceId"], &created["parentSpanId"]), (&started["traceId"], &started["spanId"]));
    assert_eq!(attributes(created)["about"], "traced");
    let asked = named("GET sandbox");
    let way = named("sandbox");
    assert_eq!(way["parentSpanId"], asked["spanId"]);
    assert_eq!(attributes(way)["sandbox.id"], "traced");
    assert_eq!(attributes(named("GET /sessions/{session_id}"))["http.response.status_code"], "404");
    // No key is in a trace, and no trace in the log.
    let all = format!("{spans:?}");
    assert!(!all.contains(KEY) && !all.contains(&session_key), "{all}");
    assert!(log.contains("answered") && !log.contains("otel."), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_or_endless_is_in_nobodys_way() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    fs::write(&key, KEY).unwrap();
    let mut command = gloveport(home.path());
    command.args(["gateway", "--port", "0", "--key-file"]).arg(&key);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let program = Program::start(command);
    let address = program.url.strip_prefix("http://").unwrap().parse().unwrap();
    for _ in 0..100 {
        assert_eq!(request(address, "GET /healthz", &[("Host", "a")]).await.status, 200);
    }
    tokio::task::spawn_blocking(move || program.end()).await.unwrap();
}

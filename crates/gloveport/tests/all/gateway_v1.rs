//! The native API of the gateway over real sandboxes of this machine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

mod events;
mod logs;
mod origins;
mod pages;
mod tenants;

use std::sync::Arc;

use gloveport_client::{Certificates, Pool};
use gloveport_gateway::GatewayOptions;
use gloveport_protocol::Secret;
use gloveport_provider::{ListFilter, Provider};
use serde_json::{Value, json};

use crate::{
    gateway::{KEY, Running},
    sandboxes::{Place, run},
};

impl Running {
    async fn v1(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        self.ask(method, &format!("/v1{path}"), Some(KEY), body).await
    }

    /// A sandbox that is made, by its id.
    async fn create(&self, body: Value) -> String {
        let (status, told) = self.v1("POST", "/sandboxes", Some(body)).await;
        assert_eq!(status, 201, "{told}");
        told["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_runtime_can_do_is_asked_for_by_the_native_api_and_told_as_it_is() {
    let running = Running::start().await;
    let (status, can) = running.v1("GET", "/capabilities", None).await;
    assert_eq!((status, &can["api"], &can["runtime"]), (200, &json!("v1"), &json!("local")));
    let can = &can["capabilities"];
    assert_eq!(
        [&can["labels"], &can["follow_logs"], &can["host_directories"]],
        [true, true, false].map(Value::from).each_ref()
    );

    let body = json!({
        "session_id": "abc", "environment": {"MINE": "yes"}, "secrets": {"TOKEN": "hunter2"}, "labels": {"team": "infra"},
        "ports": [{"name": "web"}], "ttl_seconds": 3600, "idle_seconds": 600, "workspace": "temporary",
        "resources": {"memory_bytes": 4_294_967_296_u64, "factor": 1}, "network": "full", "kept": true,
    });
    let (status, made) = running.v1("POST", "/sandboxes", Some(body.clone())).await;
    assert_eq!(status, 201, "{made}");
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(made["url"], format!("{}/{id}", running.url()));
    assert_eq!([&made["session_id"], &made["state"]], [&json!("abc"), &json!("running")]);
    assert_eq!((&made["labels"], &made["kept"]), (&json!({"team": "infra"}), &true.into()));
    let [created, expires] =
        ["created_at", "expires_at"].map(|name| made[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap());
    assert_eq!((expires.as_millisecond() - created.as_millisecond() + 500) / 1000, 3600);
    let web = made["ports"].as_array().unwrap().iter().find(|port| port["name"] == "web").unwrap();
    assert_eq!(web["url"], format!("{}/{id}/web", running.url()));
    assert!(!made.to_string().contains("hunter2"));

    // One session has one sandbox.
    let (status, told) = running.v1("POST", "/sandboxes", Some(body.clone())).await;
    assert_eq!((status, &told["error"]["code"]), (409, &json!("session_exists")), "{told}");
    let (status, same) = running.v1("POST", "/sandboxes?if_exists=return", Some(body)).await;
    assert_eq!((status, &same["id"], &same["session_api_key"]), (200, &made["id"], &made["session_api_key"]));
    let (status, found) = running.v1("GET", &format!("/sandboxes/{id}"), None).await;
    assert_eq!((status, &found), (200, &made));

    // What was asked for is what is there.
    let found = running.backend().find_session(&crate::sandboxes::session("abc")).await.unwrap().unwrap();
    assert_eq!(found.session_key.as_ref().map(Secret::expose), made["session_api_key"].as_str());
    let options = gloveport_hosting::WaitOptions { limit: crate::sandboxes::LIMIT, ..Default::default() };
    let silent = gloveport_provider::Progress::silent();
    let alive = gloveport_hosting::wait_until_alive(&running.backend(), found, &options, &silent).await.unwrap();
    assert_eq!(run(&alive, "echo $MINE $TOKEN").await, "yes hunter2");

    // Twice is no error.
    for (verb, state) in [("pause", "paused"), ("pause", "paused"), ("resume", "running"), ("resume", "running")] {
        let (status, told) = running.v1("POST", &format!("/sandboxes/{id}/{verb}"), None).await;
        assert_eq!((status, &told["state"]), (200, &json!(state)), "{verb} {told}");
    }
    for (verb, body, words) in [
        ("snapshot", json!({"name": "one"}), "snapshots"),
        ("fork", json!({"session_id": "other"}), "forks"),
        ("extend", json!({"ttl_seconds": 60}), "when a sandbox ends"),
    ] {
        let (status, told) = running.v1("POST", &format!("/sandboxes/{id}/{verb}"), Some(body)).await;
        assert_eq!((status, &told["error"]["code"]), (501, &json!("unsupported")), "{told}");
        assert!(told["error"]["message"].as_str().unwrap().contains(words), "{told}");
    }
    assert_eq!(running.v1("DELETE", &format!("/sandboxes/{id}"), None).await.0, 204);
    for (method, path) in
        [("DELETE", ""), ("GET", ""), ("POST", "/pause"), ("POST", "/resume"), ("GET", "/logs"), ("GET", "/events")]
    {
        let (status, told) = running.v1(method, &format!("/sandboxes/{id}{path}"), None).await;
        assert_eq!((status, &told["error"]["code"]), (404, &json!("not_found")), "{method} {path}");
    }
    // Without an id of a session, one is made.
    let (status, made) = running.v1("POST", "/sandboxes", Some(json!({}))).await;
    assert_eq!((status, made["session_id"].as_str().unwrap().len()), (201, 16));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_over_a_gateway_has_all_that_the_inner_one_can_do() {
    let inner = Running::start().await;
    let engine: Arc<dyn Provider> = Arc::new(inner.backend());
    engine.learn().await.unwrap();
    let outer = Running::start_on(Place::new(), engine, GatewayOptions::new(Secret::new(KEY))).await;
    let id = outer.create(json!({"session_id": "deep", "labels": {"team": "infra"}})).await;
    let mine = inner.create(json!({"session_id": "mine", "labels": {"team": "infra"}})).await;
    // The outer one has made one of both; the inner one has both.
    let (_, listed) = outer.v1("GET", "/sandboxes?label=team%3Dinfra", None).await;
    let told = &listed["sandboxes"][0];
    assert_eq!((listed["sandboxes"].as_array().unwrap().len(), &told["labels"]), (1, &json!({"team": "infra"})));
    assert_eq!(told["url"], format!("{}/{id}", outer.url()));
    let (_, listed) = inner.v1("GET", "/sandboxes?label=team%3Dinfra", None).await;
    assert_eq!(listed["sandboxes"].as_array().unwrap().len(), 2);
    assert_eq!(outer.v1("GET", &format!("/sandboxes/{mine}"), None).await.0, 404);
    let found = outer.backend().find_session(&crate::sandboxes::session("deep")).await.unwrap().unwrap();
    let options = gloveport_hosting::WaitOptions { limit: crate::sandboxes::LIMIT, ..Default::default() };
    let silent = gloveport_provider::Progress::silent();
    let alive = gloveport_hosting::wait_until_alive(&outer.backend(), found, &options, &silent).await.unwrap();
    assert_eq!(run(&alive, "echo through both").await, "through both");
    for (gateway, id) in [(&outer, &id), (&inner, &mine)] {
        assert_eq!(gateway.v1("DELETE", &format!("/sandboxes/{id}"), None).await.0, 204);
    }
    outer.end().await;
    inner.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_the_native_api_that_are_wrong_are_told_in_one_form_and_change_nothing() {
    let running = Running::start().await;
    let create = |body: Value| ("POST", "/sandboxes".to_owned(), Some(body));
    let get = |path: &str| ("GET", path.to_owned(), None);
    for ((method, path, body), status, code, words) in [
        (create(json!({"sesion_id": "a"})), 400, "invalid", "sesion_id"),
        (create(json!({"resources": {"cpu": 1}})), 400, "invalid", "`cpu`"),
        (create(json!({"ports": [{"name": "a", "host": 1}]})), 400, "invalid", "`host`"),
        (create(json!([])), 400, "invalid", "object"),
        (create(json!({"session_id": "../etc"})), 400, "invalid", "session"),
        (create(json!({"environment": {"A=B": "c"}})), 400, "invalid", "environment"),
        (create(json!({"labels": {"gloveport-tenant": "two"}})), 400, "invalid", "gloveport-tenant"),
        (create(json!({"labels": {"a": "b\nc"}})), 400, "invalid", "control characters"),
        (create(json!({"labels": {"": "b"}})), 400, "invalid", "name of a label"),
        (create(json!({"ports": [{"name": "../x"}]})), 400, "invalid", "name of a port"),
        (create(json!({"plugins": ["--evil"]})), 400, "invalid", "name of a plugin"),
        (create(json!({"ttl_seconds": 0})), 400, "invalid", "ttl_seconds"),
        (create(json!({"ttl_seconds": u64::MAX})), 400, "invalid", "ttl_seconds"),
        (create(json!({"session_api_key": "\u{e4}"})), 400, "invalid", "session_key"),
        (create(json!({"network": "closed"})), 400, "invalid", "closed"),
        (create(json!({"plugins": ["of-nobody"]})), 422, "start_failed", "of-nobody"),
        (create(json!({"workspace": "directory"})), 403, "forbidden", "temporary"),
        (create(json!({"image": "debian:13"})), 501, "unsupported", "an image"),
        (create(json!({"network": "none"})), 501, "unsupported", "a network policy"),
        (create(json!({"resources": {"cpus": 1.0}})), 501, "unsupported", "processors"),
        (create(json!({"resources": {"memory_bytes": 0}})), 400, "invalid", "limit of 0"),
        (("POST", "/sandboxes?if_exists=replace".to_owned(), Some(json!({}))), 400, "invalid", "if_exists"),
        (("POST", "/sandboxes?x=1".to_owned(), Some(json!({}))), 400, "invalid", "`x`"),
        (get("/sandboxes?state=sleeping"), 400, "invalid", "sleeping"),
        (get("/sandboxes?label=a%20b%3Dc"), 400, "invalid", "name of a label"),
        (get("/sandboxes?label=gloveport-tenant%3Dtwo"), 400, "invalid", "sets it itself"),
        (get("/sandboxes?limit=0"), 400, "invalid", "limit"),
        (get("/sandboxes?limit=501"), 400, "invalid", "limit"),
        (get("/sandboxes?created_after=yesterday"), 400, "invalid", "created_after"),
        (get("/sandboxes?cursor=%00"), 400, "invalid", "cursor"),
        (get("/sandboxes?cursor=a&cursor=b"), 400, "invalid", "more than once"),
        (get("/sandboxes/unknown"), 404, "not_found", "no such sandbox"),
        (get("/sandboxes/..%2F..%2Fx"), 404, "not_found", "no such sandbox"),
        (get("/sandboxes/%00"), 404, "not_found", "no such sandbox"),
        (get("/sandboxes/unknown/logs?tail=-1"), 400, "invalid", "tail"),
        (get("/nothing"), 404, "not_found", "openapi.json"),
        (("DELETE", "/sandboxes".to_owned(), None), 405, "method_not_allowed", "methods"),
    ] {
        let shown = format!("{method} {path} {body:?}");
        let (got, told) = running.v1(method, &path, body).await;
        assert_eq!((got, &told["error"]["code"]), (status, &json!(code)), "{shown}: {told}");
        assert!(told["error"]["message"].as_str().unwrap().contains(words), "{shown}: {told}");
        assert!(!told["error"]["request_id"].as_str().unwrap().is_empty(), "{shown}: {told}");
    }
    for path in ["/v1/sandboxes", "/v1/capabilities", "/v1/sandboxes/events", "/v1/sandboxes/a/logs"] {
        for key in [None, Some("a wrong key of nobody")] {
            let (status, told) = running.ask("GET", path, key, None).await;
            assert_eq!((status, &told["error"]["code"]), (401, &json!("unauthorized")), "{path}");
        }
    }
    // The id of a request is that of its answer.
    let pool = Pool::new(Certificates::Checked).unwrap();
    let url = format!("{}/v1/sandboxes/unknown", running.url());
    let answer = pool.http().get(url).header("X-API-Key", KEY).header("X-Request-ID", "mine-1").send().await.unwrap();
    let told: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(told["error"]["request_id"], "mine-1");
    assert!(running.engine.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap().is_empty());
    running.end().await;
}

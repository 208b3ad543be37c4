//! Tenants and the native API.

use gloveport_gateway_store::{AuditFilter, Limits};
use serde_json::{Value, json};

use crate::gateway_tenants::Tenants;

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_strangers_to_each_other_in_the_native_api_and_all_they_change_is_in_the_audit_log() {
    let tenants = Tenants::start(Limits::default()).await;
    let [one, two] = &tenants.keys;
    let body = json!({"session_id": "same", "labels": {"team": "infra"}});
    let mut ids = Vec::new();
    for key in [one, two] {
        let (status, told) = tenants.post(key, "/v1/sandboxes", body.clone()).await;
        assert_eq!((status, &told["session_id"]), (201, &json!("same")), "{told}");
        ids.push(told["id"].as_str().unwrap().to_owned());
        let (status, told) = tenants.post(key, "/v1/sandboxes", body.clone()).await;
        assert_eq!(status, 409, "{told}");
    }
    assert_ne!(ids[0], ids[1]);
    let theirs = format!("/v1/sandboxes/{}", ids[1]);
    let tries = [
        ("GET", "", None),
        ("DELETE", "", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/snapshot", Some(json!({"name": "x"}))),
        ("POST", "/fork", Some(json!({}))),
        ("POST", "/extend", Some(json!({"ttl_seconds": 60}))),
        ("GET", "/logs", None),
        ("GET", "/events", None),
    ];
    for (method, path, body) in tries {
        let (status, told) = tenants.ask(one, method, &format!("{theirs}{path}"), body.clone()).await;
        let (missing, of_nobody) = tenants.ask(one, method, &format!("/v1/sandboxes/nobody{path}"), body).await;
        assert_eq!((status, missing), (404, 404), "{method} {path} {told}");
        // What is another's is like what is not.
        assert_eq!(told["error"]["message"], of_nobody["error"]["message"], "{method} {path}");
    }
    for query in ["", "?label=team%3Dinfra", "?session_id=same", "?include_ended=true"] {
        let (_, listed) = tenants.ask(one, "GET", &format!("/v1/sandboxes{query}"), None).await;
        let listed: Vec<&Value> = listed["sandboxes"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(listed, [&json!(ids[0])], "{query}");
    }
    // The old API knows the same sandbox.
    let (_, told) = tenants.ask(one, "GET", "/sessions/same", None).await;
    assert_eq!(told["runtime_id"], json!(ids[0]));
    assert_eq!(tenants.ask(one, "DELETE", &format!("/v1/sandboxes/{}", ids[0]), None).await.0, 204);
    let filter = AuditFilter { tenant: Some("one".to_owned()), ..AuditFilter::default() };
    let lines = tenants.audit(15, filter).await;
    let told: Vec<(&str, &str)> = lines.iter().rev().map(|line| (line.action.as_str(), line.result.as_str())).collect();
    let (create, done) = ("sandbox create", "done");
    assert_eq!(told[..2], [(create, done), (create, "409")]);
    for action in
        ["sandbox delete", "sandbox pause", "sandbox resume", "sandbox snapshot", "sandbox fork", "sandbox extend"]
    {
        assert!(told.contains(&(action, "404")), "{action} {told:?}");
    }
    assert_eq!(told.last(), Some(&("sandbox delete", done)));
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_and_rules_hold_in_the_native_api() {
    const GIB: u64 = 1 << 30;
    let limits = Limits {
        running: Some(2),
        memory_bytes: Some(10 * GIB),
        largest_factor: Some(2),
        longest_life: Some(60),
        ..Limits::default()
    };
    let tenants = Tenants::start(limits).await;
    let one = &tenants.keys[0];
    let memory = |session: &str, bytes: u64| json!({"session_id": session, "resources": {"memory_bytes": bytes}, "ttl_seconds": 3600});
    // Two of the usual size are 8 GiB.
    let (status, told) = tenants.post(one, "/v1/sandboxes", memory("large", 9 * GIB)).await;
    assert_eq!((status, &told["error"]["code"]), (403, &json!("forbidden")), "{told}");
    let (status, told) = tenants.post(one, "/v1/sandboxes", json!({"resources": {"gpus": true}})).await;
    assert_eq!((status, &told["error"]["code"]), (403, &json!("forbidden")), "{told}");
    let (status, told) = tenants.post(one, "/v1/sandboxes", memory("a", 8 * GIB)).await;
    assert_eq!(status, 201, "{told}");
    let [created, expires] =
        ["created_at", "expires_at"].map(|it| told[it].as_str().unwrap().parse::<jiff::Timestamp>().unwrap());
    assert_eq!((expires.as_millisecond() - created.as_millisecond() + 500) / 1000, 60);
    assert_eq!(tenants.store.usage("one").await.unwrap().memory_bytes, 8 * GIB);
    let (status, told) = tenants.post(one, "/v1/sandboxes", json!({"session_id": "b"})).await;
    assert_eq!((status, &told["error"]["code"]), (429, &json!("quota_exceeded")), "{told}");
    assert!(told["error"]["message"].as_str().unwrap().contains("MiB of memory"), "{told}");
    // A small one counts for little.
    let (status, told) = tenants.post(one, "/v1/sandboxes", memory("b", GIB)).await;
    assert_eq!(status, 201, "{told}");
    tenants.running.end().await;
}

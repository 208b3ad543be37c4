//! Web pages of other origins, whose browsers ask before they send a key.

use gloveport_origins::Origins;
use serde_json::json;

use crate::{
    gateway::{KEY, Running},
    gateway_wire::{echoing, request},
};

const APP: &str = "https://app.example";
const ALLOWED: &str = "access-control-allow-origin";

fn allowing(origin: &str) -> Origins {
    Origins::new(&[origin.to_owned()]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_origins_that_were_named_for_a_gateway_use_its_native_api_and_its_sandboxes_with_their_keys() {
    let none = Running::start().await;
    let one = Running::with(|options| options.origins = allowing(APP)).await;
    let all = Running::with(|options| options.origins = allowing("*")).await;
    let mut made = Vec::new();
    for running in [&none, &one, &all] {
        let body = json!({"session_id": "box", "session_api_key": "s3cret", "ports": [{"name": "v1"}]});
        let (named_port, plain) = (running.create(body).await, echoing(running, "plain").await);
        made.push((named_port, plain.id.to_string(), plain.session_key.unwrap().expose().to_owned()));
    }
    for (at, origin, path, expected) in [
        (0, APP, "/v1/sandboxes", None),
        (0, APP, "/ID/v1/sandbox", None),
        (1, APP, "/v1/sandboxes", Some(APP)),
        (1, APP, "/v1/sandboxes/ID", Some(APP)),
        (1, APP, "/v1/capabilities", Some(APP)),
        (1, APP, "/ID/v1/sandbox", Some(APP)),
        (1, APP, "/ID/alive", Some(APP)),
        // A page reads that there is no such sandbox.
        (1, APP, "/gone/v1/sandbox", Some(APP)),
        (1, "https://evil.example", "/v1/sandboxes", None),
        (1, "https://evil.example", "/ID/v1/sandbox", None),
        (1, "null", "/v1/sandboxes", None),
        (2, "https://evil.example", "/v1/sandboxes", Some("*")),
        (2, "null", "/ID/v1/sandbox", Some("*")),
        // The interface of OpenHands, programs behind ports, whatever they are called, and what operators ask.
        (2, APP, "/list", None),
        (2, APP, "/ID/execute_action", None),
        (2, APP, "/ID/work-1/", None),
        (2, APP, "/ID/v1/ports/1/", None),
        (2, APP, "/PORT/v1/", None),
        (2, APP, "/healthz", None),
        (2, APP, "/metrics", None),
    ] {
        let (port, id, session_key) = &made[at];
        let running = [&none, &one, &all][at];
        let path = path.replace("ID", id).replace("PORT", port);
        let what = format!("{origin} {path} {expected:?}");
        let expected: Vec<_> = expected.into_iter().collect();
        let asks = [
            ("Host", "gateway"),
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "x-api-key"),
        ];
        let preflight = request(running.address, &format!("OPTIONS {path}"), &asks).await;
        assert_eq!(preflight.all(ALLOWED), expected, "{what}: {preflight:?}");
        assert!(expected.is_empty() || preflight.status == 200, "{what}: {preflight:?}");
        let sends = preflight.all("access-control-allow-headers");
        let key = if path.starts_with("/v1/") { "x-api-key, " } else { "x-session-api-key, " };
        assert!(expected.is_empty() || sends[0].starts_with(key), "{what}: {sends:?}");

        // A page reads why it is refused, and gets no further without the key.
        for (keys, has_key) in [(("X-None", ""), false), (("X-API-Key", KEY), true), (("Cookie", KEY), false)] {
            let session_key = if has_key { session_key.as_str() } else { "" };
            let headers = [("Host", "gateway"), ("Origin", origin), keys, ("X-Session-API-Key", session_key)];
            let answer = request(running.address, &format!("GET {path}"), &headers).await;
            assert_eq!(answer.all(ALLOWED), expected, "{what}: {answer:?}");
            assert!(answer.all("access-control-allow-credentials").is_empty(), "{what}: {answer:?}");
            assert_eq!(answer.all("access-control-expose-headers").len(), expected.len(), "{what}: {answer:?}");
            let is_open = expected.is_empty() || path.ends_with("/alive") || path.starts_with("/gone/");
            assert!(is_open || (answer.status == 200) == has_key, "{what}: {answer:?}");
        }
    }
    for running in [none, one, all] {
        running.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_with_a_host_of_its_own_lets_the_same_pages_ask_and_the_hosts_of_its_ports_do_not() {
    let running = Running::with(|options| {
        options.origins = allowing(APP);
        options.domain = Some("example.org".to_owned());
    })
    .await;
    running.create(json!({"session_id": "box", "session_api_key": "s3cret"})).await;
    let (_, listed) = running.v1("GET", "/sandboxes", None).await;
    let id = listed["sandboxes"][0]["id"].as_str().unwrap().to_owned();
    for (host, path, status, expected) in [
        (format!("{id}.example.org"), "/v1/sandbox", 200, Some(APP)),
        (format!("{id}.example.org"), "/execute_action", 404, None),
        (format!("work-1-{id}.example.org"), "/v1/sandbox", 502, None),
    ] {
        let headers = [("Host", host.as_str()), ("Origin", APP), ("X-Session-API-Key", "s3cret")];
        let answer = request(running.address, &format!("GET {path}"), &headers).await;
        assert_eq!(answer.all(ALLOWED), expected.into_iter().collect::<Vec<_>>(), "{host}{path}: {answer:?}");
        assert!(expected.is_none() || answer.status == status, "{host}{path}: {answer:?}");
        // The answer to one page is not kept for another one.
        assert_eq!(answer.all("vary").iter().any(|it| it.contains("origin")), expected.is_some(), "{answer:?}");
    }
    running.end().await;
}

//! A server of OpenHands' SDK 1.x that is told its settings later. What the program makes of them is tested by `tests/sdk`.

use std::{path::Path, time::Duration};

use gloveport_executor::{Executor, ExecutorOptions};
use gloveport_server::{
    AgentServerOptions, Deferred, DeferredSettings, ServerOptions, SessionKey, SettleError, Settled, Wire,
};
use serde_json::{Value, json};

use crate::{
    agent_server::{asked, next, socket},
    common::{Server, request, within},
};

const PATH: &str = "/api/init";
const KEY: (&str, &str) = ("x-init-api-key", "secret");

/// Variables that say what becomes of settings: `FAILS`, `REFUSED` and `SLOW`.
async fn settle(directory: std::path::PathBuf, settings: DeferredSettings) -> Result<Settled, SettleError> {
    let value =
        |name: &str| settings.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    if let Some(text) = value("FAILS") {
        return Err(SettleError::Failed(text));
    }
    if let Some(text) = value("REFUSED") {
        return Err(SettleError::Refused(text));
    }
    assert!(value("BREAKS").is_none(), "a defect");
    if value("SLOW").is_some() {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let mut tools = ExecutorOptions { has_shell: false, ..ExecutorOptions::inherited(directory.clone()) };
    tools.environment.extend(settings.environment.iter().map(|(name, value)| (name.into(), value.into())));
    let options = AgentServerOptions {
        shell: vec!["/bin/sh".into(), "-c".into()],
        events: settings.events.unwrap_or_else(|| directory.join("events")),
        retention: None,
        origins: settings.origins.unwrap_or_default(),
        agent: None,
        editor: None,
    };
    let executor = Executor::start(tools).await.map_err(|error| SettleError::Failed(error.to_string()))?;
    Ok(Settled { executor, keys: settings.session_keys.unwrap_or_default(), options })
}

async fn waiting(directory: &Path, key: Option<&str>) -> Server {
    let directory = directory.to_owned();
    let origins = vec!["https://early.example".to_owned()];
    let deferred =
        Deferred::new(key.map(SessionKey::new), origins, move |settings| Box::pin(settle(directory.clone(), settings)));
    Server::with(ServerOptions { wire: Wire::Deferred(deferred), ..ServerOptions::default() }).await
}

async fn state(server: &Server) -> Value {
    asked(server, "GET", PATH, &[], &Value::Null).await.json()
}

#[tokio::test]
async fn a_server_that_waits_says_that_it_lives_and_does_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let server = waiting(directory.path(), Some("secret")).await;
    for (method, path, status, text) in [
        ("GET", "/alive", 200, "ok"),
        ("GET", "/health", 200, "ok"),
        ("GET", "/ready", 200, "ready"),
        ("GET", "/server_info", 200, "uptime"),
        ("GET", PATH, 200, r#"{"state":"dormant","error":null}"#),
        ("POST", "/api/bash/execute_bash_command", 503, "state 'dormant'; call POST /api/init first"),
        ("GET", "/api/file/home", 503, "dormant"),
        ("GET", "/api/conversations", 503, "dormant"),
        ("POST", "/v1/chat/completions", 503, "dormant"),
        ("GET", "/nothing", 404, "Not Found"),
        ("PUT", PATH, 405, "Method Not Allowed"),
    ] {
        let answer = asked(&server, method, path, &[], &json!({"command": "true"})).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert!(answer.text().contains(text), "{method} {path}: {}", answer.text());
    }
    for path in ["/sockets/bash-events", "/sockets/events/x"] {
        let mut client = socket(&server, path, None).await.unwrap();
        assert_eq!(next(&mut client).await["close"], 1013, "{path}");
    }
    for (origin, expected) in [("https://early.example", true), ("http://evil.test", false)] {
        let answer = asked(&server, "GET", PATH, &[("origin", origin)], &Value::Null).await;
        assert_eq!(answer.header("access-control-allow-origin"), expected.then_some(origin));
    }
    server.stop().await;
}

#[tokio::test]
async fn the_settings_are_taken_once_from_whoever_has_the_secret() {
    let directory = tempfile::tempdir().unwrap();
    let server = waiting(directory.path(), Some("secret")).await;
    let settings = json!({"session_api_keys": ["one", "two"], "env": {"GREETING": "hello"},
        "allow_cors_origins": ["https://late.example"], "bash_events_dir": directory.path().join("told")});
    for headers in [vec![], vec![("x-init-api-key", "wrong")], vec![("x-session-api-key", "secret")]] {
        assert_eq!(asked(&server, "POST", PATH, &headers, &settings).await.status, 401, "{headers:?}");
    }
    for (body, text) in [
        (json!({"unknown": 1}), "extra_forbidden"),
        (json!({"session_api_keys": "one"}), "list_type"),
        (json!({"session_api_keys": [""]}), "session_api_keys cannot contain empty keys"),
        (json!({"env": {"REFUSED": "not these"}}), "not these"),
        (Value::Null, "Field required"),
    ] {
        let answer = asked(&server, "POST", PATH, &[KEY], &body).await;
        assert_eq!(answer.status, 422, "{body}: {}", answer.text());
        assert!(answer.text().contains(text), "{body}: {}", answer.text());
        assert_eq!(state(&server).await, json!({"state": "dormant", "error": null}), "{body}");
    }
    let mut large = request("POST", PATH, " ".repeat(1024 * 1024 + 1));
    large.headers_mut().insert(KEY.0, KEY.1.parse().unwrap());
    assert_eq!(server.connect().await.request(large).await.status, 413);
    let failed = asked(&server, "POST", PATH, &[KEY], &json!({"env": {"FAILS": "no disk"}})).await;
    assert_eq!((failed.status.as_u16(), failed.json()["exception"].as_str()), (500, Some("500: no disk")));
    assert_eq!(state(&server).await, json!({"state": "dormant", "error": "no disk"}));
    assert_eq!(asked(&server, "POST", PATH, &[KEY], &json!({"env": {"BREAKS": "1"}})).await.status, 500);

    let taken = asked(&server, "POST", PATH, &[KEY], &settings).await;
    assert_eq!((taken.status.as_u16(), taken.json()), (200, json!({"state": "ready", "error": null})));
    assert_eq!(state(&server).await["state"], "ready");
    let again = asked(&server, "POST", PATH, &[KEY], &settings).await;
    assert_eq!((again.status.as_u16(), again.json()["detail"].as_str()), (400, Some("server already in state: ready")));
    assert_eq!(asked(&server, "POST", PATH, &[], &settings).await.status, 401);

    let command = json!({"command": "echo $GREETING"});
    let run = "/api/bash/execute_bash_command";
    for key in ["one", "two"] {
        let answer = asked(&server, "POST", run, &[("x-session-api-key", key)], &command).await;
        assert_eq!(answer.json()["stdout"], "hello\n", "{key}");
    }
    for headers in [vec![], vec![("x-session-api-key", "secret")], vec![KEY]] {
        assert_eq!(asked(&server, "POST", run, &headers, &command).await.status, 401, "{headers:?}");
    }
    assert!(directory.path().join("told").is_dir());
    for (path, origin) in [(PATH, "https://late.example"), ("/api/file/home", "https://late.example")] {
        let answer = asked(&server, "GET", path, &[("origin", origin)], &Value::Null).await;
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin), "{path}");
    }
    let mut events = socket(&server, "/sockets/bash-events?session_api_key=one&resend_all=true", None).await.unwrap();
    assert_eq!(next(&mut events).await["command"], "echo $GREETING");
    server.stop().await;
}

#[tokio::test]
async fn settings_go_on_when_whoever_brought_them_is_gone_and_end_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = waiting(directory.path(), None).await;
    let body = json!({"session_api_keys": ["k"], "env": {"SLOW": "1"}}).to_string();
    let mut client = server.connect().await;
    let asked_first = client.sender.send_request(request("POST", PATH, body.clone()));
    assert!(tokio::time::timeout(Duration::from_millis(100), asked_first).await.is_err());
    drop(client);
    assert_eq!(state(&server).await["state"], "initializing");
    let second = server.post(PATH, body).await;
    assert_eq!(
        (second.status.as_u16(), second.json()["detail"].as_str()),
        (400, Some("server already in state: initializing"))
    );
    assert_eq!(server.get("/ready").await.status, 200);
    within(async {
        while state(&server).await["state"] != "ready" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let sleeps = json!({"command": "echo $$ > pid; exec sleep 1000"});
    let key = ("x-session-api-key", "k");
    assert_eq!(asked(&server, "POST", "/api/bash/start_bash_command", &[key], &sleeps).await.status, 200);
    let pid = directory.path().join("pid");
    within(async {
        while std::fs::read_to_string(&pid).unwrap_or_default().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let process = format!("/proc/{}", std::fs::read_to_string(pid).unwrap().trim());
    assert!(Path::new(&process).exists());
    server.stop().await;
    assert!(!Path::new(&process).exists(), "{process}");
}

#[tokio::test]
async fn without_a_secret_no_page_brings_settings() {
    let directory = tempfile::tempdir().unwrap();
    let server = waiting(directory.path(), None).await;
    let settings = json!({"session_api_keys": ["k"]});
    for headers in [
        vec![("origin", "http://evil.test")],
        vec![("sec-fetch-site", "cross-site")],
        vec![("host", "evil.test"), ("accept-language", "en")],
    ] {
        assert_eq!(asked(&server, "POST", PATH, &headers, &settings).await.status, 403, "{headers:?}");
    }
    assert_eq!(asked(&server, "POST", PATH, &[], &settings).await.status, 200);
    server.stop().await;
}

//! The API of the agent-server of OpenHands' SDK 1.x over HTTP. What the unmodified SDK makes of it is tested by `tests/sdk`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test programs stop at the first broken assumption")]

use std::{path::Path, time::Duration};

use crate::common::{Answer, Server, request, within};
use futures_util::{SinkExt as _, StreamExt as _};
use gloveport_server::{AgentServerOptions, ServerOptions, SessionKey, Wire};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _},
};

fn options(events: &Path, key: Option<&str>) -> ServerOptions {
    let wire = AgentServerOptions {
        shell: vec!["/bin/sh".into(), "-c".into()],
        events: events.to_owned(),
        retention: None,
        origins: vec!["https://allowed.example".to_owned()],
    };
    let other_keys = key.map(|_| SessionKey::new("other")).into_iter().collect();
    ServerOptions {
        session_key: key.map(SessionKey::new),
        other_keys,
        wire: Wire::AgentServer(wire),
        ..ServerOptions::default()
    }
}

async fn asked(server: &Server, method: &str, path: &str, headers: &[(&'static str, &str)], body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut asked = request(method, path, body);
    for (name, value) in headers {
        asked.headers_mut().insert(*name, value.parse().unwrap());
    }
    server.connect().await.request(asked).await
}

/// What somebody gets who asks for this.
async fn socket(server: &Server, path: &str, first: Option<Value>) -> Result<WebSocketStream<TcpStream>, Error> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
    let (mut socket, _) = client_async(request, stream).await?;
    if let Some(first) = first {
        socket.send(Message::text(first.to_string())).await?;
    }
    Ok(socket)
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        match within(socket.next()).await {
            Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
            Some(Ok(Message::Close(frame))) => return json!({"close": frame.map(|frame| u16::from(frame.code))}),
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn every_call_of_an_agent_server_needs_a_key_but_those_that_say_that_it_lives() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), Some("key"))).await;
    for path in ["/", "/alive", "/health", "/ready", "/server_info"] {
        assert_eq!(asked(&server, "GET", path, &[], &Value::Null).await.status, 200, "{path}");
    }
    for (method, path, open) in [
        ("POST", "/api/bash/start_bash_command", 422),
        ("POST", "/api/bash/execute_bash_command", 422),
        ("GET", "/api/bash/bash_events/search", 200),
        ("GET", "/api/bash/bash_events/", 422),
        ("GET", "/api/bash/bash_events/x", 404),
        ("DELETE", "/api/bash/bash_events", 200),
        ("POST", "/api/bash/bash_commands/x/stop", 422),
        ("POST", "/api/file/upload", 422),
        ("POST", "/api/file/upload//x/y", 422),
        ("GET", "/api/file/download", 422),
        ("GET", "/api/file/download//nothing/here", 404),
        ("POST", "/api/file/create_directory", 422),
        ("GET", "/api/file/home", 200),
        ("GET", "/api/file/search_subdirs", 422),
        ("GET", "/api/file/download-trajectory/x", 422),
        ("GET", "/api/git/changes", 422),
        ("GET", "/api/git/diff", 422),
        ("GET", "/api/git/commits", 422),
        ("GET", "/api/git/commits/xyz/changes", 422),
        ("POST", "/api/hooks", 422),
        ("GET", "/api/vscode/status", 200),
        ("GET", "/api/vscode/url", 503),
        ("GET", "/api/tools/", 200),
        ("POST", "/api/conversations", 501),
        ("GET", "/api/conversations/x/events/search", 501),
        ("POST", "/v1/chat/completions", 501),
    ] {
        for (key, status) in
            [(None, 401), (Some("KEY"), 401), (Some(""), 401), (Some("key"), open), (Some("other"), open)]
        {
            let headers: Vec<_> = key.into_iter().map(|key| ("x-session-api-key", key)).collect();
            let answer = asked(&server, method, path, &headers, &Value::Null).await;
            assert_eq!(answer.status, status, "{method} {path} {key:?}: {}", answer.text());
            if status == 401 {
                assert_eq!(answer.text(), r#"{"detail":"Unauthorized"}"#, "{method} {path}");
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn without_a_key_no_page_asks_an_agent_server() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    let command = json!({"command": "true"});
    for (headers, status) in [
        (vec![], 200),
        (vec![("origin", "http://evil.test")], 403),
        (vec![("sec-fetch-site", "cross-site")], 403),
        (vec![("host", "evil.test"), ("accept-language", "en")], 403),
    ] {
        let answer = asked(&server, "POST", "/api/bash/execute_bash_command", &headers, &command).await;
        assert_eq!(answer.status, status, "{headers:?}");
        assert_eq!(asked(&server, "GET", "/server_info", &headers, &Value::Null).await.status, status, "{headers:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_that_may_ask_are_told_so_and_need_the_key_all_the_same() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), Some("key"))).await;
    for (origin, is_allowed) in
        [("http://localhost:3000", true), ("https://allowed.example", true), ("http://evil.test", false)]
    {
        let asks = [("origin", origin), ("access-control-request-method", "POST")];
        let before = asked(&server, "OPTIONS", "/api/bash/start_bash_command", &asks, &Value::Null).await;
        assert_eq!(before.status, if is_allowed { 200 } else { 400 }, "{origin}");
        let headers = [("origin", origin), ("x-session-api-key", "key")];
        let search = "/api/bash/bash_events/search";
        for answer in [&before, &asked(&server, "GET", search, &headers, &Value::Null).await] {
            assert_eq!(answer.header("access-control-allow-origin"), is_allowed.then_some(origin));
        }
        assert_eq!(asked(&server, "GET", search, &headers[..1], &Value::Null).await.status, 401, "{origin}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_path_with_a_slash_more_leads_to_the_other_and_what_an_agent_has_says_so() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    for (method, path, status, text) in [
        ("GET", "/health/", 307, "/health"),
        ("GET", "/api/bash/bash_events/search/?limit=1", 307, "/api/bash/bash_events/search?limit=1"),
        ("GET", "//evil.test/health/", 404, "Not Found"),
        ("GET", "/api/nothing", 404, "Not Found"),
        ("GET", "/api/skills", 404, "a part of an agent"),
        ("PUT", "/health", 405, "GET"),
        ("GET", "/api/file/upload", 405, "POST"),
        ("GET", "/execute_action", 404, "Not Found"),
        ("GET", "/v1/files/list", 501, "no agent"),
    ] {
        let answer = asked(&server, method, path, &[], &Value::Null).await;
        let told = answer.header("location").or(answer.header("allow")).map_or_else(|| answer.text(), str::to_owned);
        assert_eq!(answer.status, status, "{method} {path}: {told}");
        assert!(told.contains(text), "{method} {path}: {told}");
    }
    server.stop().await;
}

#[tokio::test]
async fn events_come_over_a_socket_to_whoever_shows_the_key_in_one_of_three_ways() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), Some("key"))).await;
    let auth = |key: &str| Some(json!({"type": "auth", "session_api_key": key}));
    let path = "/sockets/bash-events";
    for (path, first) in [(format!("{path}?session_api_key=key"), None), (path.to_owned(), auth("other"))] {
        let mut client = socket(&server, &path, first).await.unwrap();
        for text in ["{", r#"{"command": 5}"#] {
            client.send(Message::text(text)).await.unwrap();
            assert_eq!(next(&mut client).await["kind"], "BashError", "{text}");
        }
        client.send(Message::text(r#"{"command": "echo here"}"#)).await.unwrap();
        assert_eq!(next(&mut client).await["command"], "echo here");
        let output = next(&mut client).await;
        assert_eq!((&output["stdout"], &output["exit_code"]), (&"here\n".into(), &0.into()));
    }
    let mut all = socket(&server, &format!("{path}?session_api_key=key&resend_mode=all"), None).await.unwrap();
    for kind in ["BashCommand", "BashOutput", "BashCommand", "BashOutput"] {
        assert_eq!(next(&mut all).await["kind"], kind);
    }
    for first in [auth("wrong"), Some(json!({"type": "other"})), Some(json!(5))] {
        let mut refused = socket(&server, path, first).await.unwrap();
        assert_eq!(next(&mut refused).await["close"], 4001);
    }
    let Err(Error::Http(refused)) = socket(&server, &format!("{path}?session_api_key=wrong"), None).await else {
        panic!()
    };
    assert_eq!(refused.status(), 403);
    let mut agent = socket(&server, "/sockets/events/x", auth("key")).await.unwrap();
    assert_eq!(next(&mut agent).await["close"], 4004);
    server.stop().await;
}

#[tokio::test]
async fn what_follows_events_is_bounded_and_a_slow_one_holds_up_nobody() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    let mut followers = Vec::new();
    for _ in 0..50 {
        followers.push(socket(&server, "/sockets/bash-events", None).await.unwrap());
    }
    let mut more = socket(&server, "/sockets/bash-events", None).await.unwrap();
    assert_eq!(next(&mut more).await["close"], 1013);
    let large = json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x", "timeout": 60});
    for _ in 0..2 {
        let answer = within(asked(&server, "POST", "/api/bash/execute_bash_command", &[], &large)).await;
        assert_eq!(answer.json()["stdout"].as_str().unwrap().len(), 3_000_000);
    }
    drop(followers);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut again = socket(&server, "/sockets/bash-events", None).await.unwrap();
    again.send(Message::text(r#"{"command": "true"}"#)).await.unwrap();
    assert_eq!(next(&mut again).await["kind"], "BashCommand");
    server.stop().await;
}

#[tokio::test]
async fn a_file_is_stored_whole_or_not_at_all_and_given_in_parts() {
    let events = tempfile::tempdir().unwrap();
    let server = Server::with(options(events.path(), None)).await;
    let file = server.directory.path().join("deep/file");
    let form = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n0123456789\r\n";
    for (body, status) in [(form.to_owned(), 400), (format!("{form}--b--\r\n"), 200)] {
        let mut upload = request("POST", &format!("/api/file/upload?path={}", file.display()), body);
        upload.headers_mut().insert("content-type", "multipart/form-data; boundary=b".parse().unwrap());
        let answer = server.connect().await.request(upload).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(file.exists(), status == 200);
    }
    let path = format!("/api/file/download?path={}", file.display());
    let part = asked(&server, "GET", &path, &[("range", "bytes=2-4")], &Value::Null).await;
    assert_eq!((part.status.as_u16(), part.text().as_str()), (206, "234"));
    assert_eq!(part.header("content-disposition"), Some("attachment; filename=\"file\""));
    let pipe = server.directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let path = format!("/api/file/download?path={}", pipe.display());
    assert_eq!(within(asked(&server, "GET", &path, &[], &Value::Null)).await.status, 400);
    server.stop().await;
}

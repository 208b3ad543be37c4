//! The MCP servers of a sandbox over HTTP: the stream of OpenHands 0.62, streamable HTTP, and who may use them.

#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use crate::common::{Answer, Server, request, within};
use bytes::Bytes;
use gloveport_server::{ServerOptions, SessionKey};
use gloveport_testing::MCP_SERVER;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

const KEY: &str = "s3cret";

fn keyed() -> ServerOptions {
    ServerOptions { session_key: Some(SessionKey::new(KEY)), ..ServerOptions::default() }
}

/// Configures servers that the test program is, each with a name and a mode.
async fn set(server: &Server, servers: &[(&str, &str)]) -> Answer {
    let script = server.directory.path().join("mcp_server.py");
    std::fs::write(&script, MCP_SERVER).unwrap();
    let list: Vec<Value> = servers
        .iter()
        .map(|(name, mode)| json!({"name": name, "command": "python3", "args": [script, name, mode]}))
        .collect();
    let mut update = request("POST", "/update_mcp_server", Value::from(list).to_string());
    update.headers_mut().insert("x-session-api-key", KEY.parse().unwrap());
    server.connect().await.request(update).await
}

fn keys(mut request: Request<Full<Bytes>>, header: bool, bearer: Option<&str>) -> Request<Full<Bytes>> {
    if header {
        request.headers_mut().insert("x-session-api-key", KEY.parse().unwrap());
    }
    if let Some(bearer) = bearer {
        request.headers_mut().insert("authorization", format!("Bearer {bearer}").parse().unwrap());
    }
    request
}

/// The next event of a stream: its name and its data.
async fn event(body: &mut Incoming, buffer: &mut String) -> (String, String) {
    loop {
        if let Some((event, rest)) = buffer.clone().split_once("\n\n") {
            rest.clone_into(buffer);
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let Some(data) = field("data: ") {
                return (field("event: ").unwrap_or_default(), data);
            }
            continue;
        }
        let frame = within(body.frame()).await.unwrap().unwrap();
        buffer.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
}

fn initialize(version: &str) -> Value {
    let info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn call(id: u32, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"text": "hi"}}})
}

#[tokio::test]
async fn a_client_of_openhands_calls_tools_over_a_stream_of_events() {
    within(async {
        let server = Server::with(keyed()).await;
        assert_eq!(set(&server, &[("a", ""), ("b", "")]).await.status, 200);
        let mut down = server.connect().await;
        let open = keys(request("GET", "/mcp/sse", Bytes::new()), true, Some(KEY));
        let response = down.sender.send_request(open).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (mut body, mut buffer) = (response.into_body(), String::new());
        let (name, endpoint) = event(&mut body, &mut buffer).await;
        assert_eq!(name, "endpoint");
        assert!(endpoint.starts_with("/mcp/messages/?session_id=") && !endpoint.contains('-'), "{endpoint}");
        let mut up = server.connect().await;
        for message in [
            initialize("2024-11-05"),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            call(1, "b_echo"),
        ] {
            let sent = up.request(keys(request("POST", &endpoint, message.to_string()), true, Some(KEY))).await;
            assert_eq!((sent.status.as_u16(), sent.text()), (202, "Accepted".to_owned()), "{message}");
        }
        let (name, greeting) = event(&mut body, &mut buffer).await;
        assert_eq!(name, "message");
        let greeting: Value = serde_json::from_str(&greeting).unwrap();
        assert_eq!((&greeting["id"], &greeting["result"]["protocolVersion"]), (&json!(0), &json!("2024-11-05")));
        let (_, answer) = event(&mut body, &mut buffer).await;
        let expected = json!({
            "content": [{"type": "text", "text": "b: hi"}],
            "isError": false,
            "structuredContent": {"a": 1},
            "x-unknown": [1],
        });
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["result"], expected);
        for (address, body, status) in [
            ("/mcp/messages/", "{}", 400),
            ("/mcp/messages/?session_id=", "{}", 400),
            ("/mcp/messages/?session_id=zz", "{}", 400),
            ("/mcp/messages/?session_id=00000000000000000000000000000000", "{}", 404),
            (endpoint.as_str(), "nonsense", 400),
            (endpoint.as_str(), "{\"jsonrpc\": \"2.0\"}", 400),
        ] {
            let answer = up.request(keys(request("POST", address, body), true, Some(KEY))).await;
            assert_eq!(answer.status.as_u16(), status, "{address} {body} {answer:?}");
        }
        drop((down, body));
        // Its stream was the session.
        loop {
            let late = keys(request("POST", &endpoint, call(2, "a_echo").to_string()), true, Some(KEY));
            if up.request(late).await.status == 404 {
                break;
            }
        }
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_of_today_calls_tools_over_streamable_http_with_one_key() {
    within(async {
        let server = Server::with(keyed()).await;
        set(&server, &[("a", "")]).await;
        let mut client = server.connect().await;
        let post = |message: &Value, session: Option<&str>| {
            let mut post = keys(request("POST", "/mcp/proxy", message.to_string()), false, Some(KEY));
            let headers = post.headers_mut();
            headers.insert("content-type", "application/json".parse().unwrap());
            headers.insert("accept", "application/json, text/event-stream".parse().unwrap());
            if let Some(session) = session {
                headers.insert("mcp-session-id", session.parse().unwrap());
                headers.insert("mcp-protocol-version", "2025-06-18".parse().unwrap());
            }
            post
        };
        let greeting = client.request(post(&initialize("2025-06-18"), None)).await;
        let session = greeting.header("mcp-session-id").unwrap().to_owned();
        assert!(greeting.text().contains("\"protocolVersion\":\"2025-06-18\""), "{greeting:?}");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.request(post(&ready, Some(&session))).await.status, 202);
        let answer = client.request(post(&call(1, "echo"), Some(&session))).await.text();
        assert!(answer.contains("a: hi") && answer.contains("\"structuredContent\":{\"a\":1}"), "{answer}");
        // Clients of older revisions take an event without data for a broken message.
        assert!(answer.lines().all(|line| line.trim() != "data:"), "{answer:?}");
        let mut leave = keys(request("DELETE", "/mcp/proxy", Bytes::new()), false, Some(KEY));
        leave.headers_mut().insert("mcp-session-id", session.parse().unwrap());
        assert_eq!(client.request(leave).await.status, 204);
        assert_eq!(client.request(post(&call(2, "echo"), Some(&session))).await.status, 404);
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn who_has_no_key_or_sends_a_page_is_not_let_in() {
    within(async {
        let server = Server::with(keyed()).await;
        let mut client = server.connect().await;
        let open = |path: &str| request("GET", path, Bytes::new());
        for path in ["/mcp/sse", "/mcp/messages/", "/mcp/proxy"] {
            // Before anything is configured there is nothing to ask for.
            assert_eq!(client.request(keys(open(path), true, Some(KEY))).await.status, 404, "{path}");
            assert_eq!(client.request(open(path)).await.status, 403, "{path}");
        }
        set(&server, &[("a", "")]).await;
        for (path, header, bearer, status) in [
            ("/mcp/sse", false, None, 403),
            ("/mcp/sse", false, Some(KEY), 403),
            ("/mcp/sse", true, None, 401),
            ("/mcp/sse", true, Some("wrong"), 401),
            ("/mcp/messages/", true, None, 401),
            ("/mcp/messages/", true, Some(KEY), 405),
            ("/mcp/proxy", false, None, 403),
            ("/mcp/proxy", false, Some("wrong"), 403),
            // The SDK wants to know what the client understands first.
            ("/mcp/proxy", false, Some(KEY), 406),
            ("/mcp/proxy", true, None, 406),
        ] {
            let answer = client.request(keys(open(path), header, bearer)).await;
            assert_eq!(answer.status.as_u16(), status, "{path} {header} {bearer:?}");
            if status == 401 {
                let expected = json!({"error": "invalid_token", "error_description": "Authentication required"});
                assert_eq!(answer.json(), expected);
                assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer "));
            }
        }
        server.stop().await;
        let open_server = Server::start().await;
        set(&open_server, &[("a", "")]).await;
        for (name, value) in [("origin", "http://evil.test"), ("host", "evil.test"), ("sec-fetch-site", "cross-site")] {
            for path in ["/mcp/sse", "/mcp/proxy"] {
                let mut asked = open(path);
                asked.headers_mut().insert(name, value.parse().unwrap());
                assert_eq!(open_server.connect().await.request(asked).await.status, 403, "{path} {name}");
            }
        }
        open_server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn readiness_tells_how_mcp_servers_stand_and_does_not_depend_on_them() {
    within(async {
        let server = Server::start().await;
        assert_eq!(server.get("/ready").await.json().get("mcp_servers"), None);
        let problems = set(&server, &[("a", ""), ("b", "broken")]).await;
        assert_eq!(problems.json()["router_error_log"], "");
        let mut client = server.connect().await;
        let response = client.sender.send_request(request("GET", "/mcp/sse", Bytes::new())).await.unwrap();
        let (mut body, mut buffer) = (response.into_body(), String::new());
        let (_, endpoint) = event(&mut body, &mut buffer).await;
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        for message in [initialize("2025-03-26"), ready, list] {
            server.post(&endpoint, message.to_string()).await;
        }
        let _greeting = event(&mut body, &mut buffer).await;
        let (_, answer) = event(&mut body, &mut buffer).await;
        assert!(answer.contains("a_echo") && !answer.contains("b_echo"), "{answer}");
        let readiness = server.get("/ready").await;
        assert_eq!(readiness.status, 200);
        let servers = &readiness.json()["mcp_servers"];
        assert_eq!((&servers[0]["name"], &servers[0]["state"]), (&json!("a"), &json!("ready")));
        assert_eq!((&servers[1]["name"], &servers[1]["state"]), (&json!("b"), &json!("failed")));
        assert!(servers[1]["reason"].as_str().unwrap().contains("cannot find my settings"), "{servers}");
        server.stop().await;
    })
    .await;
}

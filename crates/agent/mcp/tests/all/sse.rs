//! Servers that speak HTTP with server-sent events.

use std::time::Duration;

use gloveport_mcp_client::{Client, HttpServer, Server};
use gloveport_testing::{free_port, within};
use rmcp::model::JsonObject;
use serde_json::Value;

use crate::support::{Listening, connect, names, secret, text, try_everything};

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_works_over_server_sent_events() {
    let Some(server) = Listening::everything("sse").await else { return };
    let client = connect(&server.sse()).await;
    try_everything(&client).await;
    within(client.close()).await;
    assert!(client.is_closed());
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_read_however_they_are_written_and_endpoints_wherever_the_server_is() {
    for mode in ["plain", "redirect", "absolute"] {
        let server = Listening::bad(mode).await;
        let client = connect(&server.sse()).await;
        assert_eq!(names(&client).await, ["t", "u"], "{mode}");
        let called = within(client.call("t", JsonObject::new(), None)).await.unwrap();
        assert!(text(&called).starts_with("call "), "{mode}");
        within(client.close()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_none_says_so() {
    for (mode, expected) in [
        ("other-origin", "it wants messages sent to another server, http://localhost:1, which is refused"),
        ("no-endpoint", "its event stream ended before it said where to send messages"),
        ("no-stream", "it answers with `text/html` instead of an event stream"),
        ("redirect-elsewhere", "it answers with HTTP 307 Temporary Redirect instead of an event stream"),
        ("unauthorized", "lets nobody in without the right key: it answers with HTTP 401 Unauthorized"),
    ] {
        let server = Listening::bad(mode).await;
        let error = within(Client::connect(&server.sse())).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{mode}: {error}");
    }
    for (url, expected) in [
        ("ws://127.0.0.1/sse", "MCP has no transport over ws; its URL must begin with http:// or https://"),
        ("nonsense", "its URL must begin with http:// or https://"),
    ] {
        let error = within(Client::connect(&Server::Sse(HttpServer::new(url)))).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{url}: {error}");
    }
    let nobody = format!("http://user:pw@127.0.0.1:{}/sse?key=hidden", free_port());
    let error = within(Client::connect(&Server::Sse(HttpServer::new(nobody)))).await.unwrap_err().to_string();
    assert!(error.contains("/sse cannot be used: error sending request"), "{error}");
    assert!(!error.contains("hidden") && !error.contains("pw@"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_sent_with_every_message() {
    let server = Listening::bad("headers").await;
    let http = HttpServer::new(format!("http://127.0.0.1:{}/sse", server.port))
        .with_key(Some(&secret("sesame")))
        .with_conversation(Some("c-1"));
    let client = connect(&Server::Sse(http.clone())).await;
    let called = within(client.call("t", JsonObject::new(), None)).await.unwrap();
    let headers: Value = serde_json::from_str(text(&called)).unwrap();
    for (name, value) in [
        ("authorization", "Bearer sesame"),
        ("s", "sesame"),
        ("x-session-api-key", "sesame"),
        ("x-openhands-serverconversation-id", "c-1"),
    ] {
        assert_eq!(headers[name], value);
    }
    within(client.close()).await;
    let wrong = http.with_key(Some(&secret("line\nbreak")));
    let error = within(Client::connect(&Server::Sse(wrong))).await.unwrap_err().to_string();
    assert!(error.contains("the header `Authorization` has characters that HTTP does not allow"), "{error}");
    assert!(!error.contains("break"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_stream_a_refused_message_and_an_event_without_end_are_told() {
    for (mode, expected) in [
        ("lost", "is lost: its event stream ended"),
        ("refuses", "is lost: a message was refused with HTTP 503 Service Unavailable"),
        ("huge", "is lost: its event stream broke: body error: an event is larger than 64 MiB"),
    ] {
        let server = Listening::bad(mode).await;
        let client = connect(&server.sse()).await;
        let error = within(client.call("t", JsonObject::new(), Some(Duration::from_secs(50)))).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{mode}: {error}");
    }
}

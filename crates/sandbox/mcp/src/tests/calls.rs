//! Calls: their results, their progress, their cancellation, and what servers ask meanwhile.

use std::time::Duration;

use gloveport_testing::within;
use rmcp::{
    model::{CallToolRequest, CallToolRequestParams, ClientRequest},
    service::PeerRequestOptions,
};
use serde_json::{Value, json};

use super::{Place, text};
use crate::session::Session;

#[tokio::test]
async fn results_pass_as_their_servers_wrote_them() {
    let place = Place::new();
    place.set(&[("a", "chatty")]);
    let client = place.client().await;
    let result = client.call("echo", json!({"text": "hi"})).await.unwrap();
    assert_eq!(result.structured_content, Some(json!({"a": 1})));
    // Lines that are no messages went before.
    assert_eq!(text(&result), "a: hi");
    assert_eq!(client.text("big", json!({"bytes": 10_000_000})).await.len(), 10_000_000);
    // What the SDK does not know passes on the way that results go unread.
    let session = Session::new(&place.proxy);
    let live = place.proxy.all().await.remove(0).1.unwrap();
    let request = CallToolRequest::new(CallToolRequestParams::new("echo"));
    let sent = live.peer.send_request(ClientRequest::CallToolRequest(request)).await.unwrap();
    assert_eq!(serde_json::to_value(sent).unwrap()["x-unknown"], json!([1]));
    drop(session);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_call_alone() {
    let place = Place::new();
    place.set(&[("a", "")]);
    let client = place.client().await;
    let pid = client.text("pid", json!({})).await;
    let failure = client.failure("deep", json!({})).await;
    assert!(failure.contains("the answer of the server cannot be read: recursion limit exceeded"), "{failure}");
    assert_eq!(client.text("pid", json!({})).await, pid);
}

#[tokio::test]
async fn progress_comes_before_the_result_to_those_who_ask_for_it() {
    let place = Place::new();
    place.set(&[("a", "")]);
    let mut client = place.client().await;
    let mut params = CallToolRequestParams::new("steps");
    params.arguments = json!({"steps": 50}).as_object().cloned();
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let peer = client.service.peer().clone();
    let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    let token = handle.progress_token.clone();
    within(handle.await_response()).await.unwrap();
    for step in 1..=50 {
        let told = client.hear().await;
        assert_eq!(told[0], "progress");
        assert_eq!(told[1]["progress"].as_f64(), Some(f64::from(step)));
        assert_eq!(told[1]["progressToken"], serde_json::to_value(&token).unwrap());
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_its_server() {
    let place = Place::new();
    place.set(&[("a", "")]);
    let mut client = place.client().await;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("wait")));
    let peer = client.service.peer().clone();
    let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    assert_eq!(client.hear().await, json!(["log", "waiting"]));
    handle.cancel(Some("enough".to_owned())).await.unwrap();
    assert_eq!(client.hear().await, json!(["log", "cancelled"]));
}

#[tokio::test]
async fn calls_of_a_client_that_leaves_are_cancelled() {
    let place = Place::new();
    place.set(&[("a", "")]);
    let client = place.client().await;
    let mut other = place.client().await;
    other.service.peer().list_all_tools().await.unwrap();
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("wait")));
    let sent = client.service.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    assert_eq!(other.hear().await, json!(["log", "waiting"]));
    drop((sent, client));
    assert_eq!(other.hear().await, json!(["log", "cancelled"]));
}

#[tokio::test]
async fn a_server_asks_the_client_that_called_it() {
    let place = Place::new();
    place.set(&[("a", "")]);
    let client = place.client().await;
    let answer: Value = serde_json::from_str(&client.text("ask", json!({})).await).unwrap();
    assert_eq!(answer["content"]["text"], "an answer", "{answer}");
}

#[tokio::test]
async fn calls_beside_a_slow_one_do_not_wait_for_it() {
    let place = Place::new();
    place.set(&[("a", ""), ("b", "")]);
    let client = place.client().await;
    let peer = client.service.peer().clone();
    let mut params = CallToolRequestParams::new("a_sleep");
    params.arguments = json!({"seconds": 60}).as_object().cloned();
    let slow = tokio::spawn(async move { peer.call_tool(params).await });
    for tool in ["a_echo", "b_echo"] {
        client.text(tool, json!({"text": 1})).await;
    }
    assert!(!slow.is_finished());
    tokio::time::timeout(Duration::ZERO, slow).await.unwrap_err();
}

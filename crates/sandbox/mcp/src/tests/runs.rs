//! Servers as programs: their start, their surroundings, their failures, their end.

use std::{collections::BTreeMap, time::Duration};

use gloveport_testing::{is_alive, until, within};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::json;

use super::{Place, entry};
use crate::{
    proxy::Waits,
    server::{ServerState, ServerStatus},
};

fn states(statuses: &[ServerStatus]) -> Vec<(&str, &ServerState)> {
    statuses.iter().map(|status| (&*status.name, &status.state)).collect()
}

/// Waits until a process is gone.
async fn ended(pid: &str) {
    let pid = pid.parse().unwrap();
    until("a server is gone", || !is_alive(pid)).await;
}

#[tokio::test]
async fn a_server_is_started_by_its_first_use_with_an_environment_of_its_own() {
    let place = Place::new();
    place.set(&[("a", "")]);
    assert_eq!(states(&place.proxy.statuses()), [("a", &ServerState::Idle)]);
    let client = place.client().await;
    let environment: BTreeMap<String, String> = serde_json::from_str(&client.text("env", json!({})).await).unwrap();
    assert_eq!(states(&place.proxy.statuses()), [("a", &ServerState::Ready)]);
    assert_eq!(environment["OWN"], "x");
    assert_eq!(environment["cwd"], place.directory.path().canonicalize().unwrap().to_str().unwrap());
    assert!(environment.contains_key("PATH") && !environment.contains_key("SESSION_API_KEY"), "{environment:?}");
    let pid = client.text("pid", json!({})).await;
    within(place.proxy.stop()).await;
    ended(&pid).await;
    assert!(place.proxy.is_empty());
}

#[tokio::test]
async fn a_new_list_keeps_servers_that_stay_and_lets_the_others_finish() {
    let place = Place::new();
    place.set(&[("a", ""), ("b", "")]);
    let client = place.client().await;
    let (a, b) = (client.text("a_pid", json!({})).await, client.text("b_pid", json!({})).await);
    let peer = client.service.peer().clone();
    let mut params = CallToolRequestParams::new("a_sleep");
    params.arguments = json!({"seconds": 2}).as_object().cloned();
    let slow = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let slow = peer.send_cancellable_request(slow, rmcp::service::PeerRequestOptions::no_options()).await.unwrap();
    // The call is on its way: this one was answered after it.
    client.text("a_echo", json!({})).await;
    place.set(&[("b", "")]);
    assert_eq!(client.text("pid", json!({})).await, b);
    let slept = within(slow.await_response()).await.unwrap();
    assert_eq!(serde_json::to_value(slept).unwrap()["content"][0]["text"], "slept");
    ended(&a).await;
    // Other arguments make another server.
    place.set(&[("b", "chatty")]);
    assert_ne!(client.text("pid", json!({})).await, b);
    ended(&b).await;
    // Whoever has found a server just before is told at once that it is gone.
    place.set(&[("b", ""), ("c", "")]);
    let found = place.proxy.servers();
    place.proxy.update(Vec::new());
    assert!(place.proxy.is_empty());
    let gone = within(found[1].live(Duration::from_hours(1))).await.unwrap_err();
    assert_eq!(gone.to_string(), "the MCP server c is not configured any more");
}

#[tokio::test]
async fn a_server_that_cannot_be_used_says_why_and_others_are_listed() {
    let waits = Waits { start: Duration::from_secs(8), list: Duration::from_secs(30), ..Waits::default() };
    let place = Place::with(waits);
    let mut entries: Vec<_> =
        ["good", "broken", "silent"].map(|mode| entry(&place.script(), mode, mode)).into_iter().collect();
    entries.push(gloveport_protocol::McpServerEntry { command: "no-such-program".into(), ..entries[0].clone() });
    entries.last_mut().unwrap().name = "missing".into();
    assert_eq!(place.proxy.update(entries), ["missing: `no-such-program` is not installed in the sandbox"]);
    let client = place.client().await;
    let tools = within(client.service.peer().list_all_tools()).await.unwrap();
    assert!(tools.iter().all(|tool| tool.name.starts_with("good_")) && tools.len() == 2, "{tools:?}");
    for (server, expected) in [
        (
            "broken",
            "cannot be used: it ended with status 7 before it answered `initialize`. The last of its output:\n  cannot find my settings; it can be tried again in",
        ),
        ("missing", "cannot be used: `no-such-program` is not installed in the sandbox; it can be tried again in"),
        ("silent", "cannot be used: it did not answer `initialize` within 8 s"),
    ] {
        let failure = client.failure(&format!("{server}_echo"), json!({})).await;
        assert!(failure.contains(expected), "{failure}");
    }
    let statuses = place.proxy.statuses();
    let failed = statuses.iter().filter(|status| matches!(status.state, ServerState::Failed { .. })).count();
    assert_eq!(failed, 3, "{statuses:?}");
    place.set(&[("only", "broken")]);
    let failure = within(client.service.peer().list_all_tools()).await.unwrap_err().to_string();
    assert!(failure.contains("the MCP server only cannot be used"), "{failure}");
}

#[tokio::test]
async fn a_server_that_dies_is_named_and_started_again_by_the_next_call() {
    let place = Place::new();
    place.set(&[("a", "")]);
    let client = place.client().await;
    let pid = client.text("pid", json!({})).await;
    let failure = client.failure("die", json!({})).await;
    let expected = "the MCP server a did not answer: it ended with status 3. The last of its output:\n  its last words. The next call starts it again";
    assert_eq!(failure, expected);
    assert_ne!(client.text("pid", json!({})).await, pid);
}

#[tokio::test]
async fn a_server_that_asks_and_does_not_read_the_answers_is_ended() {
    let place = Place::new();
    place.set(&[("a", "")]);
    let client = place.client().await;
    let failure = client.failure("nag", json!({})).await;
    assert!(failure.contains("did not answer: it did not read the answers to 256 questions"), "{failure}");
    assert_eq!(client.text("echo", json!({"text": 1})).await, "a: 1");
}

#[tokio::test]
async fn a_server_that_never_ends_its_message_is_ended() {
    let place = Place::new();
    place.set(&[("a", "")]);
    let client = place.client().await;
    let pid = client.text("pid", json!({})).await;
    let failure = client.failure("endless", json!({})).await;
    assert!(failure.contains("did not answer: it sent a message of more than 64 MiB"), "{failure}");
    ended(&pid).await;
    assert_ne!(client.text("pid", json!({})).await, pid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_calls_at_once_lose_nothing_beside_a_server_that_is_killed_again_and_again() {
    let place = Place::new();
    place.set(&[("a", ""), ("b", ""), ("c", ""), ("d", ""), ("e", "")]);
    let client = place.client().await;
    let peer = client.service.peer();
    let work = futures_util::future::join_all((0..50).map(|worker| {
        let peer = peer.clone();
        async move {
            let server = ["a", "b", "c", "d", "e"][worker % 5];
            let mut lost = Vec::new();
            for call in 0..40 {
                let mut params = CallToolRequestParams::new(format!("{server}_echo"));
                params.arguments = json!({"text": call}).as_object().cloned();
                match peer.call_tool(params).await {
                    Ok(result) => assert_eq!(super::text(&result), format!("{server}: {call}")),
                    Err(error) => lost.push((server, error.to_string())),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            lost
        }
    }));
    let kills = async {
        for _ in 0..3 {
            let pid = client.text("e_pid", json!({})).await.parse().unwrap();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let (lost, ()) = within(Box::pin(async { tokio::join!(work, kills) })).await;
    let lost: Vec<_> = lost.into_iter().flatten().collect();
    assert!(lost.iter().all(|(server, _)| *server == "e"), "{lost:?}");
    assert!(lost.iter().all(|(_, error)| error.contains("it was ended by signal 9")), "{lost:?}");
}

use std::{collections::BTreeMap, sync::Arc};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, response::IntoResponse, routing::post};
use gloveport_protocol::{Action, EventSource, RunAction};
use tokio::{net::TcpListener, sync::Mutex};

use super::*;
use crate::analyzer::NoHistory;

/// What the monitor answers, and what it was asked.
#[derive(Clone)]
struct Monitor {
    status: u16,
    answer: String,
    delay: Duration,
    asked: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

async fn monitor(State(monitor): State<Monitor>, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    monitor.asked.lock().await.push((headers, serde_json::from_slice(&body).unwrap()));
    tokio::time::sleep(monitor.delay).await;
    (axum::http::StatusCode::from_u16(monitor.status).unwrap(), monitor.answer)
}

async fn serve(status: u16, answer: &str, delay: Duration) -> (GraySwan, Monitor) {
    let state = Monitor { status, answer: answer.to_owned(), delay, asked: Arc::default() };
    let app = Router::new().route("/cygnal/monitor", post(monitor)).with_state(state.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/cygnal/monitor", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let options = AnalyzerOptions {
        environment: BTreeMap::from([("GRAYSWAN_API_KEY".to_owned(), Secret::new("the-key"))]),
        grayswan_endpoint: Some(endpoint),
        ..AnalyzerOptions::default()
    };
    (GraySwan::new(&options).unwrap().with_limit(Duration::from_secs(5)), state)
}

fn model_response(arguments: &str) -> Value {
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "execute_bash", "arguments": arguments}});
    let message = json!({"role": "assistant", "content": "let me", "tool_calls": [call]});
    json!({"function_name": "execute_bash", "tool_call_id": "call_1", "total_calls_in_response": 1,
        "model_response": {"id": "x", "choices": [{"message": message}]}})
}

fn event(value: Value) -> Event {
    Event::from_value(value).unwrap()
}

fn run() -> ActionEvent {
    ActionEvent {
        source: Some(EventSource::Agent),
        tool_call_metadata: Some(model_response(r#"{"command": "ls", "security_risk": "LOW"}"#)),
        ..Action::Run(RunAction::new("ls")).into()
    }
}

struct Events(Vec<Event>);

impl History for Events {
    fn latest(&self, count: usize) -> BoxFuture<'_, Vec<Event>> {
        assert_eq!(count, 20);
        Box::pin(async { self.0.clone() })
    }
}

#[tokio::test]
async fn the_conversation_is_sent_as_a_chat_with_key_and_policy() {
    let (analyzer, monitor) = serve(200, r#"{"output": {"data": {"violation": 0.5}}}"#, Duration::ZERO).await;
    let history = Events(vec![event(json!({"action": "message", "source": "user", "args": {"content": "list"}}))]);
    let assessment = analyzer.assess(&run(), &history).await.unwrap();
    assert_eq!(assessment, Assessment::of(SecurityRisk::Medium));
    let asked = monitor.asked.lock().await;
    let [(headers, body)] = asked.as_slice() else { panic!("asked {} times", asked.len()) };
    assert_eq!(headers["authorization"], "Bearer the-key");
    assert_eq!(headers["x-grayswan-api-key"], "the-key");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(
        *body,
        json!({"policy_id": "689ca4885af3538a39b2ba04", "messages": [
            {"role": "user", "content": "list"},
            {"role": "assistant", "content": "let me", "tool_calls": [{"id": "call_1", "type": "function",
                "function": {"name": "execute_bash", "arguments": r#"{"command":"ls"}"#}}]},
        ]})
    );
}

#[tokio::test]
async fn every_answer_has_its_risk() {
    use SecurityRisk::{High, Low, Medium};
    let rows = [
        (r#"{"output": {"data": {"violation": 0.0}}}"#, Some(Low)),
        (r#"{"output": {"data": {"violation": 0.3}}}"#, Some(Low)),
        (r#"{"output": {"data": {"violation": 0.31}}}"#, Some(Medium)),
        (r#"{"output": {"data": {"violation": 0.7}}}"#, Some(Medium)),
        (r#"{"output": {"data": {"violation": 0.9}}}"#, Some(High)),
        (r#"{"output": {"data": {"violation": 1}}}"#, Some(High)),
        (r#"{"output": {"data": {}}}"#, Some(Low)),
        (r#"{"output": {}}"#, Some(Low)),
        ("{}", Some(Low)),
        (r#"{"ipi": true}"#, Some(High)),
        (r#"{"ipi": false}"#, Some(Low)),
        (r#"{"ipi": true, "output": {"data": {"violation": 0.1}}}"#, Some(High)),
        (r#"{"output": {"data": {"violation": "0.9"}}}"#, None),
        (r#"{"output": {"data": {"violation": null}}}"#, None),
        (r#"{"output": null}"#, None),
        ("[]", None),
        ("no JSON", None),
        ("", None),
    ];
    for (answer, expected) in rows {
        let (analyzer, _) = serve(200, answer, Duration::ZERO).await;
        let risk = analyzer.assess(&run(), &NoHistory).await.ok().map(|assessment| assessment.risk);
        assert_eq!(risk, expected, "{answer}");
    }
}

#[tokio::test]
async fn failures_are_errors_that_name_neither_key_nor_conversation() {
    let (analyzer, _) = serve(500, "{}", Duration::ZERO).await;
    let status = analyzer.assess(&run(), &NoHistory).await.unwrap_err();
    assert!(matches!(status, AnalyzerError::Status { status: 500, .. }), "{status}");

    let (analyzer, _) = serve(200, "{}", Duration::from_mins(1)).await;
    let slow = analyzer.with_limit(Duration::from_millis(50)).assess(&run(), &NoHistory).await.unwrap_err();
    assert!(matches!(slow, AnalyzerError::Silent { .. }), "{slow}");

    let (analyzer, _) = serve(200, &"x".repeat(2 * 1024 * 1024), Duration::ZERO).await;
    let long = analyzer.assess(&run(), &NoHistory).await.unwrap_err();
    assert!(matches!(long, AnalyzerError::Answer { reason: "it is too long", .. }), "{long}");

    let (analyzer, _) = serve(200, "{}", Duration::ZERO).await;
    let nowhere = GraySwan { endpoint: "http://127.0.0.1:1/x".to_owned(), ..analyzer };
    let unreachable = nowhere.assess(&run(), &NoHistory).await.unwrap_err();
    assert!(matches!(unreachable, AnalyzerError::Unreachable { .. }), "{unreachable}");

    let without = ActionEvent::from(Action::Run(RunAction::new("ls")));
    let nothing = nowhere.assess(&without, &NoHistory).await.unwrap_err();
    assert!(matches!(nothing, AnalyzerError::NoMessages), "{nothing}");

    for text in [status, slow, long, unreachable, nothing].map(|error| format!("{error} {error:?}")) {
        assert!(!text.contains("the-key") && !text.contains("let me"), "{text}");
    }
    assert!(!format!("{nowhere:?}").contains("the-key"));
}

/// What the reference makes of each event.
#[test]
fn every_event_becomes_the_message_of_the_reference() {
    let metadata = model_response(r#"{"command": "ls", "security_risk": "LOW"}"#);
    let called = json!({"role": "assistant", "content": "let me", "tool_calls": [{"id": "call_1", "type": "function",
        "function": {"name": "execute_bash", "arguments": r#"{"command":"ls"}"#}}]});
    let action = |kind: &str, source: &str, args: Value, metadata: &Value| {
        event(json!({"action": kind, "source": source, "args": args, "tool_call_metadata": metadata}))
    };
    let observation = |kind: &str, source: &str, extras: Value, metadata: &Value| {
        event(json!({"observation": kind, "source": source, "content": "out", "extras": extras,
            "tool_call_metadata": metadata}))
    };
    let none = Value::Null;
    let result = json!({"role": "tool", "content": "out", "tool_call_id": "call_1"});
    let mut empty = metadata.clone();
    empty["model_response"]["choices"] = json!([]);
    let mut silent = metadata.clone();
    silent["model_response"]["choices"][0]["message"]["content"] = Value::Null;
    let mut silent_call = called.clone();
    silent_call["content"] = Value::Null;
    let strange = model_response("no JSON");
    let mut strange_call = called.clone();
    strange_call["tool_calls"][0]["function"]["arguments"] = json!("no JSON");
    let said = json!({"content": "hi"});
    let command = json!({"command": "ls"});
    let rows = vec![
        (action("message", "user", said.clone(), &none), Some(json!({"role": "user", "content": "hi"}))),
        (action("message", "agent", said.clone(), &metadata), Some(json!({"role": "assistant", "content": "hi"}))),
        (action("message", "environment", said.clone(), &none), None),
        (action("system", "agent", said, &none), Some(json!({"role": "system", "content": "hi"}))),
        (action("run", "agent", command.clone(), &metadata), Some(called.clone())),
        (action("run", "agent", command.clone(), &silent), Some(silent_call)),
        (action("run", "agent", command.clone(), &strange), Some(strange_call)),
        (action("run", "agent", command.clone(), &empty), None),
        (action("run", "agent", command.clone(), &none), None),
        (action("run", "user", command.clone(), &metadata), None),
        (action("finish", "agent", json!({}), &metadata), Some(called)),
        (action("think", "agent", json!({"thought": "hm"}), &none), None),
        (action("task_tracking", "agent", json!({}), &metadata), None),
        (action("recall", "user", json!({"recall_type": "knowledge"}), &none), None),
        (action("change_agent_state", "agent", json!({"agent_state": "running"}), &none), None),
        (observation("run", "agent", command.clone(), &metadata), Some(result.clone())),
        (observation("read", "agent", json!({"path": "/a"}), &metadata), Some(result.clone())),
        (observation("mcp", "agent", json!({}), &metadata), Some(result)),
        (observation("run", "environment", command.clone(), &metadata), None),
        (observation("run", "agent", command, &none), None),
        (observation("error", "agent", json!({}), &metadata), None),
        (observation("think", "agent", json!({}), &metadata), None),
        (observation("agent_state_changed", "agent", json!({"agent_state": "running"}), &none), None),
    ];
    for (event, expected) in rows {
        let messages = messages::convert(std::slice::from_ref(&event));
        assert_eq!(messages, expected.into_iter().collect::<Vec<_>>(), "{}", event.kind());
    }
}

use std::{collections::VecDeque, os::unix::fs::PermissionsExt as _, path::Path};

use axum::{
    Json, Router,
    extract::{Path as UrlPath, Query, State},
    http::StatusCode,
    routing::{delete, get, post},
};
use gloveport_protocol::{Action, EventSource, RunAction};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::analyzer::NoHistory;

type Answer = (StatusCode, Json<Value>);

/// A server that speaks the interface of the specification and writes down what it is asked.
#[derive(Clone, Default)]
struct Server {
    asked: Arc<Mutex<Vec<Value>>>,
    checks: Arc<Mutex<VecDeque<Answer>>>,
    delay: Duration,
}

impl Server {
    fn note(&self, what: Value) {
        self.asked.lock().unwrap().push(what);
    }

    fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn will_answer(&self, status: u16, answer: Value) {
        self.checks.lock().unwrap().push_back((StatusCode::from_u16(status).unwrap(), Json(answer)));
    }
}

type Session = Query<std::collections::HashMap<String, String>>;

fn router(server: Server) -> Router {
    Router::new()
        .route(
            "/session/new",
            get(|State(server): State<Server>, Query(query): Session| async move {
                server.note(json!("session"));
                Json(json!({"id": query["session_id"]}))
            }),
        )
        .route(
            "/session/",
            delete(|State(server): State<Server>, Query(query): Session| async move {
                server.note(json!({"delete": query.contains_key("session_id")}));
            }),
        )
        .route("/policy/template", get(|| async { Json("the template") }))
        .route(
            "/monitor/new",
            post(|State(server): State<Server>, Query(query): Session, Json(body): Json<Value>| async move {
                server.note(json!({"monitor": body, "session": query.contains_key("session_id")}));
                Json(json!({"monitor_id": "m1"}))
            }),
        )
        .route(
            "/monitor/{id}/check",
            post(|State(server): State<Server>, UrlPath(id): UrlPath<String>, Json(body): Json<Value>| async move {
                server.note(json!({"check": id, "body": body}));
                tokio::time::sleep(server.delay).await;
                let next = server.checks.lock().unwrap().pop_front();
                next.unwrap_or_else(|| (StatusCode::OK, Json(json!([]))))
            }),
        )
        .with_state(server)
}

async fn serve(server: &Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = router(server.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

fn at(url: &str, policy: Option<&str>) -> Invariant {
    let invariant = InvariantOptions { url: Some(url.to_owned()), policy: policy.map(str::to_owned) };
    Invariant::new(&AnalyzerOptions { invariant, ..AnalyzerOptions::default() }).unwrap()
}

fn run(command: &str) -> ActionEvent {
    ActionEvent { source: Some(EventSource::Agent), ..Action::Run(RunAction::new(command)).into() }
}

fn elements(command: &str, id: &str) -> Value {
    json!([
        {"metadata": {}, "role": "assistant", "content": ""},
        {"metadata": {}, "id": id, "type": "function", "function": {"name": "run", "arguments": {
            "command": command, "is_input": false, "blocking": false, "is_static": false, "cwd": null,
            "hidden": false, "confirmation_state": "confirmed", "security_risk": -1}}},
    ])
}

#[tokio::test]
async fn actions_are_checked_after_all_that_went_before() {
    let server = Server::default();
    let analyzer = at(&serve(&server).await, None);
    server.will_answer(200, json!(["rule broken risk=medium, ranges=[]"]));
    assert_eq!(analyzer.assess(&run("a"), &NoHistory).await.unwrap().risk, SecurityRisk::Medium);
    assert_eq!(analyzer.assess(&run("b"), &NoHistory).await.unwrap().risk, SecurityRisk::Low);
    assert_eq!(
        server.asked(),
        [
            json!("session"),
            json!({"monitor": {"rule": "the template"}, "session": true}),
            json!({"check": "m1", "body": {"past_events": [], "pending_events": elements("a", "1")}}),
            json!({"check": "m1", "body": {"past_events": elements("a", "1"), "pending_events": elements("b", "2")}}),
        ]
    );
    analyzer.close().await;
    assert_eq!(server.asked(), [json!({"delete": true})]);
}

#[tokio::test]
async fn a_policy_of_ones_own_takes_the_place_of_the_template() {
    let server = Server::default();
    let analyzer = at(&serve(&server).await, Some("my policy"));
    analyzer.start().await.unwrap();
    analyzer.start().await.unwrap();
    assert_eq!(server.asked(), [json!("session"), json!({"monitor": {"rule": "my policy"}, "session": true})]);
}

#[tokio::test]
async fn what_could_not_be_checked_is_not_part_of_the_past() {
    let server = Server::default();
    let analyzer = at(&serve(&server).await, None);
    server.will_answer(500, json!("broken"));
    server.will_answer(200, json!({"no": "list"}));
    server.will_answer(200, json!([1]));
    for _ in 0..3 {
        let error = analyzer.assess(&run("secret words"), &NoHistory).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret words"), "{error:?}");
    }
    server.asked();
    analyzer.assess(&run("b"), &NoHistory).await.unwrap();
    let expected = json!({"check": "m1", "body": {"past_events": [], "pending_events": elements("b", "1")}});
    assert_eq!(server.asked(), [expected]);
}

#[tokio::test]
async fn a_slow_server_is_given_up_on() {
    let server = Server { delay: Duration::from_mins(1), ..Server::default() };
    let analyzer = at(&serve(&server).await, None).with_limit(Duration::from_millis(200));
    let error = analyzer.assess(&run("a"), &NoHistory).await.unwrap_err();
    assert!(matches!(error, AnalyzerError::Silent { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_asked_again_a_bounded_number_of_times() {
    let retries = Retries { attempts: 3, pause: Duration::ZERO };
    let error = at("http://127.0.0.1:1", None).with_retries(retries).start().await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("Failed to create session: Connection timed out (3 attempts; "), "{text}");

    // It comes up between two attempts.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = Server::default();
    let app = router(server.clone());
    let late = tokio::spawn(async move {
        // The first connection is cut off.
        drop(listener.accept().await.unwrap());
        axum::serve(listener, app).await
    });
    let retries = Retries { attempts: 20, pause: Duration::from_millis(10) };
    at(&url, None).with_retries(retries).start().await.unwrap();
    late.abort();
}

#[tokio::test]
async fn a_server_that_refuses_a_session_is_not_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().route("/session/new", get(|| async { StatusCode::FORBIDDEN }));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let error = at(&url, None).start().await.unwrap_err();
    assert_eq!(error.to_string(), format!("Failed to create session: {url}/session/new answered with status 403"));
}

#[test]
fn the_risk_is_the_highest_that_a_violation_names() {
    use SecurityRisk::{High, Low, Medium};
    let rows: [(&[&str], SecurityRisk); 8] = [
        (&[], Low),
        (&["x risk=medium y"], Medium),
        (&["risk=low", "risk=HIGH"], Low),
        (&["risk=unknown"], Low),
        (&["risk=high)"], High),
        (&["risk=low risk=high"], High),
        (&["risk=medium", "risk=low"], Medium),
        (&["risk=highest", "risk="], Low),
    ];
    for (texts, risk) in rows {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(risk_of(&texts), risk, "{texts:?}");
    }
}

/// What the reference makes of each event.
#[test]
fn every_event_becomes_the_elements_of_the_reference() {
    let call = |id: &str, name: &str, arguments: Value| json!({"metadata": {}, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let said = |role: &str, content: &str| json!({"metadata": {}, "role": role, "content": content});
    let rows = [
        (json!({"action": "message", "source": "user", "args": {"content": "hi"}}), vec![said("user", "hi")]),
        (json!({"action": "message", "source": "agent", "args": {"content": "yo"}}), vec![said("assistant", "yo")]),
        (
            json!({"observation": "run", "content": "early", "extras": {"command": "ls"}}),
            vec![json!({"metadata": {}, "role": "tool", "content": "early"})],
        ),
        (
            json!({"action": "system", "source": "agent", "args": {"content": "sys"}}),
            vec![call(
                "1",
                "system",
                json!({"content": "sys", "tools": null, "openhands_version": "0.62.0",
                "agent_class": null}),
            )],
        ),
        (
            json!({"action": "browse_interactive", "source": "agent", "args": {"browser_actions": "noop()", "thought": "t"}}),
            vec![
                said("assistant", "t"),
                call(
                    "2",
                    "browse_interactive",
                    json!({"browser_actions": "noop()",
                "browsergym_send_msg_to_user": "", "security_risk": -1, "return_axtree": false}),
                ),
            ],
        ),
        (json!({"action": "null", "args": {}}), vec![]),
        (json!({"action": "change_agent_state", "args": {"agent_state": "running"}}), vec![]),
        (
            json!({"action": "think", "source": "agent", "args": {"thought": "hm"}}),
            vec![said("assistant", "hm"), call("3", "think", json!({}))],
        ),
        (
            json!({"observation": "run", "source": "agent", "content": "out", "extras": {"command": "ls"}}),
            vec![json!({"metadata": {}, "role": "tool", "content": "out", "tool_call_id": "3"})],
        ),
        (json!({"observation": "null", "content": "", "extras": {}}), vec![]),
        (json!({"observation": "agent_state_changed", "content": "", "extras": {"agent_state": "running"}}), vec![]),
    ];
    let mut trace = Trace::default();
    for (event, expected) in rows {
        let elements = trace.elements(&Event::from_value(event.clone()).unwrap());
        assert_eq!(elements, expected, "{event}");
        trace.append(elements);
    }
}

#[test]
fn the_past_is_bounded() {
    let mut trace = Trace::default();
    let long = Event::Action(run(&"x".repeat(100_000)));
    for _ in 0..200 {
        let elements = trace.elements(&long);
        trace.append(elements);
    }
    let past = trace.past();
    assert!(serde_json::to_vec(&past).unwrap().len() < 9 * 1024 * 1024);
    assert_eq!(past.last().unwrap()["id"], "200");
}

/// A program in place of `docker` that keeps the state of one container in a file and writes down its calls.
fn docker(directory: &Path, state: Option<&str>, port: &str) -> DockerHost {
    if let Some(state) = state {
        std::fs::write(directory.join("state"), state).unwrap();
    }
    let script = format!(
        "#!/bin/sh\ncd '{}'\necho \"$*\" >> calls\ncase $1 in\n\
         inspect) [ -f state ] && cat state || {{ echo 'Error: No such container: x' >&2; exit 1; }} ;;\n\
         run|start) echo created > state; (sleep 0.05; echo running > state) >/dev/null 2>&1 & ;;\n\
         port) echo '127.0.0.1:{port}' ;;\n\
         stop) echo exited > state ;;\n\
         esac\n",
        directory.display()
    );
    let program = directory.join("docker");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    DockerHost::new(program.to_str().unwrap()).with_pause(Duration::from_millis(10))
}

fn calls(directory: &Path) -> Vec<String> {
    let calls = std::fs::read_to_string(directory.join("calls")).unwrap();
    let mut calls: Vec<_> = calls.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    calls.dedup();
    calls
}

#[tokio::test]
async fn a_container_is_found_started_or_made_and_only_ours_is_stopped() {
    let name = "openhands-invariant-server";
    for (state, expected) in [
        (Some("running\n"), vec!["inspect", "port"]),
        (Some("exited\n"), vec!["inspect", "start", "inspect", "port", "stop"]),
        (None, vec!["inspect", "run", "inspect", "port", "stop"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let host = docker(directory.path(), state, "31234");
        assert_eq!(host.start().await.unwrap(), "http://localhost:31234");
        host.stop().await;
        assert_eq!(calls(directory.path()), expected, "{state:?}");
        let log = std::fs::read_to_string(directory.path().join("calls")).unwrap();
        for line in log.lines().filter(|line| line.starts_with("run")) {
            assert!(line.contains(&format!("--detach --name {name} --platform linux/amd64 --publish 127.0.0.1:3")));
            assert!(line.ends_with(":8000 ghcr.io/invariantlabs-ai/server:openhands"), "{line}");
        }
    }
}

#[tokio::test]
async fn an_analyzer_on_a_container_asks_the_server_behind_its_port() {
    let server = Server::default();
    let url = serve(&server).await;
    let port = url.rsplit_once(':').unwrap().1.to_owned();
    let directory = tempfile::tempdir().unwrap();
    let host = Arc::new(docker(directory.path(), None, &port));
    let analyzer = Invariant::on_host(host, &AnalyzerOptions::default()).unwrap();
    assert_eq!(analyzer.assess(&run("a"), &NoHistory).await.unwrap().risk, SecurityRisk::Low);
    analyzer.close().await;
    assert_eq!(calls(directory.path()).last().unwrap(), "stop");
}

#[tokio::test]
async fn without_docker_the_error_says_what_to_do() {
    let error = DockerHost::new("/nowhere/docker").start().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot run `/nowhere/docker`: No such file or directory (os error 2); install Docker, or give the URL of a \
         running server"
    );
    let failing = DockerHost::new("false").start().await.unwrap_err();
    assert!(matches!(failing, AnalyzerError::Docker { command: "inspect", .. }), "{failing}");
}

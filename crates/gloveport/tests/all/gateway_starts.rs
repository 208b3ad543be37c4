//! Clients of a gateway that go away before they have their sandbox, and those that ask again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use gloveport_gateway::Gateway;
use gloveport_gateway_store::{AuditFilter, Limits, Reserved, SessionState, Wants};
use gloveport_provider::{ListFilter, Progress, Provider, Sandbox, SandboxId, SandboxState};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    gateway::{KEY, Program, Running},
    gateway_tenants::{self, Tenants},
    sandboxes::{LIMIT, spec},
    support::gloveport,
};

/// Times after which clients go: before anything was done, in between, and when the answer is on its way.
const GOING: [u64; 12] = [0, 1, 3, 10, 20, 30, 40, 50, 60, 80, 120, 200];

/// Asks for a sandbox, and goes after a time. Gives the sandbox if the whole answer was on its way by then.
async fn ask_and_go(address: SocketAddr, key: &str, session: &str, after: Duration) -> Option<String> {
    let body = json!({"session_id": session}).to_string();
    let head = format!("POST /start HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\nContent-Length: {}", body.len());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    sleep(after).await;
    stream.shutdown(Shutdown::Write).unwrap();
    let answer = tokio::task::spawn_blocking(move || {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut answer = Vec::new();
        let _cut_off = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    });
    let answer = answer.await.unwrap();
    let told: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    told["runtime_id"].as_str().map(str::to_owned)
}

async fn listed(engine: &Arc<dyn Provider>) -> Vec<Sandbox> {
    engine.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_before_it_has_its_answer_leaves_no_sandbox_and_no_place() {
    let tenants = Tenants::start(Limits { running: Some(1), ..Limits::default() }).await;
    let (running, key) = (&tenants.running, tenants.keys[0].as_str());
    for (number, after) in GOING.into_iter().enumerate() {
        let told = ask_and_go(running.address, key, &format!("s{number}"), Duration::from_millis(after)).await;
        if let Some(id) = told {
            let (status, stopped) = running.ask("POST", "/stop", Some(key), Some(json!({"runtime_id": id}))).await;
            assert_eq!(status, 200, "{stopped}");
        }
        // There is one place, which is free again.
        let free = async {
            while tenants.store.usage("one").await.unwrap().running > 0 || !listed(&running.engine).await.is_empty() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, free).await.unwrap();
    }
    let history = tenants.store.history(Some("one"), None, 100).await.unwrap();
    assert!(history.iter().all(|it| it.state == SessionState::Ended), "{history:?}");
    let filter = AuditFilter { action: Some("start".to_owned()), ..AuditFilter::default() };
    let noted = async { while !tenants.audit(1, filter.clone()).await.iter().any(|line| line.result == "408") {} };
    timeout(LIMIT, noted).await.unwrap();
    // Another one has it, and stays.
    let (status, told) = running.ask("POST", "/start", Some(key), Some(json!({"session_id": "s0"}))).await;
    assert_eq!((status, &told["created"]), (200, &json!(true)), "{told}");
    sleep(Duration::from_millis(300)).await;
    assert_eq!(listed(&running.engine).await.len(), 1);
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_again_after_it_was_cut_off_gets_one_sandbox_that_stays() {
    let tenants = Tenants::start(Limits::default()).await;
    // Another gateway over the same engine and database.
    let engine: Arc<dyn Provider> = Arc::new(tenants.running.place.backend());
    let options = gateway_tenants::options(&tenants.store);
    let other = Gateway::new(Arc::clone(&engine), options).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { other.serve(listener, stop).await }
    });
    let (running, key) = (&tenants.running, tenants.keys[0].as_str());
    let mut ids = Vec::new();
    for (number, after) in GOING.into_iter().enumerate() {
        let session = format!("s{number}");
        let first = if number.is_multiple_of(2) { running.address } else { address };
        let told_before = ask_and_go(first, key, &session, Duration::from_millis(after)).await;
        let (status, told) = running.ask("POST", "/start", Some(key), Some(json!({"session_id": session}))).await;
        assert_eq!(status, 200, "{told}");
        assert!(told_before.is_none_or(|id| told["runtime_id"] == id.as_str()), "{told}");
        ids.push(told["runtime_id"].as_str().unwrap().to_owned());
    }
    sleep(Duration::from_millis(500)).await;
    let mut live: Vec<String> = listed(&engine)
        .await
        .into_iter()
        .filter(|sandbox| sandbox.state == SandboxState::Running)
        .map(|sandbox| sandbox.id.to_string())
        .collect();
    live.sort();
    ids.sort();
    assert_eq!(live, ids);
    assert_eq!(tenants.store.usage("one").await.unwrap().running, GOING.len() as u64);
    stop.cancel();
    timeout(LIMIT, serving).await.unwrap().unwrap();
    engine.close().await;
    tenants.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_another_gateway_may_take_back_is_pending_until_somebody_was_told_of_it() {
    let tenants = Tenants::start(Limits::default()).await;
    pending_until_told(&tenants).await;
    tenants.running.end().await;
}

async fn pending_until_told(tenants: &Tenants) {
    let (running, key, store) = (&tenants.running, tenants.keys[0].as_str(), &tenants.store);
    let ask = async |method: &str, path: &str, body| running.ask(method, path, Some(key), body).await;
    let wants = Wants { session: "s", image: None, cpu_millis: 1000, memory_bytes: 1 << 30 };
    // What another gateway has made, as it stands in the database.
    let untold = async || {
        let (status, told) = ask("POST", "/start", Some(json!({"session_id": "s"}))).await;
        assert_eq!((status, &told["created"]), (200, &json!(true)), "{told}");
        let id = told["runtime_id"].as_str().unwrap().to_owned();
        // The request ends behind its answer.
        let settled = async {
            while store.of_runtime(&id).await.unwrap().is_none_or(|row| row.state != SessionState::Running) {}
        };
        timeout(LIMIT, settled).await.unwrap();
        store.ended(&id, "a test").await.unwrap();
        let Reserved::Made(place) = store.reserve("one", &wants, "another", LIMIT).await.unwrap() else { panic!() };
        assert!(store.made(&place, &id).await.unwrap());
        (id, place)
    };
    let (id, place) = untold().await;
    let (status, told) = ask("GET", "/sessions/s", None).await;
    assert_eq!((status, &told["status"], &told["pod_status"]), (200, &json!("starting"), &json!("pending")), "{told}");
    // Whoever asks for it waits until it is known whether it stays: here it does not.
    let asks = ask("POST", "/start", Some(json!({"session_id": "s"})));
    let makes = ask("POST", "/v1/sandboxes", Some(json!({"session_id": "s"})));
    let mut waiting = std::pin::pin!(async { tokio::join!(asks, makes) });
    assert!(timeout(Duration::from_millis(500), &mut waiting).await.is_err());
    assert!(store.withdrawn(&place, &id, LIMIT).await.unwrap());
    let gone = SandboxId::new(&id).unwrap();
    running.engine.delete(&gone).await.unwrap();
    store.released(&place, "its client has gone").await.unwrap();
    let ((status, told), (made, there)) = timeout(LIMIT, waiting).await.unwrap();
    // One of them makes it, in whichever order they come.
    assert_eq!(status, 200, "{told}");
    assert_eq!(made, if told["created"] == json!(true) { 409 } else { 201 }, "{told} {there}");
    let (status, stopped) = ask("POST", "/stop", Some(json!({"runtime_id": told["runtime_id"]}))).await;
    assert_eq!(status, 200, "{stopped}");
    // And here it stays.
    let (id, place) = untold().await;
    let mut waiting = std::pin::pin!(ask("POST", "/start", Some(json!({"session_id": "s"}))));
    assert!(timeout(Duration::from_millis(500), &mut waiting).await.is_err());
    assert!(store.started(&place, &id).await.unwrap() && !store.withdrawn(&place, &id, LIMIT).await.unwrap());
    let (status, told) = timeout(LIMIT, waiting).await.unwrap();
    assert_eq!((status, &told["created"], &told["runtime_id"]), (200, &json!(false), &json!(id)), "{told}");
    let (_, told) = ask("GET", "/sessions/s", None).await;
    assert_eq!((&told["status"], &told["runtime_id"]), (&json!("running"), &json!(id)), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_its_client_never_takes_is_not_given_for_good() {
    let running = Running::start().await;
    // One that is there, and reads nothing while the rest of it arrives: it has its answer all the same.
    let mut stream = TcpStream::connect(running.address).unwrap();
    let body = json!({"session_id": "slow"}).to_string();
    let head = format!("POST /start HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\nContent-Length: {}", body.len());
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes()).unwrap();
    let there = async { while listed(&running.engine).await.is_empty() {} };
    timeout(LIMIT, there).await.unwrap();
    sleep(Duration::from_millis(300)).await;
    let answer = tokio::task::spawn_blocking(move || {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let told: Value = serde_json::from_str(body).unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    assert_eq!((&told["runtime_id"], &told["created"]), (&json!("slow"), &json!(true)));
    assert_eq!(listed(&running.engine).await.len(), 1);
    // Our client takes back what it has asked for and does not wait for.
    for wait in [1, 5, 20, 40, 60, 80, 120] {
        let backend = running.backend();
        let (wanted, silent) = (spec("given-up"), Progress::silent());
        if let Ok(made) = timeout(Duration::from_millis(wait), backend.create(&wanted, &silent)).await {
            backend.delete(&made.unwrap().id).await.unwrap();
        }
        backend.close().await;
        assert_eq!(listed(&running.engine).await.len(), 1, "after {wait} ms");
    }
    running.end().await;
}

#[test]
fn a_gateway_that_is_killed_takes_no_sandbox_with_it() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    std::fs::write(&key, KEY).unwrap();
    let program = || {
        let mut command = gloveport(home.path());
        command.env("XDG_STATE_HOME", home.path()).env_remove("XDG_RUNTIME_DIR");
        command
    };
    let mut command = program();
    command.args(["gateway", "--port", "0", "--key-file"]).arg(&key);
    let mut gateway = Program::start(command);
    let address: SocketAddr = gateway.url.strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("POST /start HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\nConnection: close\r\nContent-Length: 19");
    stream.write_all(format!("{head}\r\n\r\n{{\"session_id\":\"it\"}}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // What is done behind the answer is done soon.
    let state = home.path().join("gloveport/local");
    crate::support::until("the gateway holds no sandbox", || {
        std::fs::read_dir(state.join("sandboxes/it/holders")).unwrap().next().is_none()
    });
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    let collected = program().args(["session", "gc", "--runtime", "local"]).output().unwrap();
    assert!(collected.status.success(), "{collected:?}");
    let listed = program().args(["session", "ls", "--json"]).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let removed = program().args(["session", "rm", "--force", "it"]).output().unwrap();
    assert!(text.contains("\"it\"") && text.contains("running"), "{text}");
    assert!(removed.status.success(), "{removed:?}");
}

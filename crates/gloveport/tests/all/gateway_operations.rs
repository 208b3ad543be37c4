//! What operators of a gateway see, how it ends, and what it costs.
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use futures_util::stream;
use gloveport_client::{Certificates, Pool};
use gloveport_protocol::{ExecuteError, Secret};
use gloveport_provider::{Progress, Provider as _, Sandbox};
use gloveport_provider_remote::{Remote, RemoteOptions};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request,
    body::{Bytes, Frame},
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};

use crate::{
    gateway::{KEY, Program, Running},
    gateway_wire::{Answer, connect, echoing, request},
    sandboxes::{LIMIT, run, spec, try_run, until},
    support::gloveport,
};

async fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = [("Host", "gateway")].into_iter().chain(headers.iter().copied()).collect();
    request(address, &format!("GET {path}"), &headers).await
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_what_passes_by_route_and_never_by_sandbox() {
    let running = Running::start().await;
    let (address, key) = (running.address, ("X-API-Key", KEY));
    assert_eq!(get(address, "/metrics", &[]).await.status, 401);
    assert_eq!(get(address, "/metrics", &[("X-API-Key", "a key of somebody else")]).await.status, 401);
    echoing(&running, "an-id-that-is-seen").await;
    for path in ["/an-id-that-is-seen/work-1/x", "/unknown/x", "/sessions/an-id-that-is-seen", "/list", "/list"] {
        get(address, path, &[key]).await;
    }
    let mut socket = connect(address);
    let ask = "GET /an-id-that-is-seen/work-1/socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    socket.write_all(ask.as_bytes()).unwrap();
    let mut socket = BufReader::new(socket);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        socket.read_line(&mut line).unwrap();
    }
    socket.get_mut().write_all(&[b'x'; 1000]).unwrap();
    socket.read_exact(&mut [0; 1000]).unwrap();

    let answer = get(address, "/metrics", &[key]).await;
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{answer:?}");
    let text = answer.body;
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}\n{text}")).parse().unwrap()
    };
    let own = |name: &str| value(&format!("gloveport_gateway_{name}"));
    for (name, least) in [
        ("requests_total{route=\"/list\",status=\"2xx\"}", 2.0),
        ("requests_total{route=\"/sessions/{session_id}\",status=\"2xx\"}", 1.0),
        ("requests_total{route=\"sandbox\",status=\"4xx\"}", 1.0),
        ("requests_total{route=\"sandbox\",status=\"2xx\"}", 1.0),
        ("request_duration_seconds_count{route=\"/list\"}", 2.0),
        ("start_duration_seconds_count{result=\"ok\"}", 1.0),
        ("bytes_total{direction=\"in\"}", 1000.0),
        ("bytes_total{direction=\"out\"}", 1000.0),
        ("connections_open", 1.0),
        ("websockets_open", 1.0),
        ("sandboxes{state=\"running\"}", 1.0),
        ("engine_up", 1.0),
    ] {
        assert!(own(name) >= least, "{name} is {}\n{text}", own(name));
    }
    assert!(!text.contains("an-id-that-is-seen") && !text.contains(KEY), "{text}");
    drop(socket);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_an_id_which_its_sandbox_is_told_and_a_strange_one_is_replaced() {
    let running = Running::start().await;
    echoing(&running, "a").await;
    for (given, is_taken) in [
        (Some("abc-1.2_X"), true),
        (None, false),
        (Some("with space"), false),
        (Some("x\u{7f}y"), false),
        (Some(&*"x".repeat(65)), false),
    ] {
        let headers: Vec<_> = given.map(|id| ("X-Request-ID", id)).into_iter().collect();
        let answer = get(running.address, "/a/work-1/", &headers).await;
        if given == Some("x\u{7f}y") && answer.status == 400 {
            continue;
        }
        let told = answer.all("x-request-id");
        assert_eq!(told.len(), 1, "{answer:?}");
        assert_eq!(given.map(str::to_ascii_lowercase).as_deref() == Some(&*told[0]), is_taken, "{given:?} {told:?}");
        let inside = answer.json()["headers"]["x-request-id"].as_str().unwrap().to_ascii_lowercase();
        assert_eq!(inside, told[0]);
    }
    assert_eq!(get(running.address, "/healthz", &[]).await.all("x-request-id")[0].len(), 16);
    running.end().await;
}

/// The program, as a gateway with its state below a directory.
fn program(home: &Path, more: &[&str]) -> (Program, SocketAddr) {
    let key = home.join("key");
    fs::write(&key, KEY).unwrap();
    let mut command = gloveport(home);
    command.env("XDG_STATE_HOME", home).env_remove("XDG_RUNTIME_DIR").env("LOG_LEVEL", "warn");
    command.args(["gateway", "--port", "0", "--key-file"]).arg(&key).args(more);
    let program = Program::start(command);
    let address = program.url.split_once("://").unwrap().1.parse().unwrap();
    (program, address)
}

fn backend(url: &str) -> Remote {
    Remote::new(RemoteOptions { url: url.to_owned(), key: Some(Secret::new(KEY)), answer_within: LIMIT })
}

async fn alive(backend: &Remote, name: &str) -> Sandbox {
    let made = backend.create(&spec(name), &Progress::silent()).await.unwrap();
    let options = gloveport_hosting::WaitOptions { limit: LIMIT, ..Default::default() };
    gloveport_hosting::wait_until_alive(backend, made, &options, &Progress::silent()).await.unwrap()
}

/// Begins work in a sandbox and waits until it is under way.
async fn work(sandbox: &Sandbox, command: &str) -> JoinHandle<Result<String, ExecuteError>> {
    let directory = PathBuf::from(run(sandbox, "pwd").await);
    let (sandbox, command) = (sandbox.clone(), format!("touch begun; {command}"));
    let working = tokio::spawn(async move { try_run(&sandbox, &command).await });
    until("the work begins", || directory.join("begun").exists()).await;
    working
}

fn signal(program: &Program) {
    kill_process(Pid::from_child(&program.child), Signal::TERM).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_ends_finishes_what_is_asked_and_says_that_it_is_not_ready() {
    let home = tempfile::tempdir().unwrap();
    // A port that is free now.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mut program, address) = program(home.path(), &["--metrics-address", &free.to_string(), "--drain", "20s"]);
    assert_eq!(get(address, "/readyz", &[]).await.status, 200);
    for path in ["/readyz", "/healthz", "/metrics"] {
        assert_eq!(get(free, path, &[]).await.status, 200, "{path}");
    }
    assert_eq!(get(free, "/list", &[]).await.status, 404);
    let backend = backend(&program.url);
    let sandbox = alive(&backend, "a").await;
    let working = work(&sandbox, "sleep 3; echo finished").await;
    signal(&program);
    let draining = async { while get(free, "/readyz", &[]).await.status != 503 {} };
    timeout(LIMIT, draining).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "it takes no more connections");
    assert_eq!(timeout(LIMIT, working).await.unwrap().unwrap().unwrap(), "finished");
    assert!(program.child.wait().unwrap().success());
    backend.close().await;
    remove(home.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_gateway_at_once() {
    let home = tempfile::tempdir().unwrap();
    let (mut program, address) = program(home.path(), &["--drain", "10m"]);
    let backend = backend(&program.url);
    let sandbox = alive(&backend, "a").await;
    let working = work(&sandbox, "sleep 60").await;
    signal(&program);
    let deaf = async { while TcpStream::connect(address).await.is_ok() {} };
    timeout(LIMIT, deaf).await.unwrap();
    assert!(program.child.try_wait().unwrap().is_none(), "it waits for the request");
    signal(&program);
    let ended = tokio::task::spawn_blocking(move || program.child.wait());
    assert!(timeout(Duration::from_secs(10), ended).await.unwrap().unwrap().unwrap().success());
    working.abort();
    backend.close().await;
    remove(home.path());
}

/// Deletes the sandbox of a gateway that has ended.
fn remove(home: &Path) {
    let mut command: Command = gloveport(home);
    command.env("XDG_STATE_HOME", home).env_remove("XDG_RUNTIME_DIR");
    let output = command.args(["session", "--runtime", "local", "rm", "-f", "a"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The most memory that a process has had, in KiB.
fn peak(program: &Program) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", program.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

type Content = UnsyncBoxBody<Bytes, std::io::Error>;

const SIZE: usize = 256 * 1024 * 1024;
const PART: usize = 64 * 1024;

fn large() -> Content {
    let part = Bytes::from(vec![7; PART]);
    let parts = (0..SIZE / PART).map(move |_| Ok(Frame::data(part.clone())));
    StreamBody::new(stream::iter(parts)).boxed_unsync()
}

fn nothing() -> Content {
    Full::new(Bytes::new()).map_err(|never| match never {}).boxed_unsync()
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_pass_in_little_memory_by_http_1_and_http_2() {
    let home = tempfile::tempdir().unwrap();
    let (mut program, address) = program(home.path(), &[]);
    let backend = backend(&program.url);
    let sandbox = alive(&backend, "a").await;
    let directory = run(&sandbox, "pwd").await;
    let key = sandbox.session_key.clone().unwrap();
    let before = peak(&program);
    for (name, is_http_2) in [("one", false), ("two", true)] {
        let url = format!("http://{address}/a/v1/files/content?path={directory}/{name}");
        let request = |method: &str, body| {
            let request = Request::builder().method(method).uri(&url).header("host", address.to_string());
            request.header("x-session-api-key", key.expose()).body(body).unwrap()
        };
        for (method, body, expected) in [("PUT", large(), 0), ("GET", nothing(), SIZE)] {
            let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
            let mut answer = if is_http_2 {
                let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
                tokio::spawn(connection);
                sender.send_request(request(method, body)).await.unwrap()
            } else {
                let (mut sender, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                sender.send_request(request(method, body)).await.unwrap()
            };
            assert!(answer.status().is_success(), "{method} {name}: {answer:?}");
            let mut count = 0;
            while let Some(frame) = answer.frame().await {
                count += frame.unwrap().data_ref().map_or(0, Bytes::len);
            }
            assert!(count >= expected, "{method} {name}: {count}");
        }
    }
    let grown = peak(&program) - before;
    assert!(grown < 64 * 1024, "the gateway has grown by {grown} KiB");
    assert!(backend.delete(&sandbox.id).await.unwrap());
    backend.close().await;
    signal(&program);
    assert!(program.child.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_logged_of_a_request_says_its_id_and_is_json_where_that_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let key = home.path().join("key");
    fs::write(&key, KEY).unwrap();
    let mut command = gloveport(home.path());
    command.env("XDG_STATE_HOME", home.path()).env("LOG_LEVEL", "info").env("LOG_JSON", "1");
    command.args(["gateway", "--port", "0", "--key-file"]).arg(&key);
    let program = Program::start(command);
    let pool = Pool::new(Certificates::Checked).unwrap();
    let asked = pool.http().get(format!("{}/list?secret=1", program.url)).header("X-Request-ID", "mine-1");
    assert_eq!(asked.header("X-API-Key", KEY).send().await.unwrap().status().as_u16(), 200);
    let errors = tokio::task::spawn_blocking(move || program.end()).await.unwrap();
    let lines = errors.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let line = lines.into_iter().find(|line| line["span"]["id"] == "mine-1").unwrap();
    assert_eq!((&line["fields"]["route"], &line["fields"]["status"]), (&"/list".into(), &200.into()), "{line}");
    assert!(!errors.contains(KEY) && !errors.contains("secret"), "{errors}");
}

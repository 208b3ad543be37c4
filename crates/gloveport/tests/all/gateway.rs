//! The gateway over real sandboxes of this machine: our client for it, who is let in, and what is on its way.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first broken assumption")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use axum::{
    extract::Request,
    http::StatusCode,
    middleware::{self, Next},
    response::IntoResponse as _,
};
use gloveport_client::{AttachOptions, Certificates, Pool, TerminalEvent};
use gloveport_gateway::{Gateway, GatewayOptions};
use gloveport_protocol::{Secret, terminals::TerminalRequest};
use gloveport_provider::{
    Confinement, Level, Lifetime, ListFilter, NetworkPolicy, Progress, Provider, ProviderError, Sandbox, SandboxSpec,
    SandboxState,
};
use gloveport_provider_conformance::{Make, Options, run as conformance};
use gloveport_provider_remote::{Remote, RemoteOptions};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    sandboxes::{LIMIT, Place, alive_in, client, has_containers, run, spec},
    support::{gloveport, text},
};

pub(crate) const KEY: &str = "a key of the gateway";

/// A gateway in this process, over sandboxes of a place of its own.
pub(crate) struct Running {
    pub(crate) place: Place,
    pub(crate) engine: Arc<dyn Provider>,
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// One with other options.
    pub(crate) async fn with(change: impl FnOnce(&mut GatewayOptions)) -> Self {
        Self::over(|engine| engine, change).await
    }

    /// One over an engine that is not quite what it was.
    pub(crate) async fn over(
        wrap: impl FnOnce(Arc<dyn Provider>) -> Arc<dyn Provider>,
        change: impl FnOnce(&mut GatewayOptions),
    ) -> Self {
        let place = Place::new();
        let engine = wrap(Arc::new(place.backend()));
        let mut options = GatewayOptions::new(Secret::new(KEY));
        change(&mut options);
        Self::start_on(place, engine, options).await
    }

    pub(crate) async fn start_with(options: GatewayOptions) -> Self {
        Self::start_at(Place::new(), options).await
    }

    pub(crate) async fn start_at(place: Place, options: GatewayOptions) -> Self {
        let engine: Arc<dyn Provider> = Arc::new(place.backend());
        Self::start_on(place, engine, options).await
    }

    pub(crate) async fn start_on(place: Place, engine: Arc<dyn Provider>, options: GatewayOptions) -> Self {
        let gateway = Gateway::new(Arc::clone(&engine), options).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let serving = tokio::spawn({
            let (gateway, stop) = (gateway.clone(), stop.clone());
            async move { gateway.serve(listener, stop).await }
        });
        Self { place, engine, gateway, address, stop, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn options(&self, key: &str) -> RemoteOptions {
        RemoteOptions { url: self.url(), key: Some(Secret::new(key)), answer_within: LIMIT }
    }

    pub(crate) fn backend(&self) -> Remote {
        Remote::new(self.options(KEY))
    }

    /// A sandbox whose server answers.
    pub(crate) async fn alive(&self, backend: &Remote, spec: &SandboxSpec) -> Sandbox {
        let made = backend.create(spec, &Progress::silent()).await.unwrap();
        let options = gloveport_hosting::WaitOptions { limit: LIMIT, ..Default::default() };
        gloveport_hosting::wait_until_alive(backend, made, &options, &Progress::silent()).await.unwrap()
    }

    /// Status and body of a request of the interface.
    pub(crate) async fn ask(&self, method: &str, path: &str, key: Option<&str>, body: Option<Value>) -> (u16, Value) {
        let pool = Pool::new(Certificates::Checked).unwrap();
        let mut request = pool.http().request(method.parse().unwrap(), format!("{}{path}", self.url()));
        if let Some(key) = key {
            request = request.header("X-API-Key", key);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.bytes().await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// The status line of a request as it stands here.
    pub(crate) async fn raw(&self, request: String) -> String {
        let address = self.address;
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            let _cut_off = BufReader::new(stream).read_line(&mut answer);
            answer
        });
        asked.await.unwrap()
    }

    /// Ends the gateway alone.
    pub(crate) async fn leave(self) -> Place {
        self.stop.cancel();
        timeout(LIMIT, self.serving).await.unwrap().unwrap();
        self.engine.close().await;
        self.place
    }

    /// Ends the gateway and its sandboxes; nothing of them is left.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        timeout(LIMIT, self.serving).await.unwrap().unwrap();
        for sandbox in self.engine.list(&ListFilter { ended: true, ..ListFilter::default() }).await.unwrap() {
            self.engine.delete(&sandbox.id).await.unwrap();
        }
        self.engine.close().await;
        assert_eq!(alive_in(&self.place), Vec::<String>::new());
        assert_eq!(self.place.left(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_passes_the_suite_of_providers_at_a_gateway_over_this_machine() {
    let running = Running::start().await;
    let options = running.options(KEY);
    let make: Make = Arc::new(move || Ok(Arc::new(Remote::new(options.clone())) as Arc<dyn Provider>));
    let report = conformance(&make, &Options::default(), |_| {}).await.unwrap();
    let counts = report.counts();
    assert_eq!(counts.failed, 0, "{}", report.text());
    assert!(counts.passed >= 34, "{}", report.text());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_keeps_all_its_sandboxes_apart_whatever_clients_ask_for() {
    if !has_containers() {
        println!("skipped: there are no containers");
        return;
    }
    let container = Confinement { level: Level::Container, ..Confinement::default() };
    let running = Running::with(|options| options.confinement = Some(container)).await;
    let secret = running.place.path().join("home/secret");
    std::fs::write(&secret, "a secret").unwrap();
    let backend = running.backend();
    let sandbox = running.alive(&backend, &spec("a")).await;
    let read = run(&sandbox, &format!("cat {}; echo $?", secret.display())).await;
    assert!(!read.contains("a secret") && read.ends_with('1'), "{read}");
    assert_eq!(run(&sandbox, "cat /proc/1/comm").await, "gloveport");
    let made = running.engine.list(&ListFilter::default()).await.unwrap();
    assert_eq!(made[0].labels.get(Level::LABEL).map(String::as_str), Some("container"), "{made:?}");
    // Of those that are kept apart a client knows that they can be kept from the network.
    let (status, can) = running.ask("GET", "/v1/capabilities", Some(KEY), None).await;
    assert_eq!((status, can["capabilities"]["network_policy"].as_bool()), (200, Some(true)), "{can}");
    let closed = SandboxSpec { network: NetworkPolicy::None, ..spec("b") };
    let (status, _) =
        running.ask("POST", "/v1/sandboxes", Some(KEY), Some(json!({"session_id": "b", "network": "none"}))).await;
    assert!(status < 300, "{status}");
    let found = running.engine.find_session(&closed.session_id).await.unwrap().unwrap();
    let options = gloveport_hosting::WaitOptions { limit: LIMIT, ..Default::default() };
    let alone =
        gloveport_hosting::wait_until_alive(&*running.engine, found, &options, &Progress::silent()).await.unwrap();
    assert_eq!(run(&alone, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").await, "lo");
    backend.close().await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_passes_the_suite_of_providers_at_a_service_without_our_native_api() {
    let running = Running::start().await;
    // What another service answers to paths that it does not know.
    let hide = middleware::from_fn(async |request: Request, next: Next| {
        if request.uri().path().starts_with("/v1/") {
            return (StatusCode::NOT_FOUND, "no such page").into_response();
        }
        next.run(request).await
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = running.gateway.router().layer(hide);
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let options = RemoteOptions { url, ..running.options(KEY) };
    let make: Make = Arc::new(move || Ok(Arc::new(Remote::new(options.clone())) as Arc<dyn Provider>));
    let provider = make().unwrap();
    provider.learn().await.unwrap();
    assert!(!provider.capabilities().labels && provider.capabilities().images);
    // What an answer means that nobody waits for any more is up to the service.
    let only = ["life/", "found/", "waits/", "optional/", "ends/delete", "ends/close", "ends/keep-alive"];
    let options = Options { only: only.map(str::to_owned).into(), ..Options::default() };
    let report = conformance(&make, &options, |_| {}).await.unwrap();
    let counts = report.counts();
    assert_eq!(counts.failed, 0, "{}", report.text());
    assert!(counts.passed >= 20, "{}", report.text());
    serving.abort();
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_in_without_the_key_and_a_wrong_one_tells_nothing() {
    let running = Running::start().await;
    for (method, path) in [
        ("POST", "/start"),
        ("POST", "/stop"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("GET", "/list"),
        ("GET", "/sessions/a"),
        ("GET", "/sessions/batch?ids=a"),
        ("GET", "/runtime/a"),
        ("GET", "/registry_prefix"),
        ("GET", "/api/warm-runtime-configs"),
    ] {
        for key in [None, Some(""), Some("a key"), Some("a key of the gatewaz"), Some("a key of the gateway ever")] {
            let body = (method == "POST").then(|| json!({"session_id": "a", "runtime_id": "a"}));
            let (status, answer) = running.ask(method, path, key, body).await;
            assert_eq!(status, 401, "{method} {path} {key:?}");
            assert!(!answer.to_string().contains(KEY), "{answer}");
        }
    }
    assert!(running.engine.list(&ListFilter::default()).await.unwrap().is_empty());
    let stranger = Remote::new(running.options("a key of somebody else"));
    let refused = stranger.list(&ListFilter::default()).await.unwrap_err();
    assert!(matches!(&refused, ProviderError::Access { .. }), "{refused}");
    assert!(refused.to_string().contains("sandbox.api_key"), "{refused}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_started_as_clients_of_openhands_ask_and_looked_up_in_all_ways() {
    let running = Running::start().await;
    let words = "/openhands/micromamba/bin/micromamba run -n openhands poetry run python -u -m \
        openhands.runtime.action_execution_server 60000 --working-dir /workspace --plugins agent_skills jupyter --username \
        openhands --user-id 1000";
    let words: Vec<&str> = words.split_whitespace().collect();
    let request = json!({"image": "ghcr.io/x/runtime:1", "command": words, "working_dir": "/openhands/code/",
        "environment": {"DEBUG": "true", "MINE": "yes"}, "session_id": "abc", "resource_factor": 1});
    let (status, started) = running.ask("POST", "/start", Some(KEY), Some(request.clone())).await;
    assert_eq!((status, &started["created"]), (200, &true.into()), "{started}");
    let id = started["runtime_id"].as_str().unwrap().to_owned();
    assert_eq!(started["url"], format!("{}/{id}", running.url()));
    assert!(started["session_api_key"].as_str().unwrap().len() > 16);
    assert!(started["work_hosts"].is_object() && started["session_id"] == "abc");

    // A second time it is the same one.
    let (status, again) = running.ask("POST", "/start", Some(KEY), Some(request)).await;
    assert_eq!((status, &again["runtime_id"], &again["created"]), (200, &started["runtime_id"], &false.into()));
    assert_eq!(again["session_api_key"], started["session_api_key"]);

    let ready = async {
        loop {
            let (status, told) = running.ask("GET", &format!("/runtime/{id}"), Some(KEY), None).await;
            assert_eq!((status, &told["runtime_id"]), (200, &started["runtime_id"]), "{told}");
            if told["pod_status"] == "ready" {
                break told;
            }
        }
    };
    let told = timeout(LIMIT, ready).await.unwrap();
    assert_eq!((&told["status"], &told["restart_count"]), (&"running".into(), &0.into()));
    let (status, of_session) = running.ask("GET", "/sessions/abc", Some(KEY), None).await;
    assert_eq!((status, &of_session["session_api_key"]), (200, &started["session_api_key"]));
    let (_, listed) = running.ask("GET", "/list", Some(KEY), None).await;
    assert_eq!(listed["runtimes"][0]["session_api_key"], started["session_api_key"], "{listed}");
    let (_, batch) = running.ask("GET", "/sessions/batch?ids=nobody&ids=abc", Some(KEY), None).await;
    assert_eq!((batch.as_array().unwrap().len(), &batch[0]["session_id"]), (1, &"abc".into()));

    // The rest is as the client finds it.
    let found = running.backend().find_session(&crate::sandboxes::session("abc")).await.unwrap().unwrap();
    assert_eq!((found.state.clone(), found.lifetime), (SandboxState::Running, Lifetime::Kept));
    assert_eq!(run(&found, "echo $MINE").await, "yes");
    let body = json!({"runtime_id": id});
    assert_eq!(running.ask("POST", "/stop", Some(KEY), Some(body.clone())).await.0, 200);
    for path in ["/stop", "/pause", "/resume"] {
        assert_eq!(running.ask("POST", path, Some(KEY), Some(body.clone())).await.0, 404, "{path}");
    }
    assert_eq!(running.ask("GET", "/sessions/abc", Some(KEY), None).await.0, 404);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_wrong_are_told_what_is_and_change_nothing() {
    let running = Running::start().await;
    for (path, body, status, expected) in [
        ("/start", json!({}), 400, "session_id"),
        ("/start", json!({"session_id": "../etc"}), 400, "session"),
        ("/start", json!({"session_id": "'; DROP TABLE sessions; --"}), 400, "session"),
        ("/start", json!({"session_id": "a", "environment": {"A=B": "c"}}), 400, "environment"),
        ("/start", json!({"session_id": "a", "environment": {"A": "b\u{0}c"}}), 400, "NUL"),
        ("/start", json!({"session_id": "a", "command": ["sleep", "1"]}), 400, "command"),
        ("/start", json!({"session_id": "a", "resource_factor": 8}), 400, "size"),
        ("/start", json!({"session_id": "a", "resource_factor": -1}), 400, "body"),
        ("/start", json!(["session_id"]), 400, "body"),
        ("/stop", json!({"runtime_id": null}), 400, "runtime_id"),
        ("/stop", json!({"runtime_id": "../../x"}), 404, "no such"),
        ("/pause", json!({}), 400, "runtime_id"),
        ("/resume", json!({"runtime_id": "unknown"}), 404, "no such"),
    ] {
        let (got, answer) = running.ask("POST", path, Some(KEY), Some(body.clone())).await;
        assert_eq!(got, status, "{path} {body}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(expected), "{path} {body}: {answer}");
    }
    // Deep and large bodies end with an answer, too.
    let deep = format!("{{\"session_id\": {}", "[".repeat(200_000));
    let head = format!("POST /start HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\nContent-Length: {}\r\n\r\n", deep.len());
    assert!(running.raw(head + &deep).await.contains(" 400 "));
    let large = format!("POST /start HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\nContent-Length: 99999999\r\n\r\n");
    assert!(running.raw(large).await.contains(" 413 "));
    assert!(running.engine.list(&ListFilter::default()).await.unwrap().is_empty());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_reach_no_sandbox_and_no_other_path() {
    let running = Running::start().await;
    let backend = running.backend();
    let sandbox = running.alive(&backend, &spec("a")).await;
    let id = sandbox.id.as_str();
    let get = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: gateway\r\n{more}\r\n");
    assert!(running.raw(get(&format!("/{id}/alive"), "")).await.contains(" 200 "));
    for (request, status) in [
        (get(&format!("/{id}/../{id}/alive"), ""), "400"),
        (get(&format!("/{id}/%2e%2e/{id}/alive"), ""), "400"),
        (get(&format!("/{id}/.%2E/list"), ""), "400"),
        (get(&format!("/%2e%2e/{id}/alive"), ""), "404"),
        (get(&format!("//{id}/alive"), ""), "404"),
        (get("/unknown/alive", ""), "404"),
        (get("/", ""), "404"),
        // Two lengths, a length beside chunks, folded and broken headers.
        (get(&format!("/{id}/alive"), "Content-Length: 1\r\nContent-Length: 2\r\n"), "400"),
        (get(&format!("/{id}/alive"), "Content-Length: +1\r\n"), "400"),
        (get(&format!("/{id}/alive"), "Transfer-Encoding: chunked, identity\r\n"), "400"),
        (get(&format!("/{id}/alive"), "A: b\r\n c: d\r\n"), "400"),
        (get(&format!("/{id}/alive"), "A\u{0}: b\r\n"), "400"),
        (format!("TRACE /{id}/alive HTTP/1.1\r\nHost: gateway\r\n\r\n"), "405"),
        (format!("CONNECT {id}:80 HTTP/1.1\r\nHost: gateway\r\n\r\n"), "405"),
        (format!("GET /{id}/alive HTTP/1.1\r\nHost: me@gateway\r\n\r\n"), "400"),
        (format!("GET /{id}/alive HTTP/1.1\r\n\r\n"), "400"),
        (get(&format!("/{id}/alive"), &"X-A: b\r\n".repeat(500)), "431"),
        (get(&format!("/{id}/{}", "a".repeat(200_000)), ""), "431"),
    ] {
        let answer = running.raw(request.clone()).await;
        let shown: String = request.chars().take(120).collect();
        assert!(answer.contains(&format!(" {status} ")), "{shown:?}: {answer:?}");
    }
    // The way of a client is no way around the key of the sandbox.
    let action = format!(
        "POST /{id}/execute_action HTTP/1.1\r\nHost: gateway\r\nX-API-Key: {KEY}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    assert!(running.raw(action).await.contains(" 403 "));
    // A slow head ends with its time and takes nobody's place meanwhile.
    let mut slow: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    }
    assert_eq!(run(&sandbox, "echo here").await, "here");
    drop(slow);
    backend.close().await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sandbox_is_503_and_one_that_has_ended_404_and_a_dead_server_is_no_long_wait() {
    let running = Running::start().await;
    let backend = running.backend();
    let sandbox = running.alive(&backend, &spec("a")).await;
    let alive = format!("/{}/alive", sandbox.id);
    assert_eq!(running.ask("GET", &alive, None, None).await.0, 200);
    backend.pause(&sandbox.id).await.unwrap();
    let (status, told) = running.ask("GET", &alive, None, None).await;
    assert_eq!(status, 503, "{told}");
    assert!(told["detail"].as_str().unwrap().contains("paused"), "{told}");
    assert_eq!(running.ask("GET", "/sessions/a", Some(KEY), None).await.1["status"], "paused");
    backend.resume(&sandbox.id).await.unwrap();
    assert_eq!(run(&sandbox, "echo on").await, "on");
    // Paused behind the gateway's back, it is known after a moment.
    running.engine.pause(&sandbox.id).await.unwrap();
    let known = async { while running.ask("GET", &alive, None, None).await.0 != 503 {} };
    timeout(LIMIT, known).await.unwrap();
    running.engine.resume(&sandbox.id).await.unwrap();
    let known = async { while running.ask("GET", &alive, None, None).await.0 != 200 {} };
    timeout(LIMIT, known).await.unwrap();
    assert!(running.engine.delete(&sandbox.id).await.unwrap());
    let known = async { while running.ask("GET", &alive, None, None).await.0 != 404 {} };
    timeout(LIMIT, known).await.unwrap();
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_and_large_files_go_through() {
    let running = Running::start().await;
    let backend = running.backend();
    let sandbox = running.alive(&backend, &spec("a")).await;
    let client = client(&sandbox);
    // A WebSocket.
    let request = serde_json::from_value::<TerminalRequest>(json!({"argv": ["cat"]})).unwrap();
    let started = client.terminals().start(request).await.unwrap();
    let mut terminal = client.terminals().attach(&started.id, AttachOptions::default()).await.unwrap();
    assert!(terminal.input().send("through\n").await);
    let mut seen = String::new();
    let echoed = async {
        while seen.matches("through").count() < 2 {
            if let Some(TerminalEvent::Output { bytes, .. }) = terminal.next().await.unwrap() {
                seen.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    };
    timeout(LIMIT, echoed).await.unwrap();
    terminal.detach().await;
    // Bodies both ways, which nobody collects.
    let size = 64 * 1024 * 1024_u64;
    let directory = run(&sandbox, &format!("head -c {size} /dev/zero > large; pwd")).await;
    let pool = Pool::new(Certificates::Checked).unwrap();
    let key = sandbox.session_key.clone().unwrap();
    let content = |name: &str| format!("{}/v1/files/content?path={directory}/{name}", sandbox.url.as_ref().unwrap());
    let header = "X-Session-API-Key";
    let down = pool.http().get(content("large")).header(header, key.expose()).send().await.unwrap();
    assert_eq!(down.status().as_u16(), 200);
    let bytes = down.bytes().await.unwrap();
    assert_eq!(bytes.len() as u64, size);
    let up = pool.http().put(content("copy")).header(header, key.expose()).body(bytes).send().await.unwrap();
    assert!(up.status().is_success(), "{}", up.text().await.unwrap());
    assert_eq!(run(&sandbox, "cmp large copy && echo same").await, "same");
    backend.close().await;
    running.end().await;
}

/// The program as a gateway; it is gone when this is dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Program {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").expect("its first line says where it listens").to_owned();
        Self { child, url }
    }

    /// Asks it to end, and gives what it wrote for people.
    pub(crate) fn end(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        errors
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn the_program_serves_sessions_that_outlive_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("it's a key");
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    let program = || {
        let mut command = gloveport(home.path());
        command.env("XDG_STATE_HOME", home.path()).env_remove("XDG_RUNTIME_DIR");
        command
    };
    let gateway = || {
        let mut command = program();
        command.args(["gateway", "--port", "0", "--key-file"]).arg(&file);
        Program::start(command)
    };
    let serving = gateway();
    let url = serving.url.clone();
    let session = |url: &str, arguments: &[&str]| {
        let mut command = program();
        command.env("SANDBOX_REMOTE_RUNTIME_API_URL", url).env("SANDBOX_API_KEY", KEY);
        command.args(["session", "--runtime", "remote"]).args(arguments).output().unwrap()
    };
    let done = |url: &str, arguments: &[&str]| {
        let output = session(url, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    let id = done(&url, &["start"]);
    assert_eq!(done(&url, &["exec", &id, "cd /; x=5; pwd"]), "/");
    let errors = serving.end();
    assert!(!errors.contains(KEY), "{errors}");
    // Nothing is lost with the gateway.
    let serving = gateway();
    assert_eq!(done(&serving.url, &["exec", &id, "echo $x"]), "5");
    assert!(done(&serving.url, &["ls"]).contains(&id));
    done(&serving.url, &["rm", "-f", &id]);
    assert!(!done(&serving.url, &["ls"]).contains(&id));
    serving.end();
    let sandboxes = home.path().join("gloveport/local/sandboxes");
    assert_eq!(std::fs::read_dir(sandboxes).unwrap().count(), 0);
}

#[test]
fn a_gateway_that_cannot_be_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let (short, good) = (home.path().join("short"), home.path().join("good"));
    std::fs::write(&short, "hunter2").unwrap();
    std::fs::write(&good, KEY).unwrap();
    let (short, good) = (short.to_str().unwrap(), good.to_str().unwrap());
    for (arguments, expected) in [
        (vec![], "--key-file"),
        (vec!["--key-file", "/nonexistent"], "/nonexistent"),
        (vec!["--key-file", short], "16"),
        (vec!["--key-file", good, "--runtime", "nothing"], "there is no runtime `nothing`"),
        (vec!["--key-file", good, "--public-url", "example.org"], "public URL"),
        (vec!["--key-file", good, "--allow-origin", "app.example"], "`app.example` is not the origin of a page"),
        (vec!["--allow-origin", "*"], "a gateway needs a key"),
        (vec!["--key-file", good, "--isolation", "container", "--warm", "1"], "cannot be kept apart later"),
        (vec!["--key-file", good, "--isolation", "files", "--runtime", "docker"], "no effect with the runtime docker"),
        (vec!["--key-file", good, "--host", "192.0.2.1"], "cannot listen on 192.0.2.1:8080"),
    ] {
        let output = gloveport(home.path()).arg("gateway").args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let errors = text(&output.stderr);
        assert!(errors.contains(expected) && !errors.contains("hunter2"), "{arguments:?}: {errors}");
    }
    let output = gloveport(home.path()).args(["gateway", "env", "--key-file", good]).output().unwrap();
    let told = text(&output.stdout);
    assert!(output.status.success() && !told.contains(KEY), "{told}");
    let shell = format!("{told}\necho \"$RUNTIME $SANDBOX_REMOTE_RUNTIME_API_URL $SANDBOX_API_KEY\"");
    let output = Command::new("sh").args(["-c", &shell]).output().unwrap();
    assert_eq!(text(&output.stdout), format!("remote http://127.0.0.1:8080 {KEY}\n"));
}

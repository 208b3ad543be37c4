//! Containers that a gateway has started ahead.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use gloveport_gateway::{Gateway, GatewayOptions, WarmPool};
use gloveport_gateway_store::{Limits, Location, Store};
use gloveport_protocol::Secret;
use gloveport_provider::{GcOptions, ListFilter, Progress, Provider, Sandbox, WarmKind};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::docker::{BUSYBOX, LIMIT, Place, alive, run, try_run, until};

const FILE: &str = "the key of a file, long enough";

/// A gateway over one engine, with a pool.
struct Running {
    engine: Arc<dyn Provider>,
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Running {
    async fn start(place: &Place, store: Option<&Store>, count: usize) -> Self {
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
        let mut options = GatewayOptions::new(Secret::new(FILE));
        options.database = store.cloned();
        let image = Some(BUSYBOX.to_owned());
        options.warm = vec![WarmPool { name: "p".to_owned(), image, ..WarmPool::fixed(count) }];
        let engine = place.backend();
        let gateway = Gateway::new(Arc::clone(&engine), options).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let serving = tokio::spawn({
            let stop = stop.clone();
            async move { gateway.serve(listener, stop).await }
        });
        Self { engine, address, stop, serving }
    }

    async fn ask(&self, method: &str, path: &str, key: &str, body: Option<Value>) -> (u16, String) {
        let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        let url = format!("http://{}{path}", self.address);
        let request = client.request(method.parse().unwrap(), url).header("X-API-Key", key);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn start_session(&self, key: &str, session: &str) -> Value {
        let body = json!({"session_id": session, "image": BUSYBOX, "environment": {"GREETING": "hello"}});
        let (status, text) = self.ask("POST", "/start", key, Some(body)).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn metric(&self, name: &str) -> u64 {
        let text = self.ask("GET", "/metrics", FILE, None).await.1;
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("gloveport_gateway_{name} ")).map(str::to_owned));
        line.map_or(0, |value| value.parse().unwrap())
    }

    async fn filled(&self, count: u64) {
        let full = async {
            while self.metric("warm_waiting{pool=\"p\"}").await < count {
                sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(LIMIT, full).await.unwrap();
    }

    async fn end(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
        self.engine.close().await;
    }
}

/// The names of all containers and volumes that this backend has started ahead, and of records.
fn of_backend(place: &Place, backend: &str) -> Vec<String> {
    let filter = format!("label=gloveport.backend={backend}");
    let containers = place.engine.docker(["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
    let volumes = place.engine.docker(["volume", "ls", "--filter", &filter, "--format", "{{.Name}}"]);
    containers.lines().chain(volumes.lines()).map(str::to_owned).collect()
}

fn backend_of(place: &Place, container: &str) -> String {
    let format = "{{index .Config.Labels \"gloveport.backend\"}}";
    place.engine.docker(["inspect", "--format", format, container])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_waited_is_its_sessions_own_for_all_gateways_and_after_a_stop() {
    let place = Place::new();
    let store = Store::open(&Location::File(place.path().join("gateway.db"))).await.unwrap();
    for tenant in ["default", "warm"] {
        store.add_tenant(tenant, &Limits::default()).await.unwrap();
    }
    let key = store.add_key("warm", "", None).await.unwrap().key.expose().to_owned();
    let one = Running::start(&place, Some(&store), 3).await;
    let two = Running::start(&place, Some(&store), 3).await;
    for running in [&one, &two] {
        running.filled(3).await;
        assert_eq!(running.ask("GET", "/list", &key, None).await.1, "{\"runtimes\":[]}");
    }
    let session = |number: usize| format!("{}-{number}", place.prefix);
    let asked = (0..6).map(|number| {
        let running = if number % 2 == 0 { &one } else { &two };
        let (key, session) = (&key, session(number));
        async move { running.start_session(key, &session).await }
    });
    let told = futures_util::future::join_all(asked).await;
    let distinct = |field: &str| told.iter().map(|it| it[field].to_string()).collect::<BTreeSet<_>>().len();
    assert_eq!((distinct("runtime_id"), distinct("session_api_key")), (6, 6));
    let hits = "warm_start_duration_seconds_count{pool=\"p\",result=\"hit\"}";
    assert_eq!(one.metric(hits).await + two.metric(hits).await, 6);
    // The other gateway, and one that is started anew, know all of it.
    let third = Running::start(&place, Some(&store), 0).await;
    for (number, told) in told.iter().enumerate() {
        for running in [&one, &two, &third] {
            let path = format!("/sessions/{}", session(number));
            let (status, found) = running.ask("GET", &path, &key, None).await;
            let found: Value = serde_json::from_str(&found).unwrap();
            assert_eq!((status, &found["runtime_id"]), (200, &told["runtime_id"]), "{found}");
            assert_eq!(found["session_api_key"], told["session_api_key"]);
            // It is another tenant's.
            assert_eq!(running.ask("GET", &path, FILE, None).await.0, 404);
        }
    }
    let all = third.engine.list(&ListFilter::default()).await.unwrap();
    let mine = |sandbox: &&Sandbox| told.iter().any(|it| it["runtime_id"] == sandbox.id.as_str());
    let sandbox = all.iter().find(mine).unwrap();
    assert_eq!(run(sandbox, "echo $GREETING; pwd -P").await, "hello\n/workspace");
    // The key with which it waited opens nothing, and its place for claims is gone.
    let format = "{{range .Config.Env}}{{println .}}{{end}}";
    let variables = place.engine.docker(["inspect", "--format", format, sandbox.id.as_str()]);
    let first = variables.lines().find_map(|line| line.strip_prefix("SESSION_API_KEY=")).unwrap().to_owned();
    assert_ne!(Some(first.as_str()), sandbox.session_key.as_ref().map(Secret::expose));
    let stranger = Sandbox { session_key: Some(Secret::new(first.clone())), ..sandbox.clone() };
    let refused = async |stranger: &Sandbox| {
        let url = format!("{}/gloveport/claim", stranger.url.as_ref().unwrap());
        let http = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        let body = json!({"session_key": "mine", "environment": {}, "secrets": {}, "plugins": []});
        let claimed = http.post(url).header("X-Session-API-Key", &first).json(&body).send().await.unwrap();
        assert!(!claimed.status().is_success());
        try_run(stranger, "echo in").await.is_err()
    };
    assert!(refused(&stranger).await);
    // A container that was stopped and goes on is still the session's, under its key.
    place.engine.docker(["stop", "--time", "5", sandbox.id.as_str()]);
    third.engine.resume(&sandbox.id).await.unwrap();
    let found = third.engine.find(&sandbox.id).await.unwrap().unwrap();
    let found = alive(&*third.engine, found).await;
    assert_eq!(found.session_key, sandbox.session_key);
    assert_eq!(run(&found, "echo $GREETING").await, "hello");
    assert!(refused(&Sandbox { session_key: stranger.session_key, ..found }).await);

    let backends: BTreeSet<String> =
        told.iter().map(|it| backend_of(&place, it["runtime_id"].as_str().unwrap())).collect();
    assert_eq!(backends.len(), 2);
    for told in &told {
        let (status, text) = one.ask("POST", "/stop", &key, Some(json!({"runtime_id": told["runtime_id"]}))).await;
        assert_eq!(status, 200, "{text}");
    }
    for running in [one, two, third] {
        running.end().await;
    }
    // What waited ended with the gateways, and no record is left.
    for backend in &backends {
        assert_eq!(of_backend(&place, backend), Vec::<String>::new());
    }
    store.close().await;
    place.nothing_left_soon().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_waits_and_is_not_well_is_replaced_and_one_whose_backend_is_gone_is_garbage() {
    let place = Place::new();
    let kinds = [WarmKind { image: Some(BUSYBOX.to_owned()), most: 2, ..WarmKind::any(2) }];
    let backend = place.backend();
    assert_eq!(backend.keep_warm(&kinds).await.unwrap(), [2]);
    let spec = gloveport_provider::SandboxSpec { keep_alive: true, ..place.spec("a", BUSYBOX) };
    let sandbox = crate::docker::start(&*backend, &spec).await;
    let label = backend_of(&place, sandbox.id.as_str());
    let waiting = || -> Vec<String> {
        of_backend(&place, &label).into_iter().filter(|name| name.starts_with("gloveport-warm-")).collect()
    };
    assert_eq!(backend.keep_warm(&kinds).await.unwrap(), [2]);
    // One is killed and one hangs: neither is given to anybody, and others take their places.
    let before = waiting();
    assert_eq!(before.len(), 2);
    place.engine.docker(["kill", before[0].as_str()]);
    place.engine.docker(["pause", before[1].as_str()]);
    assert_eq!(backend.keep_warm(&kinds).await.unwrap(), [2]);
    let after = waiting();
    assert!(after.len() == 2 && after.iter().all(|name| !before.contains(name)), "{before:?} {after:?}");
    // Fewer are to wait.
    let fewer = [WarmKind { least: 1, most: 1, ..kinds[0].clone() }];
    assert_eq!(backend.keep_warm(&fewer).await.unwrap(), [1]);
    assert_eq!(waiting().len(), 1);
    // The backend dies: what waits is garbage for the next one, and the session's sandbox is not.
    backend.release(&sandbox.id).await.unwrap();
    drop(backend);
    let next = place.backend();
    next.collect_garbage(&GcOptions::default()).await.unwrap();
    until("what waited is gone", || waiting().is_empty()).await;
    let found = next.find(&sandbox.id).await.unwrap().unwrap();
    assert_eq!(run(&found, "echo here").await, "here");
    // A fork of it is a sandbox like any other.
    let forked = next.fork(&sandbox.id, &place.session("fork"), &Progress::silent()).await.unwrap();
    let forked = alive(&*next, forked).await;
    assert_eq!(run(&forked, "echo forked").await, "forked");
    assert_ne!((&forked.session_key, &forked.session_id), (&sandbox.session_key, &sandbox.session_id));
    assert_eq!(next.find_session(&place.session("fork")).await.unwrap().unwrap().id, forked.id);
    for id in [&forked.id, &sandbox.id] {
        assert!(next.delete(id).await.unwrap());
    }
    next.close().await;
    assert_eq!(of_backend(&place, &label), Vec::<String>::new());
    place.nothing_left_soon().await;
}

//! A service on this machine that speaks E2B's API (`hosted-apis` 2 and 8), keeps state, really writes files and really runs
//! programs, and fails where a test wants it to.
//!
//! | module | idea |
//! |---|---|
//! | `machine` | where the files and processes of a sandbox are |
//! | `control` | the control plane |
//! | `agent` | the agent of each sandbox |
//! | `proxy` | the ports of programs in sandboxes |

mod agent;
mod control;
mod machine;
mod proxy;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    extract::{Request, State},
    http::Method,
    response::Response,
};
use gloveport_hosted_checks::Service;
use gloveport_stand_ins::{
    Fault, Kind, Seen,
    answers::{broken, refusal},
};
use serde_json::Value;
use tokio::net::TcpListener;

use machine::Machine;

/// The key that it takes.
pub(crate) const KEY: &str = "e2b_key_of_the_stand_in";
/// Longest body: our own program without its debug information taken out.
const BODY: usize = 1024 * 1024 * 1024;

/// A sandbox.
struct Sandbox {
    machine: Arc<Machine>,
    metadata: BTreeMap<String, String>,
    template: String,
    paused: bool,
    auto_pause: bool,
    started: SystemTime,
    ends: SystemTime,
    agent_token: String,
    traffic_token: Option<String>,
    /// How often it was made or woken: tokens of ports are new then.
    turns: u32,
}

struct Expected {
    method: Method,
    part: String,
    fault: Fault,
}

struct World {
    root: PathBuf,
    kind: Kind,
    sandboxes: BTreeMap<String, Sandbox>,
    /// Snapshots by id, with their names.
    snapshots: BTreeMap<String, (String, PathBuf)>,
    /// Answers by idempotency key.
    wishes: HashMap<String, Value>,
    faults: VecDeque<Expected>,
    seen: Vec<Seen>,
    /// Calls of newer servers are not there.
    old: bool,
    /// Sandboxes of a page.
    page: usize,
    /// Longest time limit of the plan.
    longest: Duration,
}

/// The service. It ends when this is dropped.
pub(crate) struct StandIn {
    world: Arc<Mutex<World>>,
    pub(crate) url: String,
    server: tokio::task::JoinHandle<()>,
    _root: tempfile::TempDir,
}

type Shared = Arc<Mutex<World>>;

fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service for StandIn {
    async fn start(kind: Kind) -> Self {
        let root = tempfile::tempdir().unwrap();
        let world = Arc::new(Mutex::new(World {
            root: root.path().to_owned(),
            kind,
            sandboxes: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            wishes: HashMap::new(),
            faults: VecDeque::new(),
            seen: Vec::new(),
            old: false,
            page: 100,
            longest: Duration::from_hours(1),
        }));
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&world));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { world, url, server, _root: root }
    }

    fn directory(&self) -> PathBuf {
        self.world().root.join("shared")
    }

    fn fail(&self, method: Method, part: &str, fault: Fault) {
        self.world().faults.push_back(Expected { method, part: part.to_owned(), fault });
    }

    fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.world().seen)
    }

    fn ids(&self) -> Vec<String> {
        self.world().sandboxes.keys().cloned().collect()
    }

    fn set_page(&self, page: usize) {
        self.world().page = page;
    }

    fn delete(&self, id: &str) {
        self.world().sandboxes.remove(id);
    }
}

impl StandIn {
    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// Names of the snapshots that it has.
    pub(crate) fn snapshots(&self) -> Vec<String> {
        self.world().snapshots.values().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn be_old(&self) {
        self.world().old = true;
    }

    /// The time limit of a sandbox is reached.
    pub(crate) fn expire(&self, id: &str) {
        if let Some(sandbox) = self.world().sandboxes.get_mut(id) {
            sandbox.ends = SystemTime::UNIX_EPOCH;
        }
    }

    /// A sandbox of somebody else with the same key.
    pub(crate) fn add_foreign(&self) -> String {
        self.world().create("base", BTreeMap::new(), Duration::from_hours(1), false, false)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.server.abort();
        self.world().sandboxes.clear();
    }
}

impl World {
    /// What has reached its time limit ends or rests.
    fn turn(&mut self) {
        let now = SystemTime::now();
        self.sandboxes.retain(|_, sandbox| sandbox.paused || sandbox.ends > now || sandbox.auto_pause);
        for sandbox in self.sandboxes.values_mut().filter(|sandbox| !sandbox.paused && sandbox.ends <= now) {
            sandbox.machine.stop();
            sandbox.paused = true;
        }
    }

    fn fault(&mut self, method: &Method, path: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|fault| fault.method == *method && path.contains(&fault.part))?;
        self.faults.remove(at).map(|expected| expected.fault)
    }

    /// A new name, also beside other services of this test program.
    fn next() -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        format!("i{:019}", COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

async fn answer(State(world): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let routed = header("e2b-sandbox-id").zip(header("e2b-sandbox-port").and_then(|port| port.parse::<u16>().ok()));
    if let Some((id, port)) = routed.clone().filter(|(_, port)| *port != 49_983) {
        return proxy::pass(&world, &id, port, parts, body).await;
    }
    let Ok(body) = axum::body::to_bytes(body, BODY).await else { return refusal(400, "no body") };
    let fault = {
        let mut world = lock(&world);
        world.turn();
        let json = body.get(5..).filter(|_| path.ends_with("/Start")).unwrap_or(&body);
        let json = serde_json::from_slice(json).unwrap_or_default();
        let (method, headers) = (parts.method.clone(), parts.headers.clone());
        world.seen.push(Seen { method, path: path.clone(), headers, body: json });
        world.fault(&parts.method, &path)
    };
    if let Some(fault) = &fault
        && let Some(answer) = fault.instead(refusal).await
    {
        return answer;
    }
    let answer = match routed {
        Some((id, _)) => agent::answer(&world, &id, &parts, &body),
        None => control::answer(&world, &parts, &body).await,
    };
    if matches!(fault, Some(Fault::Lost)) { broken() } else { answer }
}

/// Copies files with all that belongs to them.
fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success(), "cp {} {}", from.display(), to.display());
}

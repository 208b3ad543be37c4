//! A provider whose engine does as it is told: real servers behind a gate that can refuse, rest, vanish and come back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use gloveport_client::Pool;
use gloveport_protocol::{BoxFuture, SESSION_KEY_HEADER, Secret};
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, Isolation, Lifetime, ListFilter, LogOptions, LogStream, Phase, Progress,
    Provider, ProviderError, Restarts, Sandbox as Told, SandboxId, SandboxSpec, SandboxState, SessionId, StandsFor,
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::support::Sandbox;

/// The key of every sandbox.
pub(crate) const KEY: &str = "key of the sandbox";

/// The provider. Clones are the same engine.
#[derive(Clone)]
pub(crate) struct Engine(Arc<Inner>);

struct Inner {
    name: &'static str,
    can: Capabilities,
    /// Told while a sandbox is made.
    phases: Vec<Phase>,
    script: Mutex<Script>,
    boxes: Mutex<BTreeMap<SandboxId, Hosted>>,
    /// Held by whoever makes a sandbox.
    creating: tokio::sync::Mutex<()>,
}

/// What is to happen.
#[derive(Default)]
pub(crate) struct Script {
    /// Calls that fail.
    pub(crate) fails: BTreeSet<&'static str>,
    /// The next `create` finds that another backend was faster.
    pub(crate) lose_race: bool,
    /// A paused sandbox that cannot be resumed ends.
    pub(crate) resume_ends: bool,
    /// New sandboxes answer with this status from the beginning.
    pub(crate) born_with: u16,
    /// New sandboxes have this state from the beginning.
    pub(crate) born_as: Option<SandboxState>,
    /// URLs that new sandboxes have.
    pub(crate) urls: BTreeMap<String, String>,
    /// The token of the web editor.
    pub(crate) token: Option<String>,
    /// Every call in its order, `find` left out.
    pub(crate) calls: Vec<String>,
}

struct Hosted {
    told: Told,
    gate: Arc<Gate>,
    serving: JoinHandle<()>,
    server: Sandbox,
}

/// Ends a connection without an answer.
fn hang_up() -> ! {
    std::panic::resume_unwind(Box::new("the gate hangs up"))
}

/// What stands before a server.
struct Gate {
    server: String,
    /// The status that is answered instead; 0 lets requests through.
    status: AtomicU16,
    /// Paths of requests, and whether they were let through.
    asked: Mutex<Vec<(String, bool)>>,
    token: Option<String>,
    /// A path that is refused, and with which status.
    refused: Mutex<Option<(&'static str, u16)>>,
    http: reqwest::Client,
    gone: CancellationToken,
}

/// The runtime of OpenHands that has this name.
pub(crate) fn stands_for(name: &str) -> Option<StandsFor> {
    match name {
        "local" => Some(StandsFor::Local),
        "docker" => Some(StandsFor::Docker),
        "kubernetes" => Some(StandsFor::Kubernetes),
        "remote" => Some(StandsFor::Remote),
        _ => None,
    }
}

pub(crate) fn everything() -> Capabilities {
    Capabilities {
        isolation: Isolation::Container,
        keep_alive: true,
        pause: true,
        warm: true,
        ports: true,
        ..Capabilities::NONE
    }
}

impl Engine {
    pub(crate) fn new(name: &'static str, phases: &[Phase]) -> Self {
        Self::with(name, phases, everything())
    }

    pub(crate) fn with(name: &'static str, phases: &[Phase], mut can: Capabilities) -> Self {
        can.stands_for = stands_for(name);
        let (script, boxes, creating) = (Mutex::default(), Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { name, can, phases: phases.to_vec(), script, boxes, creating }))
    }

    pub(crate) fn provider(&self) -> Arc<dyn Provider> {
        Arc::new(self.clone())
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.0.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn boxes(&self) -> MutexGuard<'_, BTreeMap<SandboxId, Hosted>> {
        self.0.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls since the last question.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.script().calls)
    }

    /// States of all sandboxes.
    pub(crate) fn states(&self) -> Vec<SandboxState> {
        self.boxes().values().map(|hosted| hosted.told.state.clone()).collect()
    }

    /// The engine says that all sandboxes are in this state.
    pub(crate) fn set_state(&self, state: &SandboxState) {
        self.boxes().values_mut().for_each(|hosted| hosted.told.state = state.clone());
    }

    /// The gate answers with this status; 0 lets through.
    pub(crate) fn answer_with(&self, status: u16) {
        self.boxes().values().for_each(|hosted| hosted.gate.status.store(status, Ordering::SeqCst));
    }

    /// The gate answers requests of this path with this status, whatever happens to the sandboxes.
    pub(crate) fn refuse(&self, path: &'static str, status: u16) {
        self.boxes().values().for_each(|hosted| *hosted.gate.refused.lock().unwrap() = Some((path, status)));
    }

    /// Nobody listens any more, and all connections break.
    pub(crate) fn vanish(&self) {
        for hosted in self.boxes().values() {
            hosted.serving.abort();
            hosted.gate.gone.cancel();
        }
    }

    /// Another server is at the address of all sandboxes.
    pub(crate) fn move_to(&self, url: &str) {
        self.boxes().values_mut().for_each(|hosted| hosted.told.url = Some(url.to_owned()));
    }

    /// How often something was asked of the servers, and how often it reached them.
    pub(crate) fn asked(&self, path: &str) -> (usize, usize) {
        let count = |reached: bool| {
            let boxes = self.boxes();
            let asked = boxes.values().map(|hosted| hosted.gate.asked.lock().unwrap().clone());
            asked.flatten().filter(|(asked, passed)| asked == path && (*passed || !reached)).count()
        };
        (count(false), count(true))
    }

    /// The homes of the servers.
    pub(crate) fn homes(&self) -> Vec<std::path::PathBuf> {
        self.boxes().values().map(|hosted| hosted.server.home().to_owned()).collect()
    }

    /// A sandbox of a session, as another backend makes it.
    pub(crate) async fn by_another(&self, session: &str, state: SandboxState, lifetime: Lifetime) -> SandboxId {
        let spec = SandboxSpec::new(SessionId::new(session).unwrap());
        let told = self.start(&spec, state, lifetime).await;
        told.id
    }

    async fn start(&self, spec: &SandboxSpec, state: SandboxState, lifetime: Lifetime) -> Told {
        let server = Sandbox::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (urls, token, mut status) = {
            let script = self.script();
            (script.urls.clone(), script.token.clone(), script.born_with)
        };
        if state == SandboxState::Paused {
            status = 503;
        }
        let http = Pool::shared().unwrap().http().clone();
        let (status, asked) = (AtomicU16::new(status), Mutex::default());
        let gate = Arc::new(Gate {
            server: server.0.url(),
            status,
            asked,
            token,
            refused: Mutex::default(),
            http,
            gone: CancellationToken::new(),
        });
        let app = Router::new().fallback(pass).with_state(Arc::clone(&gate));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let told = Told {
            id: SandboxId::new(format!("box-{}", self.boxes().len())).unwrap(),
            session_id: spec.session_id.clone(),
            provider: self.0.name.to_owned(),
            state,
            url: Some(url),
            session_key: Some(Secret::new(KEY)),
            urls,
            ports: [("work-1".to_owned(), 12000)].into(),
            headers: [("X-Tunnel".to_owned(), Secret::new("token"))].into(),
            labels: BTreeMap::new(),
            image: None,
            workspace: Some(server.home().to_str().unwrap().to_owned()),
            lifetime,
            created: None,
            expires: None,
            restarts: Restarts::default(),
        };
        self.boxes().insert(told.id.clone(), Hosted { told: told.clone(), gate, serving, server });
        told
    }

    /// Notes a call, which may fail.
    fn call(&self, what: &'static str, note: &str) -> Result<(), ProviderError> {
        let mut script = self.script();
        script.calls.push(format!("{what}{note}"));
        if script.fails.contains(what) {
            let (engine, action) = (self.0.name.to_owned(), what.to_owned());
            return Err(ProviderError::Engine { engine, action, reason: "it was told to".to_owned() });
        }
        Ok(())
    }

    fn change(&self, id: &SandboxId, state: SandboxState, status: u16) -> Result<(), ProviderError> {
        let mut boxes = self.boxes();
        let hosted = boxes.get_mut(id).ok_or_else(|| ProviderError::NotFound(id.clone()))?;
        hosted.told.state = state;
        hosted.gate.status.store(status, Ordering::SeqCst);
        Ok(())
    }

    fn live(&self, session: &SessionId) -> Option<Told> {
        let boxes = self.boxes();
        let mut found: Vec<_> = boxes.values().filter(|hosted| hosted.told.session_id == *session).collect();
        found.sort_by_key(|hosted| !hosted.told.state.is_live());
        found.first().map(|hosted| hosted.told.clone())
    }
}

/// Lets a request through, or answers it.
async fn pass(State(gate): State<Arc<Gate>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().unwrap().as_str().trim_start_matches('/').to_owned();
    let status = gate.status.load(Ordering::SeqCst);
    let key = parts.headers.get(SESSION_KEY_HEADER);
    let tunnel = parts.headers.get("X-Tunnel");
    let known = tunnel == Some(&HeaderValue::from_static("token"))
        && (path == "alive" || key == Some(&HeaderValue::from_static(KEY)));
    let refused = gate.refused.lock().unwrap().filter(|(refused, _)| *refused == path).map(|(_, status)| status);
    let status = refused.unwrap_or(if known { status } else { 403 });
    gate.asked.lock().unwrap().push((path.clone(), status == 0));
    if status != 0 {
        let refused = StatusCode::from_u16(status).unwrap();
        return (refused, format!("{{\"detail\": \"the gate says {status}\"}}")).into_response();
    }
    if path == "vscode/connection_token"
        && let Some(token) = &gate.token
    {
        return format!("{{\"token\": \"{token}\"}}").into_response();
    }
    let url = format!("{}/{path}", gate.server);
    let mut forwarded = gate.http.request(parts.method, url);
    for name in ["content-type", "accept"] {
        if let Some(value) = parts.headers.get(name) {
            forwarded = forwarded.header(name, value);
        }
    }
    if gate.gone.is_cancelled() {
        hang_up();
    }
    let forwarded = forwarded.body(to_bytes(body, usize::MAX).await.unwrap()).send();
    let answer = tokio::select! {
        answer = forwarded => answer.unwrap(),
        () = gate.gone.cancelled() => hang_up(),
    };
    let status = answer.status();
    (status, Body::from(answer.bytes().await.unwrap())).into_response()
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Provider for Engine {
    fn name(&self) -> &str {
        self.0.name
    }

    fn capabilities(&self) -> Capabilities {
        self.0.can.clone()
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(20)
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Told, ProviderError>> {
        Box::pin(async move {
            self.call("create", "")?;
            let _alone = self.0.creating.lock().await;
            if std::mem::take(&mut self.script().lose_race) {
                self.start(spec, SandboxState::Running, Lifetime::Kept).await;
            }
            if let Some(live) = self.live(&spec.session_id).filter(|told| told.state.is_live()) {
                return Err(ProviderError::SessionExists { session: spec.session_id.clone(), sandbox: live.id });
            }
            self.0.phases.iter().for_each(|phase| progress.enter(*phase, ""));
            let lifetime = if spec.keep_alive { Lifetime::Kept } else { Lifetime::Backend };
            let state = self.script().born_as.clone().unwrap_or(SandboxState::Running);
            Ok(self.start(spec, state, lifetime).await)
        })
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Told>, ProviderError>> {
        Box::pin(async { Ok(self.boxes().get(id).map(|hosted| hosted.told.clone())) })
    }

    fn find_session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Told>, ProviderError>> {
        Box::pin(async {
            if self.script().fails.contains("find") {
                self.call("find", "")?;
            }
            Ok(self.live(session))
        })
    }

    fn list<'a>(&'a self, _: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Told>, ProviderError>> {
        Box::pin(async { Ok(self.boxes().values().map(|hosted| hosted.told.clone()).collect()) })
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            self.call("pause", "")?;
            self.change(id, SandboxState::Paused, 503)
        })
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            if self.script().resume_ends {
                self.change(id, SandboxState::Failed("its disk is gone".to_owned()), 404)?;
            }
            self.call("resume", "")?;
            self.change(id, SandboxState::Running, 0)
        })
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(async move {
            self.call("delete", "")?;
            let removed = self.boxes().remove(id);
            let Some(Hosted { serving, server, .. }) = removed else { return Ok(false) };
            serving.abort();
            server.stop().await;
            Ok(true)
        })
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, _: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(async { Err(ProviderError::NotFound(id.clone())) })
    }

    fn collect_garbage<'a>(&'a self, _: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(async { Ok(GcReport::default()) })
    }

    fn hold<'a>(&'a self, _: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async { self.call("hold", "") })
    }

    fn release<'a>(&'a self, _: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async { self.call("release", "") })
    }

    fn warm(&self, count: usize) -> BoxFuture<'_, Result<(), ProviderError>> {
        Box::pin(async move { self.call("warm", &format!(" {count}")) })
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async { Vec::new() })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

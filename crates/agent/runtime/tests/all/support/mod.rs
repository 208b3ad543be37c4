//! Sandboxes for tests: a real server in a home of its own, and one that answers as it is told.

#![expect(dead_code, reason = "each test program uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

pub(crate) mod engine;
pub(crate) mod hosted;

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use gloveport_client::ClientOptions;
use gloveport_config::Config;
use gloveport_event_stream::{
    BoxFuture, EventStream, FileStore, LocalStore, Subscriber, SubscriberError, SubscriberId,
};
use gloveport_executor::ExecutorOptions;
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor, CommandMetadata, Event, ExecuteError, McpServerEntry, Observation, RunAction,
    RunObservation,
};
use gloveport_runtime::{
    ConnectRequest, Connector, McpHost, Runtime, RuntimeError, RuntimeOptions, SandboxConnection, ServerAt,
};
use gloveport_server::{ServerOptions, SessionKey};
use tempfile::{TempDir, TempPath};
use tokio::sync::mpsc;

pub(crate) use gloveport_testing::{LIMIT, within};

/// A real server whose tools start in their home.
pub(crate) struct Sandbox(pub(crate) gloveport_testing::Server);

impl Sandbox {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut ExecutorOptions)) -> Self {
        Self::serving(ServerOptions::default(), change).await
    }

    /// One that asks for a key.
    pub(crate) async fn keyed(key: &str) -> Self {
        Self::serving(ServerOptions { session_key: Some(SessionKey::new(key)), ..ServerOptions::default() }, |_| {})
            .await
    }

    async fn serving(options: ServerOptions, change: impl FnOnce(&mut ExecutorOptions)) -> Self {
        let server = gloveport_testing::Server::start_at("127.0.0.1:0", options, |mut tools| {
            tools.environment.retain(|(name, _)| name != "HOME");
            tools.environment.push(("HOME".into(), tools.working_directory.clone().into()));
            change(&mut tools);
            tools
        })
        .await;
        Self(server)
    }

    pub(crate) fn home(&self) -> &Path {
        self.0.directory.path()
    }

    pub(crate) fn connector(&self) -> ServerAt {
        ServerAt::new(ClientOptions::new(self.0.url()))
    }

    /// The configuration whose workspace is the home of this sandbox.
    pub(crate) fn config(&self) -> Config {
        Config { workspace_mount_path_in_sandbox: self.home().to_str().unwrap().to_owned(), ..Config::default() }
    }

    pub(crate) fn options(&self) -> RuntimeOptions {
        RuntimeOptions::new(self.config(), self.connector())
    }

    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }
}

/// Runs a command and gives its output.
pub(crate) async fn output(runtime: &Runtime, command: &str) -> String {
    let run = RunAction { hidden: true, ..RunAction::new(command) };
    match within(runtime.run_action(&Action::Run(run).into())).await.unwrap() {
        Observation::Run(run) => run.content,
        other => other.content().to_owned(),
    }
}

/// The bytes of a text in hexadecimal digits.
pub(crate) fn hex(text: &str) -> String {
    text.bytes()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// A history in a directory of its own, and everything that is added to it.
pub(crate) struct History {
    pub(crate) directory: TempDir,
    pub(crate) store: Arc<dyn FileStore>,
    pub(crate) stream: EventStream,
    events: tokio::sync::Mutex<mpsc::UnboundedReceiver<Arc<Event>>>,
}

impl History {
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store: Arc<dyn FileStore> = Arc::new(LocalStore::new(directory.path(), None).unwrap());
        let stream = EventStream::open(Arc::clone(&store), "test", None).await.unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        stream.subscribe(SubscriberId::Test, "test", Arc::new(Forward(sender))).unwrap();
        Self { directory, store, stream, events: receiver.into() }
    }

    /// The next event.
    pub(crate) async fn next(&self) -> Arc<Event> {
        within(async { self.events.lock().await.recv().await.unwrap() }).await
    }

    /// The next observation.
    pub(crate) async fn observation(&self) -> Arc<Event> {
        loop {
            let event = self.next().await;
            if matches!(*event, Event::Observation(_)) {
                return event;
            }
        }
    }

    /// All events that have come and were not taken.
    pub(crate) async fn rest(&self) -> Vec<Arc<Event>> {
        let mut events = self.events.lock().await;
        std::iter::from_fn(|| events.try_recv().ok()).collect()
    }
}

struct Forward(mpsc::UnboundedSender<Arc<Event>>);

impl Subscriber for Forward {
    fn on_event(&self, event: Arc<Event>) -> BoxFuture<'_, Result<(), SubscriberError>> {
        Box::pin(async move { Ok(self.0.send(event)?) })
    }
}

type Answer = Box<dyn Fn(&ActionEvent) -> Result<Observation, ExecuteError> + Send + Sync>;

/// A sandbox that answers as it is told and remembers what it was asked.
#[derive(Clone)]
pub(crate) struct Scripted(Arc<Inner>);

struct Inner {
    answer: Answer,
    asked: Mutex<Vec<ActionEvent>>,
    updates: Mutex<Vec<Vec<McpServerEntry>>>,
    closed: Mutex<usize>,
    mcp_url: Mutex<String>,
}

impl Scripted {
    pub(crate) fn new(
        answer: impl Fn(&ActionEvent) -> Result<Observation, ExecuteError> + Send + Sync + 'static,
    ) -> Self {
        let answer: Answer = Box::new(answer);
        let (asked, updates, closed) = (Mutex::default(), Mutex::default(), Mutex::default());
        let mcp_url = Mutex::new("http://sandbox/mcp/sse".to_owned());
        Self(Arc::new(Inner { answer, asked, updates, closed, mcp_url }))
    }

    /// All commands succeed and print nothing, all files are missing.
    pub(crate) fn obedient() -> Self {
        Self::new(|event| Ok(succeed(event)))
    }

    pub(crate) fn asked(&self) -> Vec<ActionEvent> {
        self.0.asked.lock().unwrap().clone()
    }

    /// The commands that were to be run.
    pub(crate) fn commands(&self) -> Vec<String> {
        let command = |event: ActionEvent| match event.action {
            Action::Run(run) => Some(run.command),
            _ => None,
        };
        self.asked().into_iter().filter_map(command).collect()
    }

    /// From now on its MCP servers are served there.
    pub(crate) fn serve_mcp_at(&self, url: String) {
        *self.0.mcp_url.lock().unwrap() = url;
    }

    pub(crate) fn forget(&self) {
        self.0.asked.lock().unwrap().clear();
    }

    pub(crate) fn updates(&self) -> Vec<Vec<McpServerEntry>> {
        self.0.updates.lock().unwrap().clone()
    }

    pub(crate) fn closed(&self) -> usize {
        *self.0.closed.lock().unwrap()
    }
}

/// What a sandbox answers in which all commands succeed and no file is there.
pub(crate) fn succeed(event: &ActionEvent) -> Observation {
    match &event.action {
        Action::Run(run) => Observation::Run(succeeded(&run.command, "")),
        Action::Write(write) => Observation::Write(gloveport_protocol::WriteObservation::new("", write.path.clone())),
        other => Observation::Error(gloveport_protocol::ErrorObservation::new(format!("no {}", other.kind()))),
    }
}

pub(crate) fn succeeded(command: &str, output: &str) -> RunObservation {
    let metadata = CommandMetadata { exit_code: 0, ..CommandMetadata::default() };
    RunObservation::new(command, output, false, metadata)
}

impl Connector for Scripted {
    fn connect<'a>(&'a self, _: ConnectRequest<'a>) -> BoxFuture<'a, Result<Arc<dyn SandboxConnection>, RuntimeError>> {
        Box::pin(async { Ok(Arc::new(self.clone()) as Arc<dyn SandboxConnection>) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        *self.0.closed.lock().unwrap() += 1;
        Box::pin(async {})
    }
}

impl ActionExecutor for Scripted {
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        self.0.asked.lock().unwrap().push(event.clone());
        Box::pin(async move { (self.0.answer)(event) })
    }
}

impl SandboxConnection for Scripted {
    fn list_files<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Vec<String>, RuntimeError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn copy_to<'a>(&'a self, source: &'a Path, _: &'a str, _: bool) -> BoxFuture<'a, Result<(), RuntimeError>> {
        Box::pin(async { Err(RuntimeError::SourceMissing(source.to_owned())) })
    }

    fn copy_from<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<TempPath, RuntimeError>> {
        Box::pin(async { Err(RuntimeError::SourceMissing(path.into())) })
    }

    fn mcp(&self) -> Option<&dyn McpHost> {
        Some(self)
    }

    fn session_key(&self) -> Option<gloveport_protocol::Secret> {
        Some("session key".into())
    }
}

impl McpHost for Scripted {
    fn update<'a>(&'a self, servers: &'a [McpServerEntry]) -> BoxFuture<'a, Result<String, RuntimeError>> {
        self.0.updates.lock().unwrap().push(servers.to_vec());
        Box::pin(async { Ok(String::new()) })
    }

    fn url(&self) -> String {
        self.0.mcp_url.lock().unwrap().clone()
    }
}

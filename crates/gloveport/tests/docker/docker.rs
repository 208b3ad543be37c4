//! A Docker engine for tests, backends on it, and what they leave.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first broken assumption")]
#![expect(clippy::print_stderr, reason = "what a test saw is shown when it fails")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use gloveport_client::ActionExecutionClient;
use gloveport_config::Config;
use gloveport_hosting::{WaitOptions, wait_until_alive};
use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor as _, ExecuteError, Observation, ReadAction, RunAction, WriteAction,
};
use gloveport_provider::{Progress, Provider, ProviderContext, ProviderError, Sandbox, SandboxSpec, SessionId};
use gloveport_provider_docker::Docker;
pub(crate) use gloveport_testing::until;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for anything.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

pub(crate) const DEBIAN: &str = "gloveport-test/debian:12";
pub(crate) const BUSYBOX: &str = "gloveport-test/busybox:1";
pub(crate) const BARE: &str = "gloveport-test/bare:1";
pub(crate) const USER: &str = "gloveport-test/user:1";
pub(crate) const PYTHON: &str = "gloveport-test/python:3";

/// An engine, as its socket's URL.
#[derive(Clone, Debug)]
pub(crate) struct Engine(pub(crate) String);

impl Engine {
    /// The Docker engine that `scripts/docker` started for all tests.
    pub(crate) fn shared() -> Self {
        let url = std::env::var("GLOVEPORT_TEST_DOCKER");
        Self(
            url.unwrap_or_else(|_| {
                panic!("GLOVEPORT_TEST_DOCKER is not set; run tests/docker/run, see CONTRIBUTING.md")
            }),
        )
    }

    /// The service of Podman that `scripts/docker` started, where it could.
    pub(crate) fn podman() -> Option<Self> {
        let url = std::env::var("GLOVEPORT_TEST_PODMAN").ok();
        if url.is_none() {
            eprintln!("skipped: GLOVEPORT_TEST_PODMAN is not set; see CONTRIBUTING.md");
        }
        url.map(Self)
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new("timeout");
        command.args(["60", "docker", "--host", &self.0]).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs the command line of Docker, which must succeed, and gives its output.
    pub(crate) fn docker<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        let mut command = self.command(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The same where there may be nothing to do it with.
    pub(crate) fn try_docker<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> bool {
        self.command(arguments).output().unwrap().status.success()
    }

    /// Names of all containers, networks and volumes that have this text in their name or labels.
    pub(crate) fn left(&self, text: &str) -> Vec<String> {
        let mut left = Vec::new();
        for (what, arguments) in [
            ("container", vec!["ps", "--all", "--no-trunc", "--format", "{{.Names}} ({{.Status}}) {{.Labels}}"]),
            ("network", vec!["network", "ls", "--no-trunc", "--format", "{{.Name}} {{.Labels}}"]),
            ("volume", vec!["volume", "ls", "--format", "{{.Name}} {{.Labels}}"]),
        ] {
            let listed = self.docker(arguments);
            left.extend(listed.lines().filter(|line| line.contains(text)).map(|line| format!("{what} {line}")));
        }
        left
    }

    /// The containers of a session, by the name that the provider gave them.
    pub(crate) fn containers_of(&self, session: &SessionId) -> Vec<String> {
        let listed = self.docker(["ps", "--all", "--format", "{{.Names}}"]);
        listed.lines().filter(|name| name.contains(session.as_str())).map(str::to_owned).collect()
    }

    /// Its only one.
    pub(crate) fn container_of(&self, session: &SessionId) -> String {
        let containers = self.containers_of(session);
        assert_eq!(containers.len(), 1, "{containers:?}");
        containers.into_iter().next().unwrap()
    }
}

/// An engine of the test's own, which it may stop. It is ended when this is dropped.
pub(crate) struct OwnEngine {
    directory: TempDir,
    images: &'static str,
    pub(crate) engine: Engine,
}

impl OwnEngine {
    pub(crate) fn with(images: &'static str) -> Self {
        // The paths of sockets are short.
        let directory = tempfile::Builder::new().prefix("gpd-").tempdir_in("/tmp").unwrap();
        let socket = directory.path().canonicalize().unwrap().join("run/docker.sock");
        let own = Self { directory, images, engine: Engine(format!("unix://{}", socket.display())) };
        own.script("up");
        own
    }

    fn script(&self, verb: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/docker");
        let mut command = Command::new(script);
        command.arg(verb).env("GLOVEPORT_DOCKER_DIR", self.directory.path());
        let output = command.env("GLOVEPORT_DOCKER_IMAGES", self.images).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{verb}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Ends it as `systemctl stop docker` does.
    pub(crate) fn stop(&self) {
        self.script("stop");
    }

    pub(crate) fn start(&self) {
        self.script("up");
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        self.script("purge");
    }
}

/// A home for backends on one engine, with names of sessions that nobody else has.
pub(crate) struct Place {
    root: TempDir,
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    /// Variables of its backends.
    pub(crate) variables: BTreeMap<String, String>,
    /// What its sessions begin with.
    pub(crate) prefix: String,
}

static PLACES: AtomicU32 = AtomicU32::new(0);

impl Place {
    pub(crate) fn new() -> Self {
        Self::on(&Engine::shared())
    }

    pub(crate) fn on(engine: &Engine) -> Self {
        let root = tempfile::tempdir().unwrap();
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("t{}x{number}", std::process::id());
        fs::create_dir(root.path().join("tmp")).unwrap();
        Self { root, engine: engine.clone(), config: Config::default(), variables: BTreeMap::new(), prefix }
    }

    /// Sets keys of `[extended.docker]`.
    pub(crate) fn extend(&mut self, keys: &Value) {
        let Value::Object(map) = json!({ "docker": keys }) else { unreachable!() };
        self.config.extended = map.into();
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    /// A new directory in it.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    }

    pub(crate) fn context(&self) -> ProviderContext {
        let mut context = context_at(self.path(), &self.engine, self.config.clone());
        context.environment.extend(self.variables.clone());
        context
    }

    pub(crate) fn backend(&self) -> Arc<dyn Provider> {
        Docker::factory(&self.context()).unwrap()
    }

    pub(crate) fn session(&self, name: &str) -> SessionId {
        SessionId::new(format!("{}-{name}", self.prefix)).unwrap()
    }

    pub(crate) fn spec(&self, name: &str, image: &str) -> SandboxSpec {
        SandboxSpec { image: Some(image.to_owned()), ..SandboxSpec::new(self.session(name)) }
    }

    /// Nothing that names one of its sessions is in the engine any more.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.engine.left(&self.prefix), Vec::<String>::new());
    }

    /// The same, for what ends by itself.
    pub(crate) async fn nothing_left_soon(&self) {
        until("nothing is left", || self.engine.left(&self.prefix).is_empty()).await;
    }
}

impl Drop for Place {
    /// A test that failed leaves nothing to others.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let listed = self.engine.command(["ps", "--all", "--format", "{{.Names}}"]).output().unwrap();
            let names = String::from_utf8_lossy(&listed.stdout).into_owned();
            for name in names.lines().filter(|name| name.contains(&self.prefix)) {
                let logs = self.engine.command(["logs", "--tail", "20", name]).output().unwrap();
                eprintln!("log of {name}: {}", String::from_utf8_lossy(&logs.stderr));
                self.engine.try_docker(["rm", "--force", "--volumes", name]);
            }
        }
    }
}

/// What a backend is made from whose home is this directory.
pub(crate) fn context_at(root: &Path, engine: &Engine, config: Config) -> ProviderContext {
    let environment: BTreeMap<String, String> = [
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), root.display().to_string()),
        ("TMPDIR".to_owned(), root.join("tmp").display().to_string()),
        ("DOCKER_HOST".to_owned(), engine.0.clone()),
    ]
    .into();
    ProviderContext {
        config,
        program: env!("CARGO_BIN_EXE_gloveport").into(),
        inside: env!("CARGO_BIN_EXE_gloveport").into(),
        environment,
        argument: None,
    }
}

/// Makes a sandbox and waits for its server.
pub(crate) async fn start(backend: &dyn Provider, spec: &SandboxSpec) -> Sandbox {
    let made = backend.create(spec, &Progress::silent()).await.unwrap();
    alive(backend, made).await
}

pub(crate) async fn alive(backend: &dyn Provider, sandbox: Sandbox) -> Sandbox {
    let options = WaitOptions { limit: LIMIT, ..WaitOptions::default() };
    wait_until_alive(backend, sandbox, &options, &Progress::silent()).await.unwrap()
}

/// The error of a sandbox that cannot be made, and that it came within this time.
pub(crate) async fn refused(backend: &dyn Provider, spec: &SandboxSpec, limit: Duration) -> ProviderError {
    let began = Instant::now();
    let progress = Progress::silent();
    let made = tokio::time::timeout(limit, async {
        match backend.create(spec, &progress).await {
            Ok(sandbox) => panic!("it was made: {sandbox:?}"),
            Err(error) => error,
        }
    });
    let error = made.await.unwrap_or_else(|_| panic!("no answer within {limit:?}"));
    eprintln!("{:?}: {error}", began.elapsed());
    error
}

pub(crate) fn client(sandbox: &Sandbox) -> ActionExecutionClient {
    gloveport_hosting::client(sandbox).unwrap()
}

/// Executes an action in a sandbox.
pub(crate) async fn execute(sandbox: &Sandbox, action: Action) -> Result<Observation, ExecuteError> {
    let event = ActionEvent { timeout: Some(LIMIT.as_secs_f64()), ..ActionEvent::from(action) };
    client(sandbox).execute(&event).await
}

/// Runs a command in a sandbox and gives its output.
pub(crate) async fn run(sandbox: &Sandbox, command: &str) -> String {
    try_run(sandbox, command).await.unwrap()
}

/// The same where it may fail.
pub(crate) async fn try_run(sandbox: &Sandbox, command: &str) -> Result<String, ExecuteError> {
    Ok(match execute(sandbox, Action::Run(RunAction::new(command))).await? {
        Observation::Run(observation) => observation.content,
        other => format!("{other:?}"),
    })
}

/// Writes a file and gives what the server says.
pub(crate) async fn write(sandbox: &Sandbox, path: &str, content: &str) -> Observation {
    let action = WriteAction::new(path, content);
    execute(sandbox, Action::Write(action)).await.unwrap()
}

/// Reads a file.
pub(crate) async fn read(sandbox: &Sandbox, path: &str) -> String {
    let action = ReadAction::new(path);
    match execute(sandbox, Action::Read(action)).await.unwrap() {
        Observation::Read(observation) => observation.content,
        other => format!("{other:?}"),
    }
}

/// The body of what a server gives for a URL without a name in it, if it answers.
pub(crate) fn get(url: &str) -> Option<String> {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address.replace("localhost", "127.0.0.1")).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write!(stream, "GET /{path} HTTP/1.0\r\nhost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

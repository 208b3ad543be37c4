//! Where the server runs.

use std::{io, net::TcpListener, process::Stdio, time::Duration};

use gloveport_protocol::BoxFuture;
use tokio::{process::Command, sync::OnceCell, time};

use crate::error::AnalyzerError;

/// Provides a running server.
pub trait InvariantHost: Send + Sync {
    /// Starts or finds the server; the result is its URL. It may not answer yet.
    fn start(&self) -> BoxFuture<'_, Result<String, AnalyzerError>>;

    /// Ends what `start` started.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// A server that somebody else runs.
#[derive(Debug, Clone)]
pub struct FixedHost {
    url: String,
}

impl FixedHost {
    /// The server at this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into() }
    }
}

impl InvariantHost for FixedHost {
    fn start(&self) -> BoxFuture<'_, Result<String, AnalyzerError>> {
        Box::pin(async { Ok(self.url.clone()) })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Name of the container; all sessions of a machine share it.
const CONTAINER: &str = "openhands-invariant-server";
/// The image.
const IMAGE: &str = "ghcr.io/invariantlabs-ai/server:openhands";
/// The port of the server in its container.
const PORT: u16 = 8000;
/// The ports of the host among which one is chosen.
const HOST_PORTS: std::ops::Range<u16> = 30_000..40_000;
/// How often the container is looked at until it runs.
const POLLS: u32 = 180;
/// Time for a command that changes little.
const SHORT: Duration = Duration::from_secs(30);
/// Time to make the container; the image may have to come over the network first.
const LONG: Duration = Duration::from_mins(10);

/// A container of the local Docker, driven with its command line.
///
/// A container that runs already is used, and one that is stopped is started. It is stopped at the end only if it was
/// started here, since other sessions use it too.
#[derive(Debug)]
pub struct DockerHost {
    program: String,
    pause: Duration,
    /// Whether the container was started here.
    started: OnceCell<()>,
}

impl Default for DockerHost {
    fn default() -> Self {
        Self::new("docker")
    }
}

/// What a `docker` command said.
struct Output {
    success: bool,
    stdout: String,
    stderr: String,
}

impl DockerHost {
    /// With another program in place of `docker`, such as `podman`.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), pause: Duration::from_secs(1), started: OnceCell::new() }
    }

    /// With another wait between two looks at the container.
    #[must_use]
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    async fn docker(&self, command: &'static str, args: &[&str], limit: Duration) -> Result<Output, AnalyzerError> {
        let run = Command::new(&self.program).arg(command).args(args).stdin(Stdio::null()).kill_on_drop(true).output();
        let failed = |source: io::Error| AnalyzerError::NoDocker { program: self.program.clone(), source };
        let output = time::timeout(limit, run)
            .await
            .map_err(|_elapsed| AnalyzerError::Docker {
                command,
                reason: format!("no end after {} s", limit.as_secs()),
            })?
            .map_err(failed)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok(Output { success: output.status.success(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
    }

    /// The same for a command whose failure ends everything.
    async fn must(&self, command: &'static str, args: &[&str], limit: Duration) -> Result<String, AnalyzerError> {
        let output = self.docker(command, args, limit).await?;
        if output.success { Ok(output.stdout) } else { Err(failure(command, &output)) }
    }

    /// The state of the container, and nothing if there is none.
    async fn state(&self) -> Result<Option<String>, AnalyzerError> {
        let output =
            self.docker("inspect", &["--type", "container", "--format", "{{.State.Status}}", CONTAINER], SHORT).await?;
        match output {
            Output { success: true, stdout, .. } => Ok(Some(stdout)),
            Output { ref stderr, .. } if stderr.to_ascii_lowercase().contains("no such") => Ok(None),
            output => Err(failure("inspect", &output)),
        }
    }

    async fn run(&self) -> Result<(), AnalyzerError> {
        let mapping = format!("127.0.0.1:{}:{PORT}", free_port());
        let args = ["--detach", "--name", CONTAINER, "--platform", "linux/amd64", "--publish", &mapping, IMAGE];
        self.must("run", &args, LONG).await.map(drop)
    }

    async fn wait_until_running(&self) -> Result<(), AnalyzerError> {
        for _ in 0..POLLS {
            if self.state().await?.as_deref() == Some("running") {
                return Ok(());
            }
            time::sleep(self.pause).await;
        }
        let seconds = u64::from(POLLS) * self.pause.as_secs();
        Err(AnalyzerError::ContainerNotRunning { name: CONTAINER.to_owned(), seconds })
    }
}

impl InvariantHost for DockerHost {
    fn start(&self) -> BoxFuture<'_, Result<String, AnalyzerError>> {
        Box::pin(async {
            let state = self.state().await?;
            if state.as_deref() != Some("running") {
                match state {
                    Some(_) => drop(self.must("start", &[CONTAINER], SHORT).await?),
                    None => self.run().await?,
                }
                // A second start after a failure finds it set.
                let _first = self.started.set(());
                self.wait_until_running().await?;
            }
            let ports = self.must("port", &[CONTAINER, &format!("{PORT}/tcp")], SHORT).await?;
            let port = ports.lines().find_map(|line| line.rsplit_once(':')?.1.trim().parse::<u16>().ok());
            let port = port.ok_or_else(|| AnalyzerError::Docker {
                command: "port",
                reason: format!("port {PORT} of {CONTAINER} cannot be reached from this machine"),
            })?;
            Ok(format!("http://localhost:{port}"))
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.started.initialized()
                && let Err(error) = self.must("stop", &[CONTAINER], SHORT).await
            {
                tracing::warn!(%error, "the container of the analyzer was not stopped");
            }
        })
    }
}

fn failure(command: &'static str, output: &Output) -> AnalyzerError {
    let reason: String = output.stderr.chars().take(500).collect();
    AnalyzerError::Docker { command, reason }
}

/// A port of this machine that nobody listens on right now.
fn free_port() -> u16 {
    let span = HOST_PORTS.end - HOST_PORTS.start;
    for _ in 0..100 {
        let mut bytes = [0; 2];
        if getrandom::fill(&mut bytes).is_err() {
            break;
        }
        let port = HOST_PORTS.start + u16::from_be_bytes(bytes) % span;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    // Docker says so if it is taken.
    HOST_PORTS.start
}

//! Plugins: manifests, services that are started when they are used, and the trait for plugins in Rust.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_protocol::{ActionEvent, BoxFuture, ExecuteError, Observation};
use gloveport_sys::Surroundings;
use tokio::sync::watch;

/// A plugin as the sandbox sees it.
pub trait Plugin: fmt::Debug + Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &str;

    /// Names of plugins that must be initialised before this one.
    fn requires(&self) -> Vec<String> {
        Vec::new()
    }

    /// Makes it usable as far as the sandbox waits for it. What takes long goes on in the background.
    fn initialize<'a>(&'a self, host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>>;

    /// How it stands, and every change of that.
    fn state(&self) -> watch::Receiver<PluginState>;

    /// Kinds of actions that it executes.
    fn handles(&self) -> Vec<String> {
        Vec::new()
    }

    /// Executes an action of one of these kinds.
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        let _ = event;
        let text = format!("{} plugin does not support run method", self.name());
        Box::pin(async move { Err(ExecuteError::Failed(text)) })
    }

    /// The service that requests for `/plugins/NAME/` go to.
    fn service(&self) -> Option<Arc<Service>> {
        None
    }

    /// What a browser shows to be let in (`/vscode/connection_token`); none for a plugin without a service.
    fn token(&self) -> Option<String> {
        None
    }

    /// Ends it, and returns when nothing of it is left.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// What a plugin is started with.
#[derive(Debug, Clone)]
pub struct PluginHost {
    /// As whom, where and with what environment its programs run.
    pub surroundings: Surroundings,
    /// The workspace of the sandbox.
    pub workspace: PathBuf,
}

/// How a plugin stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginState {
    /// Usable when it is needed, and not started.
    Idle,
    /// On its way.
    Starting {
        /// What is being done, such as `installing ipykernel`.
        step: String,
    },
    /// Usable.
    Ready,
    /// Not usable.
    Failed {
        /// What failed.
        reason: String,
        /// What can be done about it.
        remedy: String,
    },
    /// Ended.
    Stopped,
}

/// Why a plugin cannot be initialised. The sandbox does not start then, if it was asked for by name.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct PluginError {
    /// What failed.
    pub reason: String,
    /// What can be done about it.
    pub remedy: String,
}

/// What a service is.
#[derive(Debug, Clone)]
pub struct ServiceSpec {
    /// Name, for logs.
    pub name: String,
    /// Command that is run once before the first start.
    pub set_up: Option<Vec<OsString>>,
    /// Time for it.
    pub set_up_limit: Duration,
    /// The command. `{port}`, `{socket}`, `{workspace}` and `{base}` in its words are replaced.
    pub command: Vec<OsString>,
    /// Variables beside those of the sandbox; replaced likewise.
    pub environment: BTreeMap<String, String>,
    /// Where it listens.
    pub listens: Listens,
    /// When it is healthy.
    pub health: Health,
    /// Time from its start until it is healthy.
    pub start_limit: Duration,
    /// Time without a use after which it is stopped; it is started again by the next use.
    pub idle_stop: Option<Duration>,
    /// Whether it is started with the sandbox, or by its first use.
    pub eager: bool,
}

/// Where a service listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listens {
    /// On this port of the loopback address.
    Port(u16),
    /// On a free port, which it is told as `{port}`.
    AnyPort,
    /// At a socket, which it is told as `{socket}`.
    Socket,
    /// Nowhere.
    Nowhere,
}

/// When a service is healthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It accepts connections.
    Accepts,
    /// It answers this path with a status below 500.
    Http(String),
    /// It runs.
    Runs,
}

/// Where a running service is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A port of the loopback address.
    Port(u16),
    /// A socket.
    Socket(PathBuf),
}

/// A supervised program that serves: started when it is used, watched, started again when it ends, stopped when nobody
/// uses it.
#[derive(Debug)]
pub struct Service {
    state: watch::Receiver<PluginState>,
}

/// A use of a service. While it is held the service is not stopped for want of use.
#[derive(Debug)]
pub struct Lease {
    endpoint: Endpoint,
}

impl Lease {
    /// Where the service is reached.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Service {
    /// A service that is not started. Must be called within a tokio runtime.
    pub fn new(spec: ServiceSpec, host: PluginHost) -> Arc<Self> {
        let _ = (spec, host);
        todo!()
    }

    /// Starts the service if it does not run, waits until it is healthy, and counts as a use until it is dropped.
    pub async fn lease(&self) -> Result<Lease, PluginError> {
        todo!()
    }

    /// How it stands, and every change of that.
    pub fn state(&self) -> watch::Receiver<PluginState> {
        self.state.clone()
    }

    /// Since when it stands so.
    pub fn since(&self) -> Instant {
        todo!()
    }

    /// The last bytes that it printed.
    pub fn logs(&self) -> Vec<u8> {
        todo!()
    }

    /// Ends it for good, and returns when nothing of it is left.
    pub async fn stop(&self) {
        todo!()
    }
}

/// A manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Name of the plugin.
    pub name: String,
}

impl Manifest {
    /// Reads a manifest; every error names file, line and column.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        let _ = path;
        todo!()
    }
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ManifestError(String);

//! The plugin: what is decided when the sandbox starts, and what runs until it ends (`ipython-and-plugins` 4.1).

use std::{
    ffi::OsStr,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gloveport_plugin::{Plugin, PluginError, PluginHost, PluginState, Service};
use gloveport_protocol::BoxFuture;
use gloveport_proxy::{Admission, Mount, ProxyLimits, ServiceProxy};
use gloveport_sys::Surroundings;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    ownership,
    port::{base_path, listen, listen_at},
    program::{Program, ROOT},
    settings,
};

/// The name on the command line.
const NAME: &str = "vscode";

/// How the plugin is set up.
#[derive(Debug)]
enum Arrangement {
    /// As callers of OpenHands 0.62 expect it: the environment says where it listens, and the workspace gets settings.
    OfEnvironment,
    /// As clients of OpenHands' SDK 1.x expect it, which build its address themselves.
    Fixed { address: SocketAddr, token: Option<Secret>, base_path: String },
}

/// The plugin `vscode`.
#[derive(Debug)]
pub struct VsCode {
    arrangement: Arrangement,
    state: watch::Sender<PluginState>,
    running: OnceLock<Running>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What there is after an initialisation that did not end in a disabled plugin.
#[derive(Debug)]
struct Running {
    service: Arc<Service>,
    token: Secret,
    /// Whether the plugin listens on the port that callers of OpenHands expect.
    has_port: bool,
}

/// Text that is not shown.
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl Default for VsCode {
    fn default() -> Self {
        Self::new(Arrangement::OfEnvironment)
    }
}

impl VsCode {
    /// One that listens there, under this path (empty for the root). A browser shows the token to be let in, which is
    /// random if absent.
    pub fn at(address: SocketAddr, base_path: String, token: Option<String>) -> Self {
        Self::new(Arrangement::Fixed { address, token: token.map(Secret), base_path })
    }

    fn new(arrangement: Arrangement) -> Self {
        Self {
            arrangement,
            state: watch::Sender::new(PluginState::Idle),
            running: OnceLock::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// The server that the plugin would start; otherwise what was looked for, and what can be done.
    pub fn program(surroundings: &Surroundings) -> Result<PathBuf, PluginError> {
        let found = Program::find(surroundings).map_err(|(reason, remedy)| PluginError::new(reason, remedy))?;
        Ok(found.path().to_owned())
    }

    async fn begin(&self, host: &PluginHost) -> Result<(), PluginError> {
        let surroundings = &host.surroundings;
        if self.running.get().is_some() || self.stop.is_cancelled() {
            return Ok(());
        }
        if matches!(self.arrangement, Arrangement::OfEnvironment) {
            if !is_known_user(surroundings) {
                let user = &surroundings.user_name;
                let reason = format!("VS Code runs as root, openhands or $RUNTIME_USERNAME only, not as {user}");
                self.disable(reason, "set RUNTIME_USERNAME to that name");
                return Ok(());
            }
            let workspace = host.workspace.join(surroundings.variable("WORKSPACE_BASE").unwrap_or_default());
            let identity = surroundings.identity.clone();
            let written = tokio::task::spawn_blocking(move || settings::write(&workspace, identity.as_ref())).await;
            written.unwrap_or_else(|error| Err(PluginError::new(error.to_string(), "start the sandbox again")))?;
        }
        let program = match Program::find(surroundings) {
            Ok(program) => program,
            Err((reason, remedy)) => {
                self.disable(reason, remedy);
                return Ok(());
            }
        };
        let token = match self.token_or_new() {
            Ok(token) => token,
            Err(error) => {
                self.disable(format!("the system gives no random numbers: {error}"), "start the sandbox again");
                return Ok(());
            }
        };
        self.give_files(surroundings);
        self.offer(host, &program, token).await;
        Ok(())
    }

    fn token_or_new(&self) -> Result<String, gloveport_ids::Error> {
        match &self.arrangement {
            Arrangement::Fixed { token: Some(token), .. } => Ok(token.0.clone()),
            _ => gloveport_ids::uuid(),
        }
    }

    /// Makes the service, and listens on the port if there is one.
    async fn offer(&self, host: &PluginHost, program: &Program, token: String) {
        let (base, listener) = match &self.arrangement {
            Arrangement::OfEnvironment => (base_path(&host.surroundings), listen(&host.surroundings).await),
            Arrangement::Fixed { address, base_path, .. } => (base_path.clone(), listen_at(*address).await),
        };
        let service = Service::new(program.service(&base), in_workspace(host));
        match &listener {
            Ok(_) => tracing::info!("VS Code starts when its port or /plugins/{NAME}/ is opened"),
            Err(reason) => tracing::warn!(%reason, "VS Code has no port of its own"),
        }
        let running =
            Running { service: Arc::clone(&service), token: Secret(token.clone()), has_port: listener.is_ok() };
        if self.running.set(running).is_err() {
            return;
        }
        if let Ok(listener) = listener {
            self.serve(listener, &service, program, token, &base);
        }
        let (mut theirs, ours, stop) = (service.state(), self.state.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            loop {
                let state = theirs.borrow_and_update().clone();
                ours.send_replace(state);
                if !matches!(stop.run_until_cancelled(theirs.changed()).await, Some(Ok(()))) {
                    return;
                }
            }
        });
    }

    fn serve(&self, listener: TcpListener, service: &Arc<Service>, program: &Program, token: String, base: &str) {
        let expected = if program.knows_base_path() { base } else { "" };
        let proxy = ServiceProxy {
            name: "VS Code".to_owned(),
            service: Arc::clone(service),
            mount: Mount::new(base, expected).tolerant(),
            admission: Admission::new(NAME, Some(token)),
            limits: ProxyLimits::default(),
            stop: self.stop.clone(),
        };
        self.tasks.spawn(gloveport_proxy::serve(listener, Arc::new(proxy)));
    }

    /// Gives the server's files to the user in the background; it can be started meanwhile.
    fn give_files(&self, surroundings: &Surroundings) {
        let Some(identity) = surroundings.identity.clone() else { return };
        let stop = self.stop.clone();
        self.tasks.spawn_blocking(move || {
            if let Err(error) = ownership::give(Path::new(ROOT), &identity, &stop) {
                tracing::warn!(%error, "the files in {ROOT} cannot all be given to their user");
            }
        });
    }

    fn disable(&self, reason: impl Into<String>, remedy: impl Into<String>) {
        let (reason, remedy) = (reason.into(), remedy.into());
        match self.arrangement {
            Arrangement::OfEnvironment => tracing::warn!("VS Code is disabled: {reason}; {remedy}"),
            // Nobody has asked for it by name.
            Arrangement::Fixed { .. } => tracing::info!("there is no VS Code: {reason}; {remedy}"),
        }
        self.state.send_replace(PluginState::Failed { reason, remedy });
    }
}

impl Plugin for VsCode {
    fn name(&self) -> &str {
        NAME
    }

    fn initialize<'a>(&'a self, host: &'a PluginHost) -> BoxFuture<'a, Result<(), PluginError>> {
        Box::pin(self.begin(host))
    }

    fn state(&self) -> watch::Receiver<PluginState> {
        self.state.subscribe()
    }

    fn service(&self) -> Option<Arc<Service>> {
        self.running.get().map(|running| Arc::clone(&running.service))
    }

    fn token(&self) -> Option<String> {
        self.running.get().filter(|running| running.has_port).map(|running| running.token.0.clone())
    }

    fn path_token(&self) -> Option<String> {
        self.running.get().map(|running| running.token.0.clone())
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.stop.cancel();
            if let Some(running) = self.running.get() {
                running.service.stop().await;
            }
            self.tasks.close();
            self.tasks.wait().await;
            self.state.send_replace(PluginState::Stopped);
        })
    }
}

/// Whether this is one of the users that the reference starts VS Code for.
fn is_known_user(surroundings: &Surroundings) -> bool {
    let name = surroundings.user_name.as_str();
    let named = surroundings.variable("RUNTIME_USERNAME").and_then(OsStr::to_str);
    matches!(name, "root" | "openhands") || named == Some(name)
}

/// The same host, with programs in the directory that the sandbox's image says.
fn in_workspace(host: &PluginHost) -> PluginHost {
    let mounted = host.surroundings.variable("WORKSPACE_MOUNT_PATH_IN_SANDBOX").map(PathBuf::from);
    let workspace = mounted.filter(|path| path.is_dir()).unwrap_or_else(|| host.workspace.clone());
    let surroundings = Surroundings { directory: workspace.clone(), ..host.surroundings.clone() };
    PluginHost { surroundings, workspace }
}

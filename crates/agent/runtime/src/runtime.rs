//! The session: one sandbox, and what a backend does around its actions (runtime-interface 2, 3, 8).

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gloveport_config::Config;
use gloveport_event_stream::{EventStream, FileStore, SubscriberId};
use gloveport_protocol::{McpServerEntry, Secret};
use gloveport_security::Gate;
use tempfile::TempPath;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio_util::sync::CancellationToken;

use crate::{
    ConnectRequest, Connector, InitialEnvironment, RuntimeError, RuntimeOptions, RuntimeStatus, SandboxConnection,
    StatusReporter,
    dispatch::{Dispatcher, Handling},
    editing, environment, exit, gate,
    git_providers::{GitProviders, ProviderToken, ProviderType, Refresh},
    llm_edit::LlmEditor,
};

/// A session. Clones are the same session; it is closed when the last one is dropped.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) session: Arc<Session>,
}

pub(crate) struct Session {
    pub(crate) config: Config,
    pub(crate) sid: String,
    pub(crate) user_id: Option<String>,
    pub(crate) stream: Option<EventStream>,
    pub(crate) file_store: Option<Arc<dyn FileStore>>,
    pub(crate) status: Arc<StatusReporter>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) llm_editor: Option<LlmEditor>,
    pub(crate) providers: GitProviders,
    pub(crate) refresh: Option<Refresh>,
    /// Events of the stream that this session itself put there, and what is to be done about them.
    pub(crate) own: Mutex<HashMap<i64, Handling>>,
    /// The stdio servers that run in the sandbox.
    pub(crate) mcp_servers: AsyncMutex<Vec<McpServerEntry>>,
    /// Ends everything that waits.
    pub(crate) stop: CancellationToken,
    pub(crate) git_scripts: OnceCell<crate::git::Scripts>,
    /// Is cancelled when the session is connected.
    pub(crate) ready: CancellationToken,
    pub(crate) connector: Arc<dyn Connector>,
    connection: OnceLock<Arc<dyn SandboxConnection>>,
    connected: OnceCell<()>,
    closing: OnceCell<Result<(), Arc<RuntimeError>>>,
    plugins: Vec<String>,
    environment: Arc<InitialEnvironment>,
    attach_to_existing: bool,
}

impl Runtime {
    /// Makes the session. With an event stream, it listens to it from now on; actions wait until it is connected.
    ///
    /// A second session with the same id at the same stream is an error.
    pub fn new(options: RuntimeOptions) -> Result<Self, RuntimeError> {
        let mut plugins = options.plugins;
        if !options.headless && !plugins.iter().any(|name| name == "vscode") {
            plugins.push("vscode".to_owned());
        }
        let mut env_vars = environment::defaults(&options.backend_environment, options.config.sandbox.enable_auto_lint);
        env_vars.extend(options.env_vars);
        let providers = match options.git_providers {
            Some(providers) => providers,
            None => GitProviders::new(options.git_provider_tokens)?,
        };
        let at_hand = |(provider, token): (ProviderType, &ProviderToken)| {
            Some((provider.env_key().to_owned(), token.secret()?.clone()))
        };
        let tokens: BTreeMap<_, _> = providers.tokens().iter().filter_map(at_hand).collect();
        env_vars.extend(tokens.clone());
        if let Some(stream) = &options.event_stream {
            stream.update_secrets(tokens.into_iter().chain(options.secrets.clone()).collect());
        }
        env_vars.extend(options.secrets);
        let llm_editor = editing::editor(&options.config)?;
        let gate = Arc::new(gate::gate(&options.config, &options.backend_environment, None)?);
        let mut variables = vec![env_vars];
        let configured = &options.config.sandbox.runtime_startup_env_vars;
        variables.extend((!configured.is_empty()).then(|| configured.clone()));
        let environment = InitialEnvironment {
            variables,
            notebook: plugins.iter().any(|name| name == "jupyter"),
            committer: (options.config.runtime != "cli")
                .then(|| (options.config.git_user_name.clone(), options.config.git_user_email.clone())),
        };
        let session = Arc::new(Session {
            config: options.config,
            sid: options.sid,
            user_id: options.user_id,
            stream: options.event_stream,
            file_store: options.file_store,
            status: Arc::new(StatusReporter::new(options.status_callback)),
            gate,
            llm_editor,
            providers,
            refresh: options.token_refresh,
            own: Mutex::default(),
            mcp_servers: AsyncMutex::default(),
            stop: CancellationToken::new(),
            git_scripts: OnceCell::new(),
            ready: CancellationToken::new(),
            connector: options.connector,
            connection: OnceLock::new(),
            connected: OnceCell::new(),
            closing: OnceCell::new(),
            plugins,
            environment: Arc::new(environment),
            attach_to_existing: options.attach_to_existing,
        });
        if let Some(stream) = &session.stream {
            let dispatcher = Arc::new(Dispatcher::new(&session));
            stream.subscribe(SubscriberId::Runtime, &session.sid, dispatcher)?;
        }
        exit::register(&session);
        Ok(Self { session })
    }

    /// Makes or finds the sandbox, waits until its tools answer, and gives them their environment. A second call does
    /// nothing.
    pub async fn connect(&self) -> Result<(), RuntimeError> {
        if self.session.stop.is_cancelled() {
            return Err(RuntimeError::Closed);
        }
        self.session.connected.get_or_try_init(|| self.connect_once()).await?;
        // What waits in the stream finds the session connected.
        self.session.ready.cancel();
        Ok(())
    }

    async fn connect_once(&self) -> Result<(), RuntimeError> {
        let session = &self.session;
        if let Some(analyzer) = session.gate.analyzer() {
            analyzer.start().await?;
        }
        if session.connection.get().is_none() {
            let request = ConnectRequest {
                sid: &session.sid,
                attach_to_existing: session.attach_to_existing,
                status: &session.status,
                environment: &session.environment,
            };
            let connection = tokio::select! {
                connected = session.connector.connect(request) => connected?,
                () = session.stop.cancelled() => return Err(RuntimeError::Closed),
            };
            // Nobody else connects meanwhile.
            let _first = session.connection.set(connection);
        }
        if !session.attach_to_existing {
            let environment = &session.environment;
            tokio::select! {
                set_up = environment.set_up(&**self.connection()?) => set_up?,
                () = session.stop.cancelled() => return Err(RuntimeError::Closed),
            }
        }
        if !session.attach_to_existing && session.status.latest() == Some(RuntimeStatus::StartingRuntime) {
            session.status.set(crate::StatusLevel::Info, RuntimeStatus::Ready, "");
        }
        Ok(())
    }

    /// Ends the session: it no longer listens to the stream, what waits is given up, and the sandbox is given back.
    /// Every call returns when that is done.
    ///
    /// What the sandbox's provider could not do is in the log; [`try_close`](Self::try_close) tells it.
    pub async fn close(&self) {
        let _logged = self.session.close().await;
    }

    /// [`close`](Self::close), and what could not be done: a sandbox that could not be paused or deleted.
    pub async fn try_close(&self) -> Result<(), Arc<RuntimeError>> {
        self.session.close().await
    }

    /// The sandbox, once the session is connected to it.
    pub(crate) fn connection(&self) -> Result<&Arc<dyn SandboxConnection>, RuntimeError> {
        if self.session.stop.is_cancelled() {
            return Err(RuntimeError::Closed);
        }
        self.session.connection.get().ok_or(RuntimeError::NotConnected)
    }

    /// Whether `connect` is done.
    pub fn is_initialized(&self) -> bool {
        self.session.connected.initialized()
    }

    /// The session's id.
    pub fn sid(&self) -> &str {
        &self.session.sid
    }

    /// The user whose conversation it is.
    pub fn user_id(&self) -> Option<&str> {
        self.session.user_id.as_deref()
    }

    /// The configuration of the session.
    pub fn config(&self) -> &Config {
        &self.session.config
    }

    /// The latest status; none before the first.
    pub fn status(&self) -> Option<RuntimeStatus> {
        self.session.status.latest()
    }

    /// The directory in the sandbox that holds the work.
    pub fn workspace_root(&self) -> &str {
        let told = self.session.connection.get().and_then(|connection| connection.workspace());
        told.unwrap_or(&self.session.config.workspace_mount_path_in_sandbox)
    }

    /// Whether the sandbox was asked for this plugin.
    pub fn has_plugin(&self, name: &str) -> bool {
        self.session.plugins.iter().any(|plugin| plugin == name)
    }

    /// The key that the sandbox asks for.
    pub fn session_api_key(&self) -> Option<Secret> {
        self.session.connection.get()?.session_key()
    }

    /// What is in a directory of the sandbox: names, directories with `/` at the end; without a path where the tools
    /// started.
    pub async fn list_files(&self, path: Option<&str>) -> Result<Vec<String>, RuntimeError> {
        self.connection()?.list_files(path).await
    }

    /// Copies a file or, `recursive`, a tree of this machine into a directory of the sandbox.
    pub async fn copy_to(&self, source: &Path, destination: &str, recursive: bool) -> Result<(), RuntimeError> {
        self.connection()?.copy_to(source, destination, recursive).await
    }

    /// All regular files below a directory of the sandbox, as a zip file that is removed with its path.
    pub async fn copy_from(&self, path: &str) -> Result<TempPath, RuntimeError> {
        self.connection()?.copy_from(path).await
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("sid", &self.session.sid)
            .field("status", &self.session.status.latest())
            .field("initialized", &self.is_initialized())
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) async fn close(&self) -> Result<(), Arc<RuntimeError>> {
        self.stop.cancel();
        let end = async || {
            if let Some(stream) = &self.stream {
                stream.unsubscribe(SubscriberId::Runtime, &self.sid).await;
            }
            let ended = self.connector.end().await.map_err(Arc::new);
            if let Err(error) = &ended {
                tracing::error!(sid = self.sid, %error, "the sandbox of the session was not given up as it should");
            }
            self.gate.close().await;
            exit::forget(self);
            ended
        };
        self.closing.get_or_init(end).await.clone()
    }

    /// Remembers what to do about an event that the session itself adds to the stream.
    pub(crate) fn expect_event(&self, id: i64, handling: Handling) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(id, handling);
    }

    pub(crate) fn take_expected(&self, id: i64) -> Option<Handling> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.cancel();
        if self.closing.initialized() {
            return;
        }
        // Without `close` the sandbox is given back in the background.
        let Ok(handle) = tokio::runtime::Handle::try_current() else { return };
        let (stream, sid) = (self.stream.take(), std::mem::take(&mut self.sid));
        let (connector, gate) = (Arc::clone(&self.connector), Arc::clone(&self.gate));
        handle.spawn(async move {
            if let Some(stream) = stream {
                stream.unsubscribe(SubscriberId::Runtime, &sid).await;
            }
            if let Err(error) = connector.end().await {
                tracing::error!(sid, %error, "the sandbox of the session was not given up as it should");
            }
            gate.close().await;
        });
    }
}

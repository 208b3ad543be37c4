//! How a session begins, gets its sandbox, and ends (runtime-interface 2, 3).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
};

use gloveport_event_stream::SubscriberId;
use gloveport_mcp_client::Pool;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio_util::sync::CancellationToken;

use crate::{
    ConnectRequest, InitialEnvironment, Runtime, RuntimeError, RuntimeOptions, RuntimeStatus, StatusReporter,
    dispatch::Dispatcher,
    editing, environment, exit, gate,
    git_providers::{GitProviders, ProviderToken, ProviderType},
    runtime::Session,
};

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
            mcp_extra: AsyncMutex::default(),
            mcp_clients: Pool::default(),
            mcp_tokens: options.mcp_tokens,
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
}

impl Session {
    pub(crate) async fn close(&self) -> Result<(), Arc<RuntimeError>> {
        self.stop.cancel();
        let end = async || {
            if let Some(stream) = &self.stream {
                stream.unsubscribe(SubscriberId::Runtime, &self.sid).await;
            }
            // The server of the sandbox waits for its connections when it ends.
            self.mcp_clients.clear().await;
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
}

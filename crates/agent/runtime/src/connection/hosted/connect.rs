//! An existing sandbox is used, a paused one comes back, else one is made.

use std::sync::{Arc, atomic::AtomicU64};

use gloveport_client::{ActionExecutionClient, Carry, ClientOptions, Relay};
use gloveport_hosting::{WaitError, WaitOptions, client_options, wait_until_alive};
use gloveport_protocol::Secret;
use gloveport_provider::{Lifetime, Phase, Progress, ProviderError, Sandbox, SandboxId, SandboxState};

use super::{Hosted, HostedOptions, Stage, engine::Engine, recovery::Reconnect, revival::Revival, warm};
use crate::{
    RuntimeError, RuntimeStatus, StatusLevel,
    connection::{BroughtTools, ConnectRequest, SandboxConnection, over_http::OverHttp},
};

/// How often a lost race for the session's sandbox is run again.
const RACES: u32 = 3;

impl Hosted {
    pub(super) async fn connect_alone(
        &self,
        request: ConnectRequest<'_>,
    ) -> Result<Arc<dyn SandboxConnection>, RuntimeError> {
        let _alone = self.connecting.lock().await;
        if self.stop.is_cancelled() {
            return Err(RuntimeError::Closed);
        }
        if request.sid != self.spec.session_id.as_str() {
            let reason = format!("it is for `{}`, and the session is `{}`", self.spec.session_id, request.sid);
            return Err(ProviderError::Spec { field: "session_id".to_owned(), reason }.into());
        }
        let progress = Progress::to(self.engine.reporter(request.status, request.attach_to_existing));
        let connecting = Connecting { hosted: self, request: &request, progress: &progress };
        let connected = tokio::select! {
            connected = connecting.find_or_make() => connected,
            () = self.stop.cancelled() => Err(RuntimeError::Closed),
        };
        self.state().timings = progress.timings();
        if connected.is_err() {
            self.undo().await;
        } else {
            self.state().stage = Stage::Connected;
            self.refill();
        }
        connected
    }

    /// Starts more warm sandboxes in the background.
    fn refill(&self) {
        if self.options.warm > 0 && self.provider.capabilities().warm {
            let refill = tokio::spawn(warm::fill(Arc::clone(&self.provider), self.options.warm));
            self.state().refill = Some(refill);
        }
    }
}

/// One attempt to connect.
struct Connecting<'a> {
    hosted: &'a Hosted,
    request: &'a ConnectRequest<'a>,
    progress: &'a Progress,
}

impl Connecting<'_> {
    async fn find_or_make(&self) -> Result<Arc<dyn SandboxConnection>, RuntimeError> {
        let Hosted { provider, spec, engine, .. } = self.hosted;
        self.progress.enter(Phase::Finding, "");
        let mut failed = None;
        match provider.find_session(&spec.session_id).await? {
            Some(paused) if paused.state == SandboxState::Paused => {
                let id = paused.id.clone();
                match self.take_over(paused).await {
                    Ok(connection) => return Ok(connection),
                    Err(error) => {
                        tracing::warn!(session = %spec.session_id, sandbox = %id, %error, "cannot be resumed");
                        self.hosted.undo().await;
                        failed = Some((id, error));
                    }
                }
            }
            Some(found) if found.state.is_live() => return self.take_over(found).await,
            _ => {}
        }
        if self.request.attach_to_existing {
            return Err(engine.missing(&spec.session_id));
        }
        self.make(failed).await
    }

    /// Makes a sandbox, or uses the one that another backend has made meanwhile.
    async fn make(
        &self,
        mut failed: Option<(SandboxId, RuntimeError)>,
    ) -> Result<Arc<dyn SandboxConnection>, RuntimeError> {
        let Hosted { provider, spec, engine, .. } = self.hosted;
        for _ in 0..RACES {
            let existing = match provider.create(spec, self.progress).await {
                Ok(sandbox) => {
                    self.remember(&sandbox, Stage::Made);
                    return self.use_it(sandbox).await;
                }
                Err(ProviderError::SessionExists { sandbox, .. }) => sandbox,
                Err(error) => return Err(engine.not_made(error)),
            };
            // What is in a sandbox that cannot be resumed is not thrown away without being asked.
            if let Some((_, error)) = failed.take_if(|(id, _)| *id == existing) {
                let what = format!("the paused sandbox `{existing}` could not be resumed; delete it to get a new one");
                return Err(RuntimeError::Unavailable { what, source: Some(Box::new(error)) });
            }
            if let Some(winner) = provider.find_session(&spec.session_id).await?.filter(|found| found.state.is_live()) {
                return self.take_over(winner).await;
            }
        }
        let what = format!("others make and delete sandboxes of the session `{}` all the time", spec.session_id);
        Err(RuntimeError::Unavailable { what, source: None })
    }

    /// Uses a sandbox that is there, which may have to come back first.
    async fn take_over(&self, sandbox: Sandbox) -> Result<Arc<dyn SandboxConnection>, RuntimeError> {
        self.remember(&sandbox, Stage::Found);
        let paused = sandbox.state == SandboxState::Paused;
        if paused {
            self.progress.enter(Phase::Resuming, "");
            self.hosted.provider.resume(&sandbox.id).await?;
        }
        let connection = self.use_it(sandbox).await?;
        if paused && !self.request.attach_to_existing {
            self.request.environment.set_up(&*connection).await?;
        }
        Ok(connection)
    }

    /// Keeps in mind what there is before anything else can fail.
    fn remember(&self, sandbox: &Sandbox, stage: Stage) {
        let mut known = self.hosted.state();
        known.sandbox = Some(sandbox.clone());
        (known.stage, known.attached) = (stage, self.request.attach_to_existing);
    }

    async fn use_it(&self, sandbox: Sandbox) -> Result<Arc<dyn SandboxConnection>, RuntimeError> {
        let Hosted { provider, engine, options, stop, .. } = self.hosted;
        if sandbox.lifetime != Lifetime::Backend {
            provider.hold(&sandbox.id).await?;
            self.hosted.state().held = true;
        }
        let wait = WaitOptions { limit: options.alive_within, cancel: stop.clone() };
        let waited = wait_until_alive(&**provider, sandbox, &wait, self.progress).await;
        let alive = waited.map_err(|error| self.not_alive(*engine, error))?;
        self.connection(Sandbox { state: SandboxState::Running, ..alive }, wait).await
    }

    /// The way to tools in a sandbox whose server has none. Every other provider puts our own server into its sandboxes.
    async fn relay(&self, options: &ClientOptions) -> Result<Option<Arc<Relay>>, RuntimeError> {
        let Hosted { engine, spec, options: HostedOptions { tools, .. }, .. } = self.hosted;
        if tools.is_none() || !matches!(engine, Engine::Remote | Engine::Other) {
            return Ok(None);
        }
        BroughtTools::bring(tools.as_ref(), options, spec.session_id.as_str()).await
    }

    fn not_alive(&self, engine: Engine, error: WaitError) -> RuntimeError {
        let error = engine.not_alive(error);
        if engine == Engine::Kubernetes {
            self.request.status.set(StatusLevel::Info, RuntimeStatus::ErrorRuntimeDisconnected, &error.to_string());
        }
        error
    }

    async fn connection(
        &self,
        sandbox: Sandbox,
        wait: WaitOptions,
    ) -> Result<Arc<dyn SandboxConnection>, RuntimeError> {
        let Hosted { provider, engine, options, stop, .. } = self.hosted;
        let plain = ClientOptions { shutdown: stop.clone(), recovery: None, ..options.client.clone() };
        // One without a URL is told by the client.
        let mut plain = client_options(&sandbox, plain.clone()).unwrap_or(plain);
        plain.relay = self.relay(&plain).await?.map(|relay| relay as Arc<dyn Carry>);
        let over_http = |client: ActionExecutionClient| OverHttp {
            client,
            session_key: plain.session_key.as_deref().map(Secret::new),
            workspace: sandbox.workspace.clone(),
            // Its sandboxes are processes of this machine's user.
            own_home: *engine == Engine::Local,
            is_relayed: plain.relay.is_some(),
        };
        let environment = (!self.request.attach_to_existing).then(|| Arc::clone(self.request.environment));
        let revival = Arc::new(Revival {
            provider: Arc::clone(provider),
            engine: *engine,
            id: sandbox.id.clone(),
            status: Arc::clone(self.request.status),
            environment,
            sandbox: over_http(ActionExecutionClient::new(&plain)?),
            wait,
            count: AtomicU64::new(0),
            reviving: tokio::sync::Mutex::default(),
        });
        let recovery = Reconnect {
            revival: Arc::clone(&revival),
            keep_alive: options.keep_alive,
            retries: options.retries,
            retry_wait: options.retry_wait,
            stop: stop.clone(),
        };
        let mut with_recovery = plain.clone();
        with_recovery.recovery = Some(Arc::new(recovery));
        let client = ActionExecutionClient::new(&with_recovery)?;
        let connection = Arc::new(over_http(client.clone()));
        let mut state = self.hosted.state();
        (state.client, state.revival, state.sandbox) = (Some(client), Some(revival), Some(sandbox));
        Ok(connection)
    }
}

//! The provider.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use gloveport_config::Config;
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, Lifetime, ListFilter, LogOptions, LogStream, Phase, Progress, Provider,
    ProviderContext, ProviderError, Removed, Sandbox, SandboxId, SandboxSpec, SessionId, Snapshot, Teller, handed_over,
};
use serde_json::json;
use tokio::{sync::OnceCell, task::JoinError, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    RemoteOptions,
    capabilities::CAPABILITIES,
    native,
    service::Service,
    wire::{Listed, Start, Told},
};

/// The name by which it is registered.
pub(crate) const NAME: &str = "remote";
/// How long the end of the backend may take.
const CLOSE: Duration = Duration::from_mins(1);

/// Sandboxes of a service.
///
/// The interface has no word for whose they are, so those that are not kept end with [`close`](Provider::close) alone.
#[derive(Debug)]
pub struct Remote {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    service: Service,
    /// What it can do by the native API of our gateway, if it has that; it is asked once.
    native: OnceCell<Option<Capabilities>>,
    /// Sandboxes that end with this backend.
    own: Mutex<BTreeSet<SandboxId>>,
    closed: AtomicBool,
    /// Sandboxes that are being made, or taken back because nobody waits for them.
    making: TaskTracker,
}

impl Remote {
    /// The name by which it is registered.
    pub const NAME: &'static str = NAME;

    /// A provider for this service. It is not asked anything yet.
    pub fn new(options: RemoteOptions) -> Self {
        let (service, closed) = (Service::new(options), AtomicBool::new(false));
        let (native, making) = (OnceCell::new(), TaskTracker::new());
        Self { inner: Arc::new(Inner { service, native, own: Mutex::default(), closed, making }) }
    }

    /// Whether the configuration names a service and a key for it.
    pub fn is_expected(config: &Config) -> bool {
        RemoteOptions::is_expected(config)
    }

    /// For the [`Registry`](gloveport_provider::Registry).
    ///
    /// # Errors
    ///
    /// The configuration names no service, or no key.
    pub fn factory(context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(Arc::new(Self::new(RemoteOptions::new(context)?)))
    }
}

impl Inner {
    fn own(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn understood(&self, told: Told, session: Option<&SessionId>) -> Result<Sandbox, ProviderError> {
        Ok(self.owned(told.sandbox(session)?))
    }

    /// Whether the service has the native API.
    async fn is_native(&self) -> Result<bool, ProviderError> {
        Ok(self.native.get_or_try_init(async || native::capabilities(&self.service).await).await?.is_some())
    }

    /// Those of the interface of OpenHands, until the service has said that it is a gateway of ours and what that can do.
    fn can(&self) -> Capabilities {
        self.native.get().cloned().flatten().unwrap_or(CAPABILITIES)
    }

    /// A sandbox that the service has told of.
    fn owned(&self, mut sandbox: Sandbox) -> Sandbox {
        if self.own().contains(&sandbox.id) {
            sandbox.lifetime = Lifetime::Backend;
        }
        sandbox
    }

    /// Makes a sandbox in a task of its own: what the service was asked for and nobody waits for any more is ended when its
    /// answer is there.
    async fn create(self: &Arc<Self>, spec: &SandboxSpec, progress: &Progress) -> Result<Sandbox, ProviderError> {
        self.is_native().await?;
        spec.check(NAME, &self.can())?;
        // `close` waits for what has begun before it.
        let token = self.making.token();
        if self.closed.load(Ordering::SeqCst) {
            return Err(ProviderError::Closed(NAME.to_owned()));
        }
        let (inner, spec) = (Arc::clone(self), spec.clone());
        let making = |tell, given_up| async move { inner.make(&spec, &tell, &given_up).await };
        let inner = Arc::clone(self);
        let undo = |made| async move {
            inner.undo(made).await;
            drop(token);
        };
        let failed = |error: JoinError| self.service.failed("start a sandbox", error.to_string());
        handed_over(progress, making, undo).await.map_err(failed)?
    }

    /// Takes back what was made and nobody waits for.
    async fn undo(&self, made: Result<Sandbox, ProviderError>) {
        if let Ok(sandbox) = made
            && let Err(error) = self.end(&sandbox.id).await
        {
            tracing::warn!(id = %sandbox.id, %error, "a sandbox that nobody waits for is left");
        }
    }

    async fn make(
        &self,
        spec: &SandboxSpec,
        progress: &Teller,
        given_up: &CancellationToken,
    ) -> Result<Sandbox, ProviderError> {
        let exists = |sandbox: SandboxId| ProviderError::SessionExists { session: spec.session_id.clone(), sandbox };
        // Services that answer a second `/start` with the first sandbox are asked before.
        if let Some(found) = self.of_session(&spec.session_id).await?.filter(|found| found.state.is_live()) {
            return Err(exists(found.id));
        }
        if given_up.is_cancelled() {
            return Err(self.service.failed("start a sandbox", "nobody waits for it any more".to_owned()));
        }
        progress.enter(Phase::Creating, "");
        if self.is_native().await? {
            return match native::create(&self.service, spec).await {
                Ok(sandbox) => Ok(self.begun(sandbox, spec)),
                // Somebody else may have been faster.
                Err(error) => match self.of_session(&spec.session_id).await {
                    Ok(Some(found)) if found.state.is_live() => Err(exists(found.id)),
                    _ => Err(error),
                },
            };
        }
        let told: Option<Told> = self.service.post("start a sandbox", "/start", &Start::of(spec)).await?;
        let told = told.ok_or_else(|| self.not_served("/start"))?;
        let was_there = told.created == Some(false);
        let sandbox = self.understood(told, Some(&spec.session_id))?;
        if was_there {
            return Err(exists(sandbox.id));
        }
        Ok(self.begun(sandbox, spec))
    }

    /// A sandbox that this backend has made.
    fn begun(&self, sandbox: Sandbox, spec: &SandboxSpec) -> Sandbox {
        if !spec.keep_alive {
            self.own().insert(sandbox.id.clone());
        }
        self.owned(sandbox)
    }

    fn not_served(&self, path: &str) -> ProviderError {
        ProviderError::Engine {
            engine: self.service.name(),
            action: format!("answer {path}"),
            reason: "it is not there (status 404); is sandbox.remote_runtime_api_url the URL of a runtime service?"
                .to_owned(),
        }
    }

    async fn of_session(&self, session: &SessionId) -> Result<Option<Sandbox>, ProviderError> {
        if self.is_native().await? {
            return Ok(native::of_session(&self.service, session).await?.map(|sandbox| self.owned(sandbox)));
        }
        let told = self.service.get("look for a session", &format!("/sessions/{session}")).await?;
        told.map(|told| self.understood(told, Some(session))).transpose()
    }

    /// A sandbox by its id. The answer about its pod need not have all of it, so the whole is in the list.
    async fn by_id(&self, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
        if self.is_native().await? {
            return Ok(native::find(&self.service, id).await?.map(|sandbox| self.owned(sandbox)));
        }
        let told: Option<serde_json::Value> = self.service.get("look at a sandbox", &format!("/runtime/{id}")).await?;
        let Some(told) = told else { return Ok(None) };
        if told.get("session_id").is_some_and(serde_json::Value::is_string) && told.get("url").is_some() {
            let told = serde_json::from_value::<Told>(told).map_err(|error| ProviderError::Engine {
                engine: self.service.name(),
                action: "look at a sandbox".to_owned(),
                reason: error.to_string(),
            })?;
            return self.understood(told, None).map(Some);
        }
        Ok(self.all(true).await?.into_iter().find(|sandbox| sandbox.id == *id))
    }

    /// All sandboxes of the key. Those that have ended are among them where the service knows what is asked.
    async fn all(&self, ended: bool) -> Result<Vec<Sandbox>, ProviderError> {
        if self.is_native().await? {
            return self.listed(&ListFilter { ended, ..ListFilter::default() }).await;
        }
        let path = if ended { "/list?ended=true" } else { "/list" };
        let listed: Option<Listed> = self.service.get("list sandboxes", path).await?;
        let listed = listed.ok_or_else(|| self.not_served("/list"))?;
        let mut all = Vec::new();
        for told in listed.runtimes {
            match self.understood(told, None) {
                Ok(sandbox) => all.push(sandbox),
                // One that somebody else made, with a name that is none here, hides no other.
                Err(error) => tracing::debug!(%error, "a sandbox of the service is left out"),
            }
        }
        Ok(all)
    }

    async fn listed(&self, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
        let listed = native::list(&self.service, filter).await?;
        Ok(listed.into_iter().map(|sandbox| self.owned(sandbox)).collect())
    }

    /// Lets a sandbox rest (`pause`) or go on (`resume`).
    async fn turn(&self, id: &SandboxId, to: &str) -> Result<(), ProviderError> {
        let known = if self.is_native().await? {
            native::turn(&self.service, id, to).await?
        } else {
            self.service.tell(&format!("{to} a sandbox"), &format!("/{to}"), &json!({"runtime_id": id})).await?
        };
        if known { Ok(()) } else { Err(ProviderError::NotFound(id.clone())) }
    }

    async fn collect(&self, options: &GcOptions) -> Result<GcReport, ProviderError> {
        let mut report = GcReport::default();
        for sandbox in self.all(true).await? {
            let reason = match &sandbox.state {
                state if !state.is_live() => "it has ended",
                _ if options.all && sandbox.lifetime == Lifetime::Kept => {
                    "it was kept, and nobody can tell who uses it"
                }
                _ => continue,
            };
            if !options.dry_run
                && let Err(error) = self.end(&sandbox.id).await
            {
                report.failed.push(format!("{}: {}", sandbox.id, gloveport_client::causes(&error)));
                continue;
            }
            let Sandbox { id, session_id, .. } = sandbox;
            report.removed.push(Removed {
                id: Some(id),
                session_id: Some(session_id),
                path: None,
                reason: reason.to_owned(),
            });
        }
        Ok(report)
    }

    async fn end(&self, id: &SandboxId) -> Result<bool, ProviderError> {
        let known = if self.is_native().await? {
            native::delete(&self.service, id).await?
        } else {
            self.service.tell("stop a sandbox", "/stop", &json!({"runtime_id": id})).await?
        };
        self.own().remove(id);
        Ok(known)
    }
}

impl Provider for Remote {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Those of the interface of OpenHands, until the service has said that it is a gateway of ours and what that can do.
    fn capabilities(&self) -> Capabilities {
        self.inner.can()
    }

    fn learn(&self) -> BoxFuture<'_, Result<(), ProviderError>> {
        Box::pin(async { self.inner.is_native().await.map(drop) })
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.inner.create(spec, progress))
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(self.inner.by_id(id))
    }

    fn find_session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(self.inner.of_session(session))
    }

    /// The interface of OpenHands has no labels, so none has those that a filter asks for.
    fn list<'a>(&'a self, filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        Box::pin(async {
            if self.inner.is_native().await? && (self.capabilities().labels || filter.labels.is_empty()) {
                return self.inner.listed(filter).await;
            }
            let mut all = self.inner.all(filter.ended).await?;
            all.retain(|sandbox| filter.labels.is_empty() && (filter.ended || sandbox.state.is_live()));
            Ok(all)
        })
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.turn(id, "pause"))
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.turn(id, "resume"))
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.inner.end(id))
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(async move {
            self.learn().await?;
            let can = self.capabilities();
            match (can.logs, can.follow_logs || !options.follow) {
                (true, true) => native::logs(&self.inner.service, id, options).await,
                (false, _) => Err(self.cannot("logs")),
                (true, false) => Err(self.cannot("following logs")),
            }
        })
    }

    fn snapshot<'a>(&'a self, id: &'a SandboxId, name: &'a str) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            self.learn().await?;
            if self.capabilities().snapshots {
                native::snapshot(&self.inner.service, id, name).await
            } else {
                Err(self.cannot("snapshots"))
            }
        })
    }

    fn snapshots(&self) -> BoxFuture<'_, Result<Vec<Snapshot>, ProviderError>> {
        Box::pin(async move {
            self.learn().await?;
            if !self.capabilities().snapshots {
                return Err(self.cannot("snapshots"));
            }
            native::snapshots(&self.inner.service).await?.ok_or_else(|| self.cannot("lists of snapshots"))
        })
    }

    fn delete_snapshot<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(async move {
            self.learn().await?;
            if !self.capabilities().snapshots {
                return Err(self.cannot("snapshots"));
            }
            native::delete_snapshot(&self.inner.service, image).await
        })
    }

    fn fork<'a>(
        &'a self,
        id: &'a SandboxId,
        session: &'a SessionId,
        _progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(async move {
            self.learn().await?;
            if self.capabilities().snapshots {
                native::fork(&self.inner.service, id, session).await
            } else {
                Err(self.cannot("forks"))
            }
        })
    }

    /// What has ended, as far as the service lists it. It does not tell who uses a sandbox, so with `all` these are all that
    /// were kept.
    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(self.inner.collect(options))
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async {
            let name = "runtime service".to_owned();
            vec![match self.inner.all(false).await {
                Ok(all) => {
                    let found = format!("{}, {} sandboxes", self.inner.service.name(), all.len());
                    Check { name, works: true, found, remedy: None }
                }
                Err(error) => {
                    let remedy = Some("`gloveport gateway` serves one".to_owned());
                    Check { name, works: false, found: gloveport_client::causes(&error), remedy }
                }
            }]
        })
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let inner = &self.inner;
            inner.closed.store(true, Ordering::SeqCst);
            inner.making.close();
            let ending = async {
                inner.making.wait().await;
                let own: Vec<SandboxId> = std::mem::take(&mut *inner.own()).into_iter().collect();
                join_all(own.iter().map(|id| inner.end(id))).await
            };
            let Ok(ended) = timeout(CLOSE, ending).await else {
                tracing::warn!("the end of the backend took too long; sandboxes are left");
                return;
            };
            for error in ended.into_iter().filter_map(Result::err) {
                tracing::warn!(%error, "a sandbox of a closed backend is left");
            }
        })
    }
}

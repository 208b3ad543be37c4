//! The provider.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use bollard::query_parameters::ListContainersOptionsBuilder;
use futures_util::{StreamExt as _, future::join_all, stream};
use gloveport_docker_engine::{Engine, EngineError};
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, Isolation, ListFilter, LogOptions, LogStream, NetworkChange,
    NetworkState, Progress, Provider, ProviderContext, ProviderError, Sandbox, SandboxId, SandboxSpec, SandboxState,
    SessionId, Snapshot, StandsFor, WarmKind, apart,
};
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    DockerOptions,
    fault::{self, NAME},
    held::Holders,
    inner::{Inner, Own},
    names::{self, PREFIX},
    network,
    view::Container,
    waiting::Pool,
};

/// What it can do with an engine that shares our file system.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    isolation: Isolation::Container,
    stands_for: Some(StandsFor::Docker),
    images: true,
    commands: true,
    host_directories: true,
    volumes: true,
    limit_cpus: true,
    limit_memory: true,
    limit_processes: true,
    gpus: true,
    network_policy: true,
    snapshots: true,
    ports: true,
    labels: true,
    users: true,
    edge_secrets: true,
    audit: true,
    runtime_classes: true,
    pause: true,
    pause_keeps_processes: true,
    logs: true,
    follow_logs: true,
    time_to_live: true,
    idle_stop: true,
    keep_alive: true,
    orphans: true,
    warm: true,
    ..Capabilities::NONE
};

/// Containers that are asked about at the same time.
const AT_ONCE: usize = 16;
/// How often a container that is between two states is looked at again.
const BETWEEN_STATES: u32 = 200;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(25);
/// How long the end of the backend may take.
const CLOSE: Duration = Duration::from_secs(30);

/// Sandboxes as containers.
///
/// Those that are not kept end with this value, or with the process that has it, however it ends: their standard input is a
/// connection of this process to the engine. [`close`](Provider::close) also waits until they are removed.
#[derive(Debug)]
pub struct Docker {
    inner: Arc<Inner>,
}

impl Docker {
    /// The name by which it is registered.
    pub const NAME: &'static str = NAME;

    /// A provider with these options. The engine is not asked anything yet.
    pub fn new(options: DockerOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                engine: Arc::new(Engine::new(options.endpoint.clone())),
                holders: Holders::new(options.backends.clone()),
                options,
                copied: OnceCell::new(),
                own: Mutex::default(),
                held: Mutex::default(),
                pool: Pool::default(),
                clients: OnceLock::new(),
                closing: CancellationToken::new(),
            }),
        }
    }

    /// For the [`Registry`](gloveport_provider::Registry).
    pub fn factory(context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(Arc::new(Self::new(DockerOptions::new(context)?)))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // Tasks that follow logs end, and with the lifelines their sandboxes.
        self.inner.closing.cancel();
        self.inner.own().clear();
    }
}

impl Inner {
    pub(crate) fn capabilities(&self) -> Capabilities {
        let host_directories = self.engine.endpoint().address.is_local();
        // A container in the network of the machine reaches all that listens there.
        let isolation = if self.options.host_network { Isolation::Process } else { CAPABILITIES.isolation };
        Capabilities { isolation, host_directories, warm: self.can_warm(), ..CAPABILITIES }
    }

    pub(crate) fn check_open(&self) -> Result<(), ProviderError> {
        if self.closing.is_cancelled() { Err(ProviderError::Closed(NAME.to_owned())) } else { Ok(()) }
    }

    /// This backend has something of a sandbox.
    pub(crate) fn keep(&self, id: SandboxId, own: Own) -> Result<(), ProviderError> {
        let mut all = self.own();
        // `close` takes what is there after it has closed.
        self.check_open()?;
        all.insert(id, own);
        Ok(())
    }

    /// A sandbox is gone.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.own().remove(id);
    }

    /// A container by its name or the engine's id, if it is a sandbox.
    pub(crate) async fn container(&self, name: &str) -> Result<Option<Container>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let action = format!("look at the container `{name}`");
        let look = || self.engine.ask(&action, docker.inspect_container(name, None));
        let mut looked = look().await;
        for _ in 0..BETWEEN_STATES {
            if !looked.as_ref().is_err_and(EngineError::is_between_states) {
                break;
            }
            sleep(PAUSE).await;
            looked = look().await;
        }
        match looked {
            Ok(mut found) => {
                self.complete(&mut found).await?;
                let gate = match (network::network_of(&found), &found.name) {
                    (Some(network), Some(name)) => self.gate(name.trim_start_matches('/'), network).await?,
                    _ => None,
                };
                Ok(Container::of(found, gate, &self.options, &self.holders))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(fault::of(error)),
        }
    }

    /// All sandboxes, the oldest first.
    pub(crate) async fn containers(&self, ended: bool) -> Result<Vec<Container>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let filters = [("name".to_owned(), vec![format!("^/?{PREFIX}")])].into();
        let query = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let listed =
            self.engine.ask("list containers", docker.list_containers(Some(query))).await.map_err(fault::of)?;
        let ids = listed.into_iter().filter_map(|summary| summary.id);
        // The list does not tell all: keys, how one has ended.
        let found: Vec<_> = stream::iter(ids)
            .map(|id| async move { self.container(&id).await })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut all = Vec::new();
        for container in found {
            all.extend(container?.filter(|container| ended || container.sandbox.state.is_live()));
        }
        all.sort_by(|one, other| {
            (one.sandbox.created, &one.sandbox.id).cmp(&(other.sandbox.created, &other.sandbox.id))
        });
        Ok(all)
    }

    /// A sandbox by its id. Of one that has failed it is told what it wrote last.
    async fn find(&self, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
        let Some(mut found) = self.container(id.as_str()).await? else { return Ok(None) };
        if let SandboxState::Failed(reason) = &mut found.sandbox.state {
            let log = self.last_lines(&found.engine_id).await;
            if !log.is_empty() {
                *reason = format!("{reason}; it wrote last:\n{log}");
            }
        }
        Ok(Some(found.sandbox))
    }

    async fn list(&self, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
        let all = self.containers(filter.ended).await?.into_iter().map(|container| container.sandbox);
        let fits = |sandbox: &Sandbox| {
            filter.labels.iter().all(|(name, value)| sandbox.labels.get(name).is_some_and(|found| found == value))
        };
        Ok(all.filter(fits).collect())
    }

    async fn hold(&self, id: &SandboxId) -> Result<(), ProviderError> {
        self.check_open()?;
        let found = self.existing(id).await?;
        if found.backend.is_none() || found.sandbox.lifetime == gloveport_provider::Lifetime::Backend {
            // It belongs to whoever made it.
            return Ok(());
        }
        self.holders.hold(&found.engine_id)?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(found.engine_id);
        Ok(())
    }

    async fn release(&self, id: &SandboxId) -> Result<(), ProviderError> {
        // One that is gone needs no release.
        let Some(found) = self.container(id.as_str()).await? else { return Ok(()) };
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&found.engine_id);
        self.holders.release(&found.engine_id)
    }

    async fn close(&self) {
        self.closing.cancel();
        self.close_pool().await;
        let own: Vec<_> = self.own().drain().collect();
        let mut ids: BTreeSet<SandboxId> =
            own.iter().filter(|(_, own)| own.ends_with_us).map(|(id, _)| id.clone()).collect();
        // With their standard input they end by themselves, should they not be removed now.
        drop(own);
        if self.options.remove_all {
            match self.containers(true).await {
                Ok(all) => ids.extend(all.into_iter().map(|container| container.sandbox.id)),
                Err(error) => tracing::warn!(%error, "the sandboxes of all backends cannot be removed"),
            }
        }
        let deleted = timeout(CLOSE, join_all(ids.iter().map(|id| self.delete(id)))).await;
        for error in deleted.into_iter().flatten().filter_map(Result::err) {
            tracing::warn!(%error, "a sandbox of a closed backend is left; collect garbage");
        }
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        for container in held {
            if let Err(error) = self.holders.release(&container) {
                tracing::warn!(%error, "a kept sandbox will look as if its backend had died");
            }
        }
        self.holders.vanish();
    }
}

impl Provider for Docker {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.inner.create(spec, progress))
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(self.inner.find(id))
    }

    /// The id of a sandbox follows from its session, so that the engine lets each session have one only.
    fn find_session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async { self.inner.find(&names::id_of(session)?).await })
    }

    fn list<'a>(&'a self, filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        Box::pin(self.inner.list(filter))
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.pause(id))
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.resume(id))
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.inner.delete(id))
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(self.inner.logs(id, options))
    }

    fn network<'a>(
        &'a self,
        id: &'a SandboxId,
        change: &'a NetworkChange,
    ) -> BoxFuture<'a, Result<NetworkState, ProviderError>> {
        Box::pin(self.inner.change_network(id, change))
    }

    fn audit_log<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(self.inner.audit_log(session))
    }

    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(self.inner.collect_garbage(options))
    }

    fn hold<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.hold(id))
    }

    fn release<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.release(id))
    }

    fn snapshot<'a>(&'a self, id: &'a SandboxId, name: &'a str) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(self.inner.snapshot(id, name))
    }

    fn snapshots(&self) -> BoxFuture<'_, Result<Vec<Snapshot>, ProviderError>> {
        Box::pin(self.inner.kept())
    }

    fn delete_snapshot<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.inner.delete_kept(image))
    }

    fn fork<'a>(
        &'a self,
        id: &'a SandboxId,
        session: &'a SessionId,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.inner.fork(id, session, progress))
    }

    fn keep_warm<'a>(&'a self, kinds: &'a [WarmKind]) -> BoxFuture<'a, Result<Vec<usize>, ProviderError>> {
        Box::pin(async move {
            let (inner, kinds) = (Arc::clone(&self.inner), kinds.to_vec());
            // What has begun is not left half made.
            let filling = move |_, _| async move { inner.keep_warm(&kinds).await };
            let filled = apart(&Progress::silent(), filling).await;
            filled.map_err(|error| fault::failed("start sandboxes ahead", error))?
        })
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(self.inner.check())
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.close())
    }
}

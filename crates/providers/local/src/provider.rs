//! The provider.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};

use futures_util::future::join_all;
use gloveport_client::{ActionExecutionClient, causes};
use gloveport_hosting::client;
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, Isolation, ListFilter, LogOptions, LogStream, NetworkChange,
    NetworkState, Progress, Provider, ProviderContext, ProviderError, Sandbox, SandboxId, SandboxSpec, SandboxState,
    SessionId, StandsFor, WarmKind,
};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::{
    LocalOptions, audit,
    backend::Backend,
    delete::{self, Removal},
    fault::{NAME, blocking, engine},
    gate,
    launch::Server,
    logs,
    pool::Pool,
    server::ServerProcess,
    state::{State, random_name},
    steps::Step,
    urls::Urls,
    view,
};

/// What it can do.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    isolation: Isolation::None,
    stands_for: Some(StandsFor::Local),
    host_directories: true,
    limit_memory: true,
    ports: true,
    labels: true,
    confine: true,
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

/// Sandboxes as processes of this machine.
///
/// Those that are not kept end with this value, or with the process that has it; [`close`](Provider::close) also waits
/// until they have.
#[derive(Debug)]
pub struct Local {
    inner: Arc<Inner>,
}

impl Local {
    /// The name by which it is registered.
    pub const NAME: &'static str = NAME;

    /// A provider with these options. Nothing is made or started yet.
    pub fn new(options: LocalOptions) -> Result<Self, ProviderError> {
        Ok(Self {
            inner: Arc::new(Inner {
                state: State::new(options.state.clone()),
                urls: Urls::new(&options.url, &options.environment),
                backend: Backend::new(random_name()?),
                options,
                pool: Pool::default(),
                running: Mutex::default(),
                held: Mutex::default(),
                closed: AtomicBool::new(false),
                making: TaskTracker::new(),
                counter: AtomicU64::new(0),
            }),
        })
    }

    pub(crate) const fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// For the [`Registry`](gloveport_provider::Registry).
    pub fn factory(context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(Arc::new(Self::new(LocalOptions::new(context)?)?))
    }
}

/// A sandbox that lives with this backend.
#[derive(Debug)]
struct Running {
    process: ServerProcess,
    mark: String,
    /// Its end is that of the server.
    socket: UnixStream,
    lock: File,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: LocalOptions,
    pub(crate) state: State,
    pub(crate) urls: Urls,
    pub(crate) backend: Backend,
    pub(crate) pool: Pool,
    /// The sandboxes that live with this backend.
    running: Mutex<HashMap<SandboxId, Running>>,
    /// Kept sandboxes that this backend uses.
    held: Mutex<BTreeSet<SandboxId>>,
    closed: AtomicBool,
    /// Sandboxes that are being made, or taken back since nobody waits for them; servers that are removed since they have ended.
    pub(crate) making: TaskTracker,
    counter: AtomicU64,
}

impl Inner {
    pub(crate) fn check_open(&self) -> Result<(), ProviderError> {
        if self.closed.load(SeqCst) { Err(ProviderError::Closed(NAME.to_owned())) } else { Ok(()) }
    }

    /// A name for the directory of a new server, which tells whose it is.
    pub(crate) fn next_name(&self) -> String {
        format!("{}.{}", self.backend.name(), self.counter.fetch_add(1, Relaxed))
    }

    pub(crate) fn removal(&self) -> Removal {
        Removal { state: self.state.clone(), options: self.options.clone() }
    }

    /// This sandbox lives with this backend.
    pub(crate) fn keep(&self, id: SandboxId, server: Server) -> Result<(), ProviderError> {
        let mut running = lock(&self.running);
        // `close` takes what is there after it has closed.
        self.check_open()?;
        let Server { process, mark, socket, lock, .. } = server;
        running.insert(id, Running { process, mark, socket, lock });
        Ok(())
    }

    /// This backend uses a kept sandbox.
    pub(crate) fn holds(&self, id: SandboxId) {
        lock(&self.held).insert(id);
    }

    /// A server has ended.
    pub(crate) fn forget(&self, process: ServerProcess) {
        lock(&self.running).retain(|_, running| running.process != process);
        self.pool.forget(process);
    }

    async fn view(self: &Arc<Self>, id: &SandboxId) -> Result<Sandbox, ProviderError> {
        let (inner, id) = (Arc::clone(self), id.clone());
        blocking(move || view::sandbox(&inner.state, &id)?.ok_or(ProviderError::NotFound(id))).await
    }

    fn client(sandbox: &Sandbox) -> Result<ActionExecutionClient, ProviderError> {
        client(sandbox).map_err(|error| engine("use the URL of the sandbox", causes(&error)))
    }

    pub(crate) async fn close(self: &Arc<Self>) {
        self.closed.store(true, SeqCst);
        self.making.close();
        if timeout(self.options.start_limit, self.making.wait()).await.is_err() {
            tracing::warn!("a sandbox is still being made or removed by a backend that is closed; collect garbage");
        }
        let waiting = self.pool.close(self.options.start_limit).await;
        let running: Vec<_> = lock(&self.running).drain().collect();
        let servers: Vec<_> = waiting
            .into_iter()
            .map(|Server { process, mark, socket, lock, directory, .. }| {
                (Running { process, mark, socket, lock }, directory)
            })
            .chain(running.into_iter().map(|(id, running)| (running, self.state.sandbox(&id))))
            .map(|(Running { process, mark, socket, lock }, directory)| {
                // All of them end at the same time.
                drop(socket);
                (process, mark, lock, directory)
            })
            .collect();
        let ends = servers.into_iter().map(|(process, mark, lock, directory)| {
            let removal = self.removal();
            blocking(move || delete::remove_server(&removal, process, &mark, &lock, &directory))
        });
        for ended in join_all(ends).await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a sandbox of a closed backend is left; collect garbage");
            }
        }
        let (inner, held) = (Arc::clone(self), std::mem::take(&mut *lock(&self.held)));
        let released = blocking(move || {
            for id in held {
                inner.release(&id)?;
            }
            inner.backend.vanish(&inner.state);
            Ok(())
        });
        if let Err(error) = released.await {
            tracing::warn!(%error, "a kept sandbox will look as if its backend had died");
        }
    }

    async fn pause(self: &Arc<Self>, id: &SandboxId) -> Result<(), ProviderError> {
        let sandbox = self.view(id).await?;
        match sandbox.state {
            SandboxState::Paused => return Ok(()),
            SandboxState::Running => {}
            state => return Err(ProviderError::State { action: "pause", id: id.clone(), state }),
        }
        self.options.observer.tell(Step::Pausing);
        if let Err(error) = Self::client(&sandbox)?.pause().await {
            return Err(self.undone("pause", id, causes(&error)).await);
        }
        self.options.observer.tell(Step::Paused);
        Ok(())
    }

    async fn resume(self: &Arc<Self>, id: &SandboxId) -> Result<(), ProviderError> {
        let sandbox = self.view(id).await?;
        match sandbox.state {
            SandboxState::Running => return Ok(()),
            SandboxState::Paused => {}
            state => return Err(ProviderError::State { action: "resume", id: id.clone(), state }),
        }
        self.options.observer.tell(Step::Resuming);
        if let Err(error) = Self::client(&sandbox)?.resume().await {
            return Err(self.undone("resume", id, causes(&error)).await);
        }
        self.options.observer.tell(Step::Resumed);
        Ok(())
    }

    /// Why a server did not pause or resume: the sandbox may have ended meanwhile, or its server did not do it.
    async fn undone(self: &Arc<Self>, action: &'static str, id: &SandboxId, reason: String) -> ProviderError {
        match self.view(id).await {
            Err(gone) => gone,
            Ok(Sandbox { state, .. }) if !state.is_live() => ProviderError::State { action, id: id.clone(), state },
            Ok(_) => engine(format!("{action} the sandbox `{id}`"), reason),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Provider for Local {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.inner.create(spec, progress))
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        let (state, id) = (self.inner.state.clone(), id.clone());
        Box::pin(blocking(move || view::sandbox(&state, &id)))
    }

    /// The id of a sandbox is that of its session, so that the file system lets each session have one only.
    fn find_session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        let (state, session) = (self.inner.state.clone(), session.clone());
        Box::pin(blocking(move || view::sandbox(&state, &SandboxId::new(session.as_str())?)))
    }

    fn list<'a>(&'a self, filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        let (state, filter) = (self.inner.state.clone(), filter.clone());
        Box::pin(blocking(move || view::list(&state, &filter)))
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.pause(id))
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.resume(id))
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        let (inner, id) = (Arc::clone(&self.inner), id.clone());
        Box::pin(blocking(move || {
            inner.state.prepare()?;
            delete::end_and_remove(&inner.removal(), &inner.state.sandbox(&id))
        }))
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(logs::stream(self.inner.state.clone(), id.clone(), options))
    }

    fn network<'a>(
        &'a self,
        id: &'a SandboxId,
        change: &'a NetworkChange,
    ) -> BoxFuture<'a, Result<NetworkState, ProviderError>> {
        let (state, id, change) = (self.inner.state.clone(), id.clone(), change.clone());
        Box::pin(blocking(move || gate::change(&state, &id, &change)))
    }

    fn audit_log<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(audit::stream(self.inner.state.clone(), session))
    }

    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        let (inner, options) = (Arc::clone(&self.inner), options.clone());
        Box::pin(blocking(move || {
            inner.state.prepare()?;
            inner.collect_garbage(&options)
        }))
    }

    fn hold<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        let (inner, id) = (Arc::clone(&self.inner), id.clone());
        Box::pin(blocking(move || inner.hold(&id)))
    }

    fn release<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        let (inner, id) = (Arc::clone(&self.inner), id.clone());
        Box::pin(blocking(move || {
            inner.release(&id)?;
            lock(&inner.held).remove(&id);
            Ok(())
        }))
    }

    /// All servers that wait are alike: whatever a kind says of plugins, they are told later.
    fn keep_warm<'a>(&'a self, kinds: &'a [WarmKind]) -> BoxFuture<'a, Result<Vec<usize>, ProviderError>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            if !kinds.iter().all(WarmKind::is_default) {
                return Err(self.cannot("warm sandboxes of an image or a size"));
            }
            let prepared = Arc::clone(&inner);
            blocking(move || {
                prepared.check_open()?;
                prepared.state.prepare()?;
                prepared.backend.appear(&prepared.state)
            })
            .await?;
            let sum = |number: fn(&WarmKind) -> usize| kinds.iter().map(number).fold(0, usize::saturating_add);
            Pool::fill(&inner, sum(|kind| kind.least)).await?;
            inner.pool.trim(sum(|kind| kind.most));
            let mut waiting = inner.pool.waiting();
            let mut of_kind = |kind: &WarmKind| {
                let own = waiting.min(kind.least);
                waiting -= own;
                own
            };
            let mut counts: Vec<usize> = kinds.iter().map(&mut of_kind).collect();
            if let Some(first) = counts.first_mut() {
                *first += waiting;
            }
            Ok(counts)
        })
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { blocking(move || Ok(checks(&inner))).await.unwrap_or_default() })
    }

    /// A look at a directory and a process.
    fn poll_interval(&self) -> Duration {
        Duration::from_millis(10)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.close())
    }
}

fn checks(inner: &Inner) -> Vec<Check> {
    let program = &inner.options.program;
    let (runs, found) = match fs::metadata(program) {
        Ok(meta) if meta.is_file() && meta.permissions().mode() & 0o111 != 0 => (true, program.display().to_string()),
        Ok(_) => (false, format!("{} is no program", program.display())),
        Err(error) => (false, format!("{}: {error}", program.display())),
    };
    let server = Check {
        name: "server program".to_owned(),
        works: runs,
        found,
        remedy: (!runs).then(|| "install gloveport where this user may run it".to_owned()),
    };
    let state = inner.state.prepare().and_then(|()| inner.backend.appear(&inner.state));
    let directory = inner.state.root().display();
    let state = Check {
        name: "state directory".to_owned(),
        works: state.is_ok(),
        found: state.as_ref().map_or_else(ToString::to_string, |()| directory.to_string()),
        remedy: state.is_err().then(|| format!("make {directory} writable, or set XDG_STATE_HOME to another place")),
    };
    let own = ServerProcess::of(std::process::id()).is_some_and(ServerProcess::is_alive);
    let proc = Check {
        name: "/proc".to_owned(),
        works: own,
        found: if own { "mounted" } else { "it does not show this process" }.to_owned(),
        remedy: (!own).then(|| "mount /proc".to_owned()),
    };
    vec![server, state, proc]
}

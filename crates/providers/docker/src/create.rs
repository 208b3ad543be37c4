//! Makes a sandbox: pull, create, attach, start, each a phase. What is given up is taken back.

use std::{io, sync::Arc};

use bollard::{
    models::{ImageInspect, NetworkConnectRequest},
    query_parameters::{AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, UploadToContainerOptionsBuilder},
};
use gloveport_docker_engine::images;
use gloveport_edge::trust::BUNDLE_VARIABLE;
use gloveport_protocol::Secret;
use gloveport_provider::container::{Input, STATE};
use gloveport_provider::program::{SMALL, is_for_containers};
use gloveport_provider::{
    Phase, Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, Teller, Workspace, backend, handed_over,
};
use tokio::{
    io::AsyncWriteExt as _,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    BinaryMode, PullPolicy,
    audit::Audit,
    binary::{self, Binary},
    body::Plan,
    edge::Edge,
    fault::{self, NAME, failed, wrong},
    inner::{Inner, Lifeline, Own},
    names,
    network::{Closed, Policy},
    ports::{self, LockedPort},
    waiting::Kind,
    warm,
};

/// How long a container that has been started may take to read its input.
const INPUT: std::time::Duration = std::time::Duration::from_secs(30);
/// How often the name of a container that is just going away is asked for again.
const RACES: u32 = 100;
/// How often a container is made anew whose ports were taken in between.
const PORT_RACES: u32 = 3;
/// Pause between them.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(30);

impl Inner {
    /// Makes a sandbox in a task of its own, so that nothing is left behind when the caller gives up.
    pub(crate) async fn create(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        self.create_of(spec, None, progress).await
    }

    /// The same for a fork, whose image ends with it.
    pub(crate) async fn create_of(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        fork: Option<String>,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        spec.check(NAME, &self.capabilities())?;
        self.check_open()?;
        let edge = Edge::prepare(spec, self.options.certificates.as_deref())?;
        let policy = Policy::of(spec, &self.options, edge.as_ref())?;
        let id = names::id_of(&spec.session_id)?;
        let audit = Audit::prepare(spec, &id)?;
        let (inner, mut spec) = (Arc::clone(self), spec.clone());
        if let Some(file) = &spec.audit {
            spec.labels.insert(names::AUDIT_FILE.to_owned(), file.display().to_string());
        }
        let making = |tell, given_up| Making { inner, id, spec, policy, edge, audit, fork, tell, given_up }.make();
        let inner = Arc::clone(self);
        let undo = |made| async move { inner.undo(made).await };
        handed_over(progress, making, undo).await.map_err(|error| failed("make a container", error))?
    }

    /// Takes back what was made and nobody waits for.
    async fn undo(&self, made: Result<Sandbox, ProviderError>) {
        if let Ok(sandbox) = made
            && let Err(error) = self.delete(&sandbox.id).await
        {
            tracing::warn!(%error, "a sandbox that nobody waits for stays until garbage is collected");
        }
    }
}

struct Making {
    inner: Arc<Inner>,
    id: SandboxId,
    spec: SandboxSpec,
    /// Whom it may reach, if not everybody.
    policy: Option<Policy>,
    /// The secrets that its gate puts into requests.
    edge: Option<Edge>,
    /// What is recorded.
    audit: Option<Audit>,
    /// The image, if that is to end with it.
    fork: Option<String>,
    tell: Teller,
    given_up: CancellationToken,
}

impl Making {
    async fn make(self) -> Result<Sandbox, ProviderError> {
        let image = self.spec.image.clone().or_else(|| self.inner.options.image.clone());
        let image = image.ok_or_else(|| wrong("image", "none is named, and none is configured"))?;
        let found = self.image(&image).await?;
        if self.spec.keep_alive {
            // Somebody may ask who uses it as soon as it is there.
            self.inner.holders.own()?;
        }
        if let Some(sandbox) = self.claimed(&found).await? {
            return Ok(sandbox);
        }
        let mut binary = self.binary(&image).await?;
        let mut made = Box::pin(self.with(&image, &found, &binary)).await;
        let podman = self.inner.engine.about().await.map_err(fault::of)?.podman;
        for _ in 0..PORT_RACES {
            // Podman chooses ports when a container is made, and somebody else may have one when it is started.
            let taken = |error: &ProviderError| error.to_string().contains("address already in use");
            if !podman || !made.as_ref().is_err_and(taken) {
                break;
            }
            made = Box::pin(self.with(&image, &found, &binary)).await;
        }
        match made {
            // The engine is on another machine after all, or in one of its own.
            Err(ProviderError::Engine { reason, .. })
                if self.inner.options.binary == BinaryMode::Auto && binary.is_not_seen(&reason) =>
            {
                tracing::debug!(reason, "the engine does not see our program; it is copied");
                binary = Binary::Volume(self.copied(&image).await?);
                Box::pin(self.with(&image, &found, &binary)).await
            }
            other => other,
        }
    }

    /// A container that was started ahead, if one waits that can become this sandbox.
    async fn claimed(&self, image: &ImageInspect) -> Result<Option<Sandbox>, ProviderError> {
        if self.fork.is_some() || !warm::can_wait(&self.spec) {
            return Ok(None);
        }
        let kind = Kind { image: image.id.clone().unwrap_or_default(), has_editor: warm::has_editor(&self.spec) };
        let key = self.key()?;
        let sandbox = self.inner.claim(&kind, (&self.id, &self.spec, key.expose()), &self.tell).await?;
        if sandbox.is_some() && self.inner.options.stream_logs {
            self.inner.follow(self.id.clone());
        }
        Ok(sandbox)
    }

    fn key(&self) -> Result<Secret, ProviderError> {
        match &self.spec.session_key {
            Some(key) => Ok(key.clone()),
            None => Ok(Secret::new(backend::random().map_err(|error| failed("make a key", error))?)),
        }
    }

    /// The image, pulled if it has to be.
    async fn image(&self, image: &str) -> Result<ImageInspect, ProviderError> {
        let Inner { engine, options, .. } = &*self.inner;
        let pull = || async {
            self.tell.enter(Phase::PreparingImage, &format!("pulling {image}"));
            let told = |line: &str| self.tell.enter(Phase::PreparingImage, line);
            tokio::select! {
                pulled = images::pull(engine, image, options.platform.as_deref(), told) => pulled.map_err(fault::of),
                () = self.given_up.cancelled() => Err(given_up()),
            }
        };
        if options.pull == PullPolicy::Always {
            pull().await?;
        }
        let mut found = images::inspect(engine, image).await.map_err(fault::of)?;
        if found.is_none() && options.pull == PullPolicy::Missing {
            pull().await.map_err(|error| with_hint(error, image))?;
            found = images::inspect(engine, image).await.map_err(fault::of)?;
        }
        let found = found.ok_or_else(|| {
            let hint = "pull or build it first, or set `pull = \"missing\"` in [extended.docker]";
            wrong("image", format!("the engine has no image `{image}`; {hint}"))
        })?;
        let engine_is = &engine.about().await.map_err(fault::of)?.architecture;
        match &found.architecture {
            Some(built_for) if options.platform.is_none() && !built_for.is_empty() && built_for != engine_is => {
                let hint = "use one for these processors, or set sandbox.platform if the machine can emulate them";
                Err(wrong("image", format!("`{image}` is for {built_for}, and the engine has {engine_is}; {hint}")))
            }
            _ => Ok(found),
        }
    }

    async fn binary(&self, image: &str) -> Result<Binary, ProviderError> {
        if self.spec.command.is_some() { Ok(Binary::Image) } else { self.ours(image).await }
    }

    async fn ours(&self, image: &str) -> Result<Binary, ProviderError> {
        let Inner { options, engine, copied, .. } = &*self.inner;
        if options.binary != BinaryMode::Image {
            let path = &options.program;
            let failed = |source| ProviderError::File { action: "put into a container", path: path.clone(), source };
            if !is_for_containers(path).map_err(failed)? {
                let reason = format!("it is no program for Linux; put a {SMALL} that was built for Linux beside it");
                return Err(failed(io::Error::new(io::ErrorKind::Unsupported, reason)));
            }
        }
        match options.binary {
            BinaryMode::Image => Ok(Binary::Image),
            BinaryMode::Auto if engine.endpoint().address.is_local() && !copied.initialized() => {
                Ok(Binary::Mounted(options.program.clone()))
            }
            BinaryMode::Mount => Ok(Binary::Mounted(options.program.clone())),
            BinaryMode::Auto | BinaryMode::Copy => Ok(Binary::Volume(self.copied(image).await?)),
        }
    }

    /// How our binary gets into the gate, also beside a server of the caller.
    async fn gate_binary(&self, plan: &Plan<'_>) -> Result<Binary, ProviderError> {
        match plan.binary {
            Binary::Image if self.inner.options.binary != BinaryMode::Image => self.ours(plan.image).await,
            same => Ok(same.clone()),
        }
    }

    /// The volume with our program, filled once for all sandboxes of this backend.
    async fn copied(&self, image: &str) -> Result<String, ProviderError> {
        let Inner { options, engine, copied, .. } = &*self.inner;
        self.tell.enter(Phase::Creating, "copying the server to the engine");
        copied.get_or_try_init(|| binary::volume(engine, &options.program, image)).await.cloned()
    }

    async fn with(&self, image: &str, found: &ImageInspect, binary: &Binary) -> Result<Sandbox, ProviderError> {
        let Inner { options, holders, .. } = &*self.inner;
        self.tell.enter(Phase::Creating, "");
        let key = self.key()?;
        let locked = if options.port_ranges || options.host_network { Some(locked().await?) } else { None };
        let backend = holders.label()?;
        let closed = match &self.policy {
            Some(policy) => Some(self.inner.closed_network(&self.id, policy.clone(), &backend).await?),
            None => None,
        };
        let plan = Plan {
            options,
            spec: &self.spec,
            id: &self.id,
            image,
            backend: &backend,
            key: key.expose(),
            binary,
            locked: locked.as_ref(),
            closed: closed.as_ref(),
            edge: self.edge.as_ref(),
            audit: self.audit.as_ref(),
            fork: self.fork.as_deref(),
            waits: false,
            podman: self.inner.engine.about().await.map_err(fault::of)?.podman,
            user_of_image: found.config.as_ref().and_then(|config| config.user.as_deref()).unwrap_or_default(),
        };
        let engine_id = match self.container(&plan).await {
            Ok(made) => made,
            Err(error) => {
                self.take_back_network(closed.as_ref()).await;
                return Err(error);
            }
        };
        let started = Box::pin(self.start(&plan, found, &engine_id)).await;
        match started {
            Ok((sandbox, lifeline)) => {
                if !self.spec.keep_alive || locked.is_some() {
                    let own = Own { lifeline, _ports: locked, ends_with_us: !self.spec.keep_alive };
                    if let Err(error) = self.inner.keep(self.id.clone(), own) {
                        self.take_back(&engine_id).await;
                        self.take_back_network(closed.as_ref()).await;
                        return Err(error);
                    }
                }
                Ok(sandbox)
            }
            Err(error) => {
                self.take_back(&engine_id).await;
                self.take_back_network(closed.as_ref()).await;
                Err(error)
            }
        }
    }

    /// Makes the container. Its name decides who makes the session's.
    async fn container(&self, plan: &Plan<'_>) -> Result<String, ProviderError> {
        let inner = &*self.inner;
        let docker = inner.engine.docker().await.map_err(fault::of)?;
        let action = format!("create the container `{}`", self.id);
        for _ in 0..RACES {
            if self.given_up.is_cancelled() {
                return Err(given_up());
            }
            let mut options = CreateContainerOptionsBuilder::default().name(self.id.as_str());
            if let Some(platform) = &inner.options.platform {
                options = options.platform(platform);
            }
            let made = inner.engine.ask(&action, docker.create_container(Some(options.build()), plan.body()?)).await;
            let error = match made {
                Ok(made) => {
                    for warning in made.warnings {
                        tracing::debug!(warning, "the engine warns");
                    }
                    return Ok(made.id);
                }
                Err(error) => error,
            };
            if !error.is_conflict() {
                return Err(fault::of(error));
            }
            let Some(existing) = inner.container(self.id.as_str()).await? else {
                // It is just being removed.
                sleep(PAUSE).await;
                continue;
            };
            // One that was never started has no use without its backend.
            let left = existing.sandbox.state == gloveport_provider::SandboxState::Pending
                && existing.backend.as_deref().is_some_and(|backend| !inner.holders.lives(backend));
            if existing.sandbox.state.is_live() && !left {
                let (session, sandbox) = (self.spec.session_id.clone(), existing.sandbox.id);
                return Err(ProviderError::SessionExists { session, sandbox });
            }
            if existing.backend.is_none() {
                let hint = "it has ended and was not made by this program; remove or rename it first";
                return Err(failed(action, format!("a container has that name already: {hint}")));
            }
            inner.remove_whole(&existing).await?;
            // Its log may have been given to the same file.
            self.audit.as_ref().map_or(Ok(()), Audit::check_free)?;
        }
        Err(failed(action, "its name is taken and given up all the time"))
    }

    async fn start(
        &self,
        plan: &Plan<'_>,
        found: &ImageInspect,
        engine_id: &str,
    ) -> Result<(Sandbox, Option<Lifeline>), ProviderError> {
        let inner = &*self.inner;
        let docker = inner.engine.docker().await.map_err(fault::of)?;
        if !plan.is_root() && !inner.options.hardening.read_only {
            let workspace = (self.spec.workspace == Workspace::Temporary).then_some(inner.options.workspace.as_str());
            let state = (plan.needs_input() && self.spec.keep_alive).then_some(STATE);
            for directory in workspace.into_iter().chain(state) {
                let options = UploadToContainerOptionsBuilder::default().path("/").build();
                let archive = bollard::body_full(binary::directory_archive(directory)?.into());
                let upload = docker.upload_to_container(engine_id, Some(options), archive);
                inner.engine.ask(&format!("make `{directory}`"), upload).await.map_err(fault::of)?;
            }
        }
        let mut lifeline = None;
        if plan.needs_input() {
            let options = AttachContainerOptionsBuilder::default().stream(true).stdin(true).build();
            let attached = docker.attach_container(engine_id, Some(options));
            let attached =
                inner.engine.ask("attach to the container's standard input", attached).await.map_err(fault::of)?;
            lifeline = Some(attached.input);
        }
        let for_requests = match plan.edge {
            Some(edge) => Some(inner.trust(engine_id, edge, self.named_certificates(found)).await?),
            None => None,
        };
        self.check_wanted()?;
        let action = format!("start the container `{}`", self.id);
        let sandbox =
            async { inner.engine.ask(&action, docker.start_container(engine_id, None)).await.map_err(fault::of_start) };
        match plan.closed {
            None => sandbox.await?,
            // The gate waits for the sandbox.
            Some(closed) => {
                let binary = self.gate_binary(plan).await?;
                let gate = inner.start_gate(plan, closed, &binary, for_requests.as_ref().map(|line| line.as_slice()));
                tokio::try_join!(sandbox, Box::pin(gate))?;
            }
        }
        self.tell.enter(Phase::Started, "");
        if let Some(stdin) = &mut lifeline {
            let input = Input { secrets: plan.given(), audit: plan.recorder()? };
            let line = serde_json::to_vec(&input).map_err(|error| failed("be given the secrets", error))?;
            let write = async {
                stdin.write_all(&line).await?;
                stdin.write_all(b"\n").await?;
                stdin.flush().await
            };
            let written = timeout(INPUT, write).await;
            let late = |_| ProviderError::Timeout {
                action: "passing the secrets on to the container".to_owned(),
                limit: INPUT,
            };
            written.map_err(late)?.map_err(|error| failed("pass the secrets on to the container", error))?;
        }
        for network in &inner.options.networks {
            let request = NetworkConnectRequest { container: engine_id.to_owned(), ..NetworkConnectRequest::default() };
            let connected = docker.connect_network(network, request);
            // As in OpenHands, the sandbox works without (docker-runtime 3).
            if let Err(error) = inner.engine.ask(&format!("connect it to the network `{network}`"), connected).await {
                tracing::warn!(%error, sandbox = %self.id, "the sandbox lacks a network");
            }
        }
        self.check_wanted()?;
        let made = inner.container(engine_id).await?;
        let made = made.ok_or_else(|| failed(action, "it was removed at once"))?;
        if self.spec.keep_alive {
            inner.holders.hold(&made.engine_id)?;
            inner.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(made.engine_id.clone());
        }
        if inner.options.stream_logs {
            self.inner.follow(made.sandbox.id.clone());
        }
        Ok((made.sandbox, lifeline.filter(|_| !self.spec.keep_alive)))
    }

    /// The file with certificates of authorities that programs of the sandbox would look at, if a variable names one.
    fn named_certificates(&self, image: &ImageInspect) -> Option<String> {
        let of_image = image.config.as_ref().and_then(|config| config.env.as_deref()).unwrap_or_default();
        let of_image = of_image.iter().filter_map(|variable| variable.split_once('='));
        let named = of_image.filter(|(name, _)| *name == BUNDLE_VARIABLE).map(|(_, path)| path.to_owned()).next_back();
        self.spec.environment.get(BUNDLE_VARIABLE).cloned().or(named).filter(|path| path.starts_with('/'))
    }

    fn check_wanted(&self) -> Result<(), ProviderError> {
        if self.given_up.is_cancelled() {
            return Err(given_up());
        }
        Ok(())
    }

    async fn take_back_network(&self, closed: Option<&Closed>) {
        let Some(Closed { network, .. }) = closed else { return };
        if let Err(error) = self.inner.remove_closed(network).await {
            tracing::warn!(%error, "a network of a sandbox that did not start stays until garbage is collected");
        }
        let Some(audit) = &self.audit else { return };
        if let Err(error) = self.inner.remove_audit_volume(&audit.volume).await {
            tracing::warn!(%error, "the log of a sandbox that did not start stays until garbage is collected");
        }
    }

    async fn take_back(&self, container: &str) {
        self.inner.forget(&self.id);
        if let Err(error) = self.inner.remove(container).await {
            tracing::warn!(%error, "the rest of a sandbox that did not start stays until garbage is collected");
        }
    }
}

/// Told to nobody.
fn given_up() -> ProviderError {
    failed("make the sandbox", "nobody waits for it any more")
}

/// Four ports of the ranges. Locks of others are waited for, which is nothing for a thread of the runtime.
async fn locked() -> Result<[LockedPort; 4], ProviderError> {
    let found = tokio::task::spawn_blocking(|| ports::four(&ports::locks())).await;
    let found = found.map_err(|error| failed("get ports", error))?;
    found.ok_or_else(|| failed("get ports", "no port of the configured ranges is free"))
}

/// What to do about an image that cannot be pulled.
fn with_hint(error: ProviderError, image: &str) -> ProviderError {
    match error {
        ProviderError::Engine { engine, action, reason } => {
            let hint = format!("is `{image}` the right name, can the registry be reached, and is `docker login` done?");
            ProviderError::Engine { engine, action, reason: format!("{reason}; {hint}") }
        }
        other => other,
    }
}

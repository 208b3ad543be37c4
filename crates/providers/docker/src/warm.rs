//! Containers that are started ahead. They wait under names that are no sandbox's, and their servers wait until they are told what
//! they are for. A backend gives away its own ones only, each once; when it is gone, they are garbage.

use std::{sync::Arc, time::Duration};

use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, UploadToContainerOptionsBuilder,
};
use futures_util::{StreamExt as _, future::join_all, stream};
use gloveport_client::{Certificates, Pool as Clients, causes};
use gloveport_docker_engine::images;
use gloveport_protocol::Secret;
use gloveport_provider::{
    ProviderError, SandboxId, SandboxSpec, SessionId, WarmKind, backend,
    container::{CLAIM, Claimed, KEY},
};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    BinaryMode, PullPolicy,
    binary::{self, Binary},
    body::Plan,
    fault::{self, NAME, failed, wrong},
    inner::Inner,
    names::{BACKEND, CLAIM_ROLE, EDITOR, RECORD_PREFIX, ROLE, WARM},
    waiting::{Kind, Waiting},
};

/// What the names of containers begin with that wait.
const PREFIX: &str = "gloveport-warm-";
/// Containers that are started at the same time.
const AT_ONCE: usize = 4;
/// Containers that may wait.
const MOST: usize = 256;
/// Time for a server to wait for its session.
const READY: Duration = Duration::from_mins(2);
/// Pause between two looks at that.
const LOOK: Duration = Duration::from_millis(25);
/// Time for one that waits to say that it is well.
const WELL: Duration = Duration::from_secs(2);
/// Time for a server to become a session's.
const TELLING: Duration = Duration::from_secs(20);
/// The variable with the session, which tools know.
const SESSION_VARIABLE: &str = "OPENHANDS_SESSION_ID";

/// Whether a container that waits can become this sandbox, apart from its image.
pub(crate) fn can_wait(spec: &SandboxSpec) -> bool {
    // The image is compared as the engine knows it.
    let kind = WarmKind { image: spec.image.clone(), plugins: spec.plugins.clone(), ..WarmKind::any(0) };
    kind.fits(spec) && spec.keep_alive && spec.secrets.is_empty() && spec.audit.is_none()
}

/// Whether this is the plugin with a port of its own.
pub(crate) fn has_editor(spec: &SandboxSpec) -> bool {
    spec.plugins.iter().any(|plugin| plugin == EDITOR.0)
}

impl Inner {
    /// Whether containers can be started ahead: their ports are chosen by the engine.
    pub(crate) fn can_warm(&self) -> bool {
        let options = &self.options;
        !options.host_network && !options.port_ranges && options.networks.is_empty()
    }

    /// Starts and ends containers until as many of each kind wait as it says.
    pub(crate) async fn keep_warm(self: &Arc<Self>, kinds: &[WarmKind]) -> Result<Vec<usize>, ProviderError> {
        self.check_open()?;
        if !self.can_warm() {
            let what =
                "warm sandboxes with ports of configured ranges, the engine's network or more networks".to_owned();
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what });
        }
        if kinds.iter().any(|kind| kind.factor.unwrap_or(1) != 1) {
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what: "a size".to_owned() });
        }
        if kinds.iter().map(|kind| kind.least).fold(0, usize::saturating_add) > MOST {
            return Err(wrong("warm", format!("{MOST} containers may wait at most")));
        }
        let _alone = self.pool.filling.lock().await;
        self.end_unwell().await;
        let mut counts = Vec::new();
        let mut known = Vec::new();
        for wanted in kinds {
            let filled = self.fill(wanted).await;
            let (kind, count) = filled?;
            known.push(kind);
            counts.push(count);
        }
        // Those of kinds that nobody wants any more, and of images that have another name by now.
        let of_no_kind: Vec<Waiting> = {
            let mut waiting = self.pool.lock();
            let (kept, gone) = waiting.drain(..).partition(|it| known.contains(&it.kind));
            *waiting = kept;
            Vec::from(gone)
        };
        self.end_waiting(of_no_kind).await;
        Ok(counts)
    }

    async fn fill(self: &Arc<Self>, wanted: &WarmKind) -> Result<(Kind, usize), ProviderError> {
        let image = wanted.image.clone().or_else(|| self.options.image.clone());
        let image = image.ok_or_else(|| {
            wrong(
                "image",
                "none is configured to start sandboxes from ahead; name one, or set sandbox.runtime_container_image",
            )
        })?;
        let mut found = images::inspect(&self.engine, &image).await.map_err(fault::of)?;
        if found.is_none() && self.options.pull != PullPolicy::Never {
            let platform = self.options.platform.as_deref();
            images::pull(&self.engine, &image, platform, |_: &str| {}).await.map_err(fault::of)?;
            found = images::inspect(&self.engine, &image).await.map_err(fault::of)?;
        }
        let found =
            found.ok_or_else(|| wrong("image", format!("the engine has no image `{image}`; pull or build it")))?;
        let kind = Kind { image: found.id.unwrap_or_default(), has_editor: wanted.has_editor() };
        let user = found.config.and_then(|config| config.user).unwrap_or_default();
        let missing = wanted.least.saturating_sub(self.pool.count(&kind));
        let started = (0..missing).map(|_| self.start_one(&image, &user, kind.clone(), wanted));
        let started: Vec<Result<(), ProviderError>> = stream::iter(started).buffer_unordered(AT_ONCE).collect().await;
        started.into_iter().collect::<Result<(), _>>()?;
        let surplus = self.pool.count(&kind).saturating_sub(wanted.most);
        let surplus: Vec<Waiting> = (0..surplus).filter_map(|_| self.pool.take(&kind)).collect();
        self.end_waiting(surplus).await;
        let count = self.pool.count(&kind);
        Ok((kind, count))
    }

    async fn start_one(
        self: &Arc<Self>,
        image: &str,
        user: &str,
        kind: Kind,
        wanted: &WarmKind,
    ) -> Result<(), ProviderError> {
        self.check_open()?;
        let random = backend::random().map_err(|error| failed("make a name", error))?;
        let key = Secret::new(backend::random().map_err(|error| failed("make a key", error))?);
        let id = SandboxId::new(format!("{PREFIX}{}", random.get(..16).unwrap_or(&random)))?;
        let spec = SandboxSpec {
            image: Some(image.to_owned()),
            plugins: wanted.plugins.clone(),
            keep_alive: true,
            ..SandboxSpec::new(SessionId::new("nobody")?)
        };
        let binary = self.warm_binary(image).await?;
        let label = self.holders.label()?;
        let plan = Plan {
            options: &self.options,
            spec: &spec,
            id: &id,
            image,
            backend: &label,
            key: key.expose(),
            binary: &binary,
            locked: None,
            closed: None,
            edge: None,
            audit: None,
            fork: None,
            podman: self.engine.about().await.map_err(fault::of)?.podman,
            user_of_image: user,
            waits: true,
        };
        if !plan.is_root() {
            let what = format!("warm sandboxes of `{image}`, whose user is not root");
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what });
        }
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let mut options = CreateContainerOptionsBuilder::default().name(id.as_str());
        if let Some(platform) = &self.options.platform {
            options = options.platform(platform);
        }
        let action = format!("create the container `{id}`");
        let made = self.engine.ask(&action, docker.create_container(Some(options.build()), plan.body()?)).await;
        let engine_id = made.map_err(fault::of)?.id;
        let started = self.until_it_waits(&engine_id, &id, kind, key).await;
        match started {
            Ok(waiting) => {
                {
                    let mut all = self.pool.lock();
                    // `close` takes what is there after it has closed.
                    if self.check_open().is_ok() {
                        all.push_back(waiting);
                        return Ok(());
                    }
                }
                self.end_container(&engine_id).await;
                self.check_open()
            }
            Err(error) => {
                self.end_container(&engine_id).await;
                Err(error)
            }
        }
    }

    /// Our program, as for a sandbox.
    async fn warm_binary(&self, image: &str) -> Result<Binary, ProviderError> {
        match self.options.binary {
            BinaryMode::Image => Ok(Binary::Image),
            BinaryMode::Mount => Ok(Binary::Mounted(self.options.program.clone())),
            BinaryMode::Auto if self.engine.endpoint().address.is_local() && !self.copied.initialized() => {
                Ok(Binary::Mounted(self.options.program.clone()))
            }
            BinaryMode::Auto | BinaryMode::Copy => {
                let volume = self.copied.get_or_try_init(|| binary::volume(&self.engine, &self.options.program, image));
                Ok(Binary::Volume(volume.await?.clone()))
            }
        }
    }

    async fn until_it_waits(
        &self,
        engine_id: &str,
        id: &SandboxId,
        kind: Kind,
        key: Secret,
    ) -> Result<Waiting, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        if !self.options.hardening.read_only {
            let options = UploadToContainerOptionsBuilder::default().path("/").build();
            let archive = bollard::body_full(binary::directory_archive(&self.options.workspace)?.into());
            let upload = docker.upload_to_container(engine_id, Some(options), archive);
            self.engine.ask("make the workspace", upload).await.map_err(fault::of)?;
        }
        let action = format!("start the container `{id}`");
        self.engine.ask(&action, docker.start_container(engine_id, None)).await.map_err(fault::of_start)?;
        let action = format!("look at the container `{id}`");
        let found = self.engine.ask(&action, docker.inspect_container(engine_id, None)).await.map_err(fault::of)?;
        let ports = found.network_settings.and_then(|settings| settings.ports).unwrap_or_default();
        let port = crate::view::published_port(&ports, gloveport_provider::container::PORT);
        let url = self.options.url_of(port.ok_or_else(|| failed(action, "it has no port"))?);
        let waiting = Waiting { engine_id: engine_id.to_owned(), kind, url, key };
        let until = Instant::now() + READY;
        while !self.is_well(&waiting).await {
            if Instant::now() > until || self.check_open().is_err() {
                let log = self.last_lines(engine_id).await;
                return Err(ProviderError::Start { reason: "its server does not wait for a session".to_owned(), log });
            }
            sleep(LOOK).await;
        }
        Ok(waiting)
    }

    /// Whether a server waits for its session.
    async fn is_well(&self, waiting: &Waiting) -> bool {
        let Ok(clients) = self.clients() else { return false };
        let asked = clients.http().get(format!("{}/alive", waiting.url)).timeout(WELL).send().await;
        asked.is_ok_and(|answer| answer.status().is_success())
    }

    fn clients(&self) -> Result<&Clients, ProviderError> {
        if let Some(clients) = self.clients.get() {
            return Ok(clients);
        }
        let made = Clients::new(Certificates::Checked).map_err(|error| failed("be asked over HTTP", causes(&error)))?;
        Ok(self.clients.get_or_init(|| made))
    }

    /// Tells the server of a container what it is for; it takes one session only.
    pub(crate) async fn tell(&self, waiting: &Waiting, spec: &SandboxSpec, key: &str) -> Result<(), ProviderError> {
        let mut environment = spec.environment.clone();
        environment.remove(KEY);
        environment.entry(SESSION_VARIABLE.to_owned()).or_insert_with(|| spec.session_id.to_string());
        let claimed = Claimed {
            session_key: key.to_owned(),
            environment,
            secrets: [].into(),
            plugins: spec.plugins.clone(),
            time_to_live: spec.time_to_live.map(|time| time.as_secs_f64()),
            idle_stop: spec.idle_stop.map(|time| time.as_secs_f64()),
        };
        let broken = |reason: String| failed("be told what it is for", reason);
        let request = self.clients()?.http().post(format!("{}{CLAIM}", waiting.url)).timeout(TELLING);
        let request = request.header("X-Session-API-Key", waiting.key.expose()).json(&claimed);
        let answer = request.send().await.map_err(|error| broken(causes(&error.without_url())))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let detail = answer.text().await.unwrap_or_default();
        Err(broken(format!("status {status}: {}", detail.chars().take(500).collect::<String>())))
    }

    /// Ends a container of which nothing came.
    pub(crate) async fn end_container(&self, engine_id: &str) {
        let ended = async {
            self.remove(engine_id).await?;
            self.forget_record(engine_id).await
        };
        if let Err(error) = ended.await {
            tracing::warn!(%error, "a container that was started ahead stays until garbage is collected");
        }
    }

    /// A container waits once more.
    pub(crate) fn put_back(&self, waiting: Waiting) {
        self.pool.lock().push_front(waiting);
    }

    /// Ends those that do not answer; others take their place.
    async fn end_unwell(&self) {
        let all: Vec<Waiting> = self.pool.lock().iter().cloned().collect();
        let looked = join_all(all.iter().map(async |it| (it, self.is_well(it).await))).await;
        let unwell: Vec<Waiting> = {
            let mut waiting = self.pool.lock();
            let is_unwell =
                |it: &Waiting| looked.iter().any(|(other, is_well)| other.engine_id == it.engine_id && !is_well);
            let (gone, kept) = waiting.drain(..).partition(is_unwell);
            *waiting = kept;
            Vec::from(gone)
        };
        self.end_waiting(unwell).await;
    }

    async fn end_waiting(&self, waiting: Vec<Waiting>) {
        join_all(waiting.iter().map(|it| self.end_container(&it.engine_id))).await;
    }

    /// Ends all that wait.
    pub(crate) async fn close_pool(&self) {
        let all: Vec<Waiting> = self.pool.lock().drain(..).collect();
        self.end_waiting(all).await;
    }

    /// The containers that were started ahead by backends that are gone and that no session has, by the engine's id and name.
    pub(crate) async fn left_warm(&self) -> Result<Vec<(String, String)>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let filters = [("label".to_owned(), vec![format!("{ROLE}={WARM}")])].into();
        let query = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let listed =
            self.engine.ask("list containers", docker.list_containers(Some(query))).await.map_err(fault::of)?;
        let left = listed.into_iter().filter_map(|summary| {
            let backend = summary.labels?.remove(BACKEND)?;
            let name = summary.names?.into_iter().next()?.trim_start_matches('/').to_owned();
            (name.starts_with(PREFIX) && !self.holders.lives(&backend)).then_some((summary.id?, name))
        });
        Ok(left.collect())
    }

    /// The names of records whose containers are gone.
    pub(crate) async fn left_records(&self) -> Result<Vec<String>, ProviderError> {
        let docker = self.engine.docker().await.map_err(fault::of)?;
        let filters = [("label".to_owned(), vec![format!("{ROLE}={}", CLAIM_ROLE)])].into();
        let query = bollard::query_parameters::ListVolumesOptionsBuilder::default().filters(&filters).build();
        let volumes = self.engine.ask("list volumes", docker.list_volumes(Some(query))).await.map_err(fault::of)?;
        let mut left = Vec::new();
        for volume in volumes.volumes.unwrap_or_default() {
            let Some(container) = volume.name.strip_prefix(RECORD_PREFIX) else { continue };
            let action = format!("look at the container `{container}`");
            let looked = timeout(WELL, self.engine.ask(&action, docker.inspect_container(container, None))).await;
            if let Ok(Err(error)) = looked
                && error.is_not_found()
            {
                left.push(container.to_owned());
            }
        }
        Ok(left)
    }
}

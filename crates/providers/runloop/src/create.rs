//! Makes sandboxes: one for one wish, however often an answer is lost.

use std::{sync::Arc, time::Duration};

use gloveport_hosted::{
    making::{LOOKS, Maker, Origin, WISHES, exists},
    ports::Reserved,
    record::Record,
    server::LAST,
};
use gloveport_protocol::Secret;
use gloveport_provider::{Phase, Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, Teller};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    Tunnel, capabilities,
    control::Wished,
    inner::Inner,
    launch::{command, environment, script},
    names::{LABELS, NAME},
    options::Image,
    sizes::{self, Size},
    view::{begun, failure},
    wire::{AfterIdle, Create, Devbox, Launch, Lifecycle, Mount},
};

/// Time beyond its own that a sandbox has until the service ends it.
const GRACE: Duration = Duration::from_mins(1);
/// First of the ports that are taken by chance, and how many there are.
const BY_CHANCE: (u16, u16) = (20_000, 12_000);
/// Most lines of the service's own words about a failure.
const LINES: usize = 20;

/// What was found or made for a sandbox before it is wished for.
struct Parts {
    object: String,
    policy: Option<String>,
    /// The blueprint of an image of a registry.
    blueprint: Option<String>,
}

impl Inner {
    /// Makes a sandbox in a task of its own: what nobody waits for any more is ended.
    pub(crate) async fn create(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        origin: Origin,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        spec.check(NAME, &capabilities::of(&self.options))?;
        let (inner, spec) = (Arc::clone(self), spec.clone());
        let make = |tell, given_up| async move { inner.make(&spec, origin, &tell, &given_up).await };
        let inner = Arc::clone(self);
        let take_back = |id| async move { inner.take_back(&id).await };
        self.maker().in_a_task(progress, make, take_back).await
    }

    fn maker(&self) -> Maker<'_> {
        Maker {
            name: NAME,
            backend: &self.backend,
            service: &self.control.service,
            labels: &LABELS,
            directory: &self.options.directory,
            workspace: self.options.workspace.as_deref(),
            port: self.options.port,
            by_chance: BY_CHANCE,
            reserved: &Reserved::NONE,
            private: self.options.tunnel == Tunnel::Authenticated,
        }
    }

    async fn take_back(&self, id: &SandboxId) {
        if let Err(error) = self.delete(id).await {
            tracing::warn!(%id, %error, "a sandbox that nobody waits for is left; it ends with its time limit");
        }
    }

    async fn make(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        origin: Origin,
        progress: &Teller,
        given_up: &CancellationToken,
    ) -> Result<Sandbox, ProviderError> {
        // What is stored and built once may take long, and is of use to others.
        progress.enter(Phase::Creating, "");
        let parts = given_up.run_until_cancelled(self.parts(spec, &origin)).await;
        let parts = parts.unwrap_or_else(|| self.maker().unwanted())?;
        let (live, ended): (Vec<_>, Vec<_>) =
            self.of_session(&spec.session_id).await?.into_iter().partition(|found| found.state.is_live());
        if !live.is_empty()
            && let Some(first) = self.first(spec).await?
        {
            return Err(exists(spec, first));
        }
        for found in ended {
            self.delete(&found.id).await?;
        }
        if given_up.is_cancelled() {
            return self.maker().unwanted();
        }
        let key = self.maker().key(spec)?;
        let wish = self.maker().random()?;
        let record = self.maker().record(spec, &key, &wish, &origin)?;
        let id = self.wish(spec, &record, &key, &wish, &parts, &origin).await?;
        let begun = async {
            self.is_first(spec, &id).await?;
            progress.enter(Phase::Started, "");
            given_up.run_until_cancelled(self.started(&id)).await.unwrap_or_else(|| self.maker().unwanted())?;
            // Another one that was wished for at the same time may have become visible only now.
            self.is_first(spec, &id).await?;
            self.maker().outcome(self.find(&id).await?, self.last_lines(&id, &record)).await
        };
        match begun.await {
            Ok(sandbox) => {
                if !spec.keep_alive {
                    self.backend.own().insert(id);
                }
                self.keep_going();
                Ok(sandbox)
            }
            Err(error) => {
                self.take_back(&id).await;
                Err(error)
            }
        }
    }

    async fn parts(&self, spec: &SandboxSpec, origin: &Origin) -> Result<Parts, ProviderError> {
        let image = origin.snapshot.is_none().then(|| self.options.image(spec.image.as_deref()));
        let blueprint = match image {
            Some(Image::Registry(image)) => Some(self.blueprint_of(image).await?),
            _ => None,
        };
        Ok(Parts { object: self.program_object().await?, policy: self.policy_of(&spec.network).await?, blueprint })
    }

    fn launch(
        &self,
        spec: &SandboxSpec,
        record: &Record,
        mounted: &str,
        parts: &Parts,
    ) -> Result<Launch, ProviderError> {
        let own = spec.time_to_live.map_or(Duration::MAX, |time| time.saturating_add(GRACE));
        let limit = self.options.time_limit.min(own);
        // At the end of its own time it is to end, and where nobody holds it to rest.
        let rests = spec.keep_alive && limit == self.options.time_limit;
        let after_idle = AfterIdle {
            idle_time_seconds: limit.as_secs().max(1),
            on_idle: if rests { "suspend" } else { "shutdown" },
        };
        let mut launch = Launch {
            commands: vec![command(record, spec, mounted)],
            lifecycle: Lifecycle { after_idle },
            network_policy_id: parts.policy.clone(),
            ..Launch::default()
        };
        match sizes::of(&self.options.size, spec.limits.factor.unwrap_or(1))? {
            Size::Named(name) => launch.resource_size_request = name,
            Size::Custom(cpus, memory) => {
                launch.resource_size_request = "CUSTOM_SIZE";
                (launch.custom_cpu_cores, launch.custom_gb_memory) = (Some(cpus), Some(memory));
            }
        }
        Ok(launch)
    }

    /// Wishes for a sandbox until there is one, and never for two: the service knows a wish by its name, and one whose answer was
    /// lost is looked for.
    async fn wish(
        &self,
        spec: &SandboxSpec,
        record: &Record,
        key: &Secret,
        wish: &str,
        parts: &Parts,
        origin: &Origin,
    ) -> Result<SandboxId, ProviderError> {
        let metadata = LABELS.write(record, spec, wish)?;
        let mounted = format!("{}/bin/{}", self.options.directory, self.program.name().await?);
        let mut body = Create {
            name: spec.session_id.as_str(),
            environment_variables: environment(record, spec, key)?,
            metadata,
            launch_parameters: self.launch(spec, record, &mounted, parts)?,
            mounts: vec![Mount {
                r#type: "object_mount",
                object_id: parts.object.clone(),
                object_path: mounted.clone(),
            }],
            tunnel: crate::wire::Wished {
                auth_mode: if record.private { "authenticated" } else { "open" },
                ..crate::wire::Wished::default()
            },
            blueprint_id: parts.blueprint.clone(),
            ..Create::default()
        };
        match (&origin.snapshot, self.options.image(spec.image.as_deref())) {
            (Some(snapshot), _) => body.snapshot_id = Some(snapshot),
            (None, Image::Snapshot(id)) => body.snapshot_id = Some(id),
            (None, Image::Blueprint(name)) => body.blueprint_name = Some(name),
            (None, Image::Default | Image::Registry(_)) => {}
        }
        let mut unsure = None;
        for _ in 0..WISHES {
            match self.control.create(&body, wish).await? {
                Wished::Made(made) => return Ok(made.id),
                Wished::Unsure(error) => {
                    tracing::debug!(%error, wish, "the answer to a wish for a sandbox was lost");
                    if let Some(found) = self.granted(wish).await? {
                        return Ok(found);
                    }
                    unsure = Some(error);
                }
            }
        }
        Err(unsure.unwrap_or_else(|| self.control.service.failed("make a sandbox", "it does not say why")))
    }

    /// The sandbox that was made for a wish, if there is one.
    async fn granted(&self, wish: &str) -> Result<Option<SandboxId>, ProviderError> {
        for pause in LOOKS {
            sleep(pause).await;
            let is_its = |devbox: &Devbox| {
                let labels = devbox.metadata.as_ref();
                labels.and_then(|labels| labels.get(LABELS.wish)).is_some_and(|other| other == wish)
            };
            if let Some(devbox) = self.control.list().await?.into_iter().find(is_its) {
                return Ok(Some(devbox.id));
            }
        }
        Ok(None)
    }

    /// Waits until a sandbox runs: its launch command is over then.
    async fn started(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let (action, limit) = ("start a sandbox", self.options.start_within);
        let reached = self.control.wait(action, id, &["running", "failure", "shutdown"], limit).await?;
        let Some(devbox) = reached else {
            return Err(self.control.service.failed("make a sandbox", "it was deleted meanwhile"));
        };
        match devbox.status.as_str() {
            "running" => Ok(()),
            "failure" => Err(ProviderError::Start { reason: failure(&devbox), log: self.words(id).await }),
            _ => Err(self.control.service.failed("make a sandbox", "it was deleted meanwhile")),
        }
    }

    /// What the service has to say about a sandbox; empty where nobody can tell any more.
    async fn words(&self, id: &SandboxId) -> String {
        let said = self.control.words(id).await.unwrap_or_default();
        said[said.len().saturating_sub(LINES)..].join("\n")
    }

    /// The last that a server has written; empty where nobody can tell any more.
    async fn last_lines(&self, id: &SandboxId, record: &Record) -> String {
        let log = format!("{}/log", record.directory);
        let said = self.control.run("read the log of a sandbox", id, &script(LAST, &[&log])).await;
        said.ok().flatten().map(|(_, said)| said).unwrap_or_default()
    }

    /// Whether a sandbox is the first of its session.
    async fn is_first(&self, spec: &SandboxSpec, id: &SandboxId) -> Result<(), ProviderError> {
        match self.first(spec).await? {
            Some(first) if first != *id => Err(exists(spec, first)),
            _ => Ok(()),
        }
    }

    /// The first sandbox of a session: of several that are made at once, the one that began first by the service's clock stays.
    async fn first(&self, spec: &SandboxSpec) -> Result<Option<SandboxId>, ProviderError> {
        let mut all = self.control.list().await?;
        all.retain(|devbox| devbox.status != "failure");
        all.retain(|devbox| {
            LABELS.read(devbox.metadata.as_ref()).is_some_and(|labelled| labelled.session == spec.session_id)
        });
        Ok(all.into_iter().min_by_key(begun).map(|first| first.id))
    }
}

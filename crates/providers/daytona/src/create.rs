//! Makes sandboxes: one for one wish, however often an answer is lost. The name of a sandbox is its session, and the service has
//! each name once.

use std::{sync::Arc, time::Duration};

use gloveport_hosted::{
    fault::wrong,
    making::{LOOKS, Maker, Origin, WISHES},
    record::Record,
};
use gloveport_provider::{Phase as Step, Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, Teller};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    capabilities,
    control::Wished,
    inner::Inner,
    launch::Launch,
    names::{self, LABELS, NAME, RESERVED},
    source::confine,
    wire::{Create, Phase, Told},
};

/// Time beyond its own that a sandbox has until the service ends it.
const GRACE: Duration = Duration::from_mins(1);
/// First of the ports that are taken by chance, and how many there are: systems take those above for connections.
const BY_CHANCE: (u16, u16) = (23_000, 9_000);
/// How often a sandbox is looked at that is to change: first, and after a few seconds.
const POLLS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// When the second of these begins.
const PATIENCE: Duration = Duration::from_secs(5);

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
            reserved: &RESERVED,
            private: self.is_private(),
        }
    }

    async fn take_back(&self, id: &SandboxId) {
        if let Err(error) = self.delete(id).await {
            tracing::warn!(%id, %error, "a sandbox that nobody waits for is left; it is stopped when nobody uses it");
        }
    }

    async fn make(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        origin: Origin,
        progress: &Teller,
        given_up: &CancellationToken,
    ) -> Result<Sandbox, ProviderError> {
        progress.enter(Step::Creating, "");
        let key = self.maker().key(spec)?;
        let wish = self.maker().random()?;
        let record = self.maker().record(spec, &key, &wish, &origin)?;
        let told = self.wish(spec, &record, &wish, &origin).await?;
        let id = told.id.clone();
        let unwanted = || self.maker().unwanted();
        let begun = async {
            let told = self.until(&id, "make a sandbox", |phase| phase == Phase::Running).await?;
            progress.enter(Step::Started, "");
            self.launch(&Launch { told: &told, record: &record, spec, key: &key }).await?;
            self.maker().outcome(self.find(&id).await?, self.last_lines(&told, &record)).await
        };
        // An upload may take long, and is of no use where nobody waits.
        match given_up.run_until_cancelled(begun).await.unwrap_or_else(unwanted) {
            Ok(sandbox) => {
                self.made().insert(id.clone());
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

    /// Wishes for a sandbox until there is one, and never for two: a wish whose answer was lost is looked for by its name.
    async fn wish(
        &self,
        spec: &SandboxSpec,
        record: &Record,
        wish: &str,
        origin: &Origin,
    ) -> Result<Told, ProviderError> {
        let mut labels = LABELS.write(record, spec, wish)?;
        labels.extend(names::all());
        let minutes = self.options.time_limit.as_secs() / 60;
        let limit = spec.time_to_live.map(|time| time.saturating_add(GRACE));
        let mut body = Create {
            name: spec.session_id.as_str(),
            labels,
            public: !record.private,
            user: self.options.user.as_deref(),
            target: self.options.target.as_deref(),
            // One that ends with its backend is stopped when the backend has died, and is deleted then.
            auto_stop_interval: if spec.keep_alive && !self.options.auto_stop { 0 } else { minutes },
            auto_delete_interval: if spec.keep_alive { -1 } else { 0 },
            ttl_minutes: limit.map(|limit| limit.as_secs().div_ceil(60)),
            ..Create::default()
        };
        confine(&mut body, &spec.network)?;
        self.choose(&mut body, spec, origin.snapshot.as_deref()).await?;
        let mut unsure = None;
        for _ in 0..WISHES {
            match self.control.create(&body).await? {
                Wished::Made(told) => return Ok(told),
                Wished::Taken => {
                    if let Some(told) = self.taken(spec, wish).await? {
                        return Ok(told);
                    }
                }
                Wished::Unsure(error) => {
                    tracing::debug!(%error, wish, "the answer to a wish for a sandbox was lost");
                    if let Some(told) = self.granted(spec, wish).await? {
                        return Ok(told);
                    }
                    unsure = Some(error);
                }
            }
        }
        let taken = || self.control.service.failed("make a sandbox", "its name is in use, by one that does not go");
        Err(unsure.unwrap_or_else(taken))
    }

    /// The sandbox that was made for a wish, if there is one.
    async fn granted(&self, spec: &SandboxSpec, wish: &str) -> Result<Option<Told>, ProviderError> {
        for pause in LOOKS {
            sleep(pause).await;
            if let Some(told) = self.control.get(spec.session_id.as_str()).await?.filter(|told| is_of(told, wish)) {
                return Ok(Some(told));
            }
        }
        Ok(None)
    }

    /// Who has the name of a session. The sandbox, if it is this wish's own; none if the name is free now.
    async fn taken(&self, spec: &SandboxSpec, wish: &str) -> Result<Option<Told>, ProviderError> {
        let session = &spec.session_id;
        let Some(told) = self.control.get(session.as_str()).await? else { return Ok(None) };
        if is_of(&told, wish) {
            return Ok(Some(told));
        }
        if told.phase() == Phase::Gone {
            self.gone(&told.id).await?;
            return Ok(None);
        }
        if names::labelled(&told).is_none_or(|labelled| labelled.session != *session) {
            let reason = format!("Daytona has a sandbox `{session}` that is not of gloveport; take another name");
            return Err(wrong("session", reason));
        }
        match self.find(&told.id).await? {
            Some(found) if found.state.is_live() => {
                Err(ProviderError::SessionExists { session: session.clone(), sandbox: found.id })
            }
            _ => {
                self.delete(&told.id).await?;
                Ok(None)
            }
        }
    }

    /// Waits until a sandbox does what it is to do.
    pub(crate) async fn until(
        &self,
        id: &SandboxId,
        action: &str,
        is_so: impl Fn(Phase) -> bool,
    ) -> Result<Told, ProviderError> {
        let began = Instant::now();
        loop {
            let told = self.control.get(id.as_str()).await?.filter(|told| told.phase() != Phase::Gone);
            let Some(told) = told else {
                return Err(self.control.service.failed(action, "somebody deleted it meanwhile, or its time was over"));
            };
            if is_so(told.phase()) {
                return Ok(told);
            }
            if told.phase() == Phase::Failed {
                return Err(ProviderError::Start { reason: told.reason(), log: String::new() });
            }
            let waited = began.elapsed();
            if waited >= self.options.start_within {
                let action = format!("waiting for Daytona to {action}");
                return Err(ProviderError::Timeout { action, limit: self.options.start_within });
            }
            sleep(if waited < PATIENCE { POLLS.0 } else { POLLS.1 }).await;
        }
    }

    /// Waits until the service has no such sandbox any more, nor its name.
    pub(crate) async fn gone(&self, id: &SandboxId) -> Result<(), ProviderError> {
        let began = Instant::now();
        while let Some(told) = self.control.get(id.as_str()).await? {
            if told.id != *id || told.state.as_deref() == Some("destroyed") {
                return Ok(());
            }
            let waited = began.elapsed();
            if waited >= self.options.start_within {
                let action = "waiting for Daytona to delete a sandbox".to_owned();
                return Err(ProviderError::Timeout { action, limit: self.options.start_within });
            }
            sleep(if waited < PATIENCE { POLLS.0 } else { POLLS.1 }).await;
        }
        Ok(())
    }
}

/// Whether a sandbox was made for this wish.
fn is_of(told: &Told, wish: &str) -> bool {
    names::labelled(told).is_some_and(|labelled| labelled.wish.as_deref() == Some(wish))
}

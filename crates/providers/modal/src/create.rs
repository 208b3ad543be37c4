//! Makes sandboxes: one for one wish, however often an answer is lost. The name of a sandbox is its session, and the service has
//! each name once.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use gloveport_hosted::{
    making::{LOOKS, Maker, Origin, WISHES, exists},
    ports::Reserved,
    record::{self, Record},
};
use gloveport_provider::{Phase, Progress, ProviderError, Sandbox, SandboxId, SandboxSpec, Teller};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    capabilities::CAPABILITIES,
    control::Refused,
    definition::{definition, lifetime},
    grpc::Code,
    inner::Inner,
    launch::{arguments, variables},
    names::{self, LABELS, NAME},
    router::Router,
    view::ended,
    wire::{Create, Created, SecretSource, Variables},
};

/// First of the ports that are taken by chance, and how many there are.
const BY_CHANCE: (u16, u16) = (14_000, 6_000);
/// How long the service may wait before it says how far a sandbox is.
const STEP: Duration = Duration::from_secs(10);
/// Pause before a router is asked again that did not answer.
const AGAIN: Duration = Duration::from_millis(250);

impl Inner {
    /// Makes a sandbox in a task of its own: what nobody waits for any more is ended.
    pub(crate) async fn create(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        workspace: Option<String>,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        spec.check(NAME, &CAPABILITIES)?;
        let (inner, spec) = (Arc::clone(self), spec.clone());
        let make = |tell, given_up| async move { inner.make(&spec, workspace, &tell, &given_up).await };
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
            private: false,
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
        workspace: Option<String>,
        progress: &Teller,
        given_up: &CancellationToken,
    ) -> Result<Sandbox, ProviderError> {
        // What cannot be made is refused before anything is stored or built.
        self.control.secret()?;
        lifetime(&self.options, spec)?;
        progress.enter(Phase::PreparingImage, "");
        let path = format!("{}/bin/{}", self.options.directory, self.program.name().await?);
        let parts = async {
            tokio::try_join!(self.image(self.options.image(spec.image.as_deref()), progress), self.mount(&path))
        };
        let parts = given_up.run_until_cancelled(parts).await;
        let (image, mount) = parts.unwrap_or_else(|| self.maker().unwanted())?;
        progress.enter(Phase::Creating, "");
        if let Some(found) = self.of_session(&spec.session_id).await? {
            if found.state.is_live() {
                return Err(exists(spec, found.id));
            }
            self.delete(&found.id).await?;
        }
        if given_up.is_cancelled() {
            return self.maker().unwanted();
        }
        let key = self.maker().key(spec)?;
        let wish = self.maker().random()?;
        let origin = Origin { workspace, snapshot: None };
        let record = self.maker().record(spec, &key, &wish, &origin)?;
        // Every sandbox has a time limit.
        let lives = spec.time_to_live.map_or_else(|| lifetime(&self.options, spec), Ok)?;
        let expires = SystemTime::now().checked_add(lives).map(record::seconds);
        let record = Record { expires, ..record };
        let env = Some(Variables { contents: variables(&record, spec, &key)? });
        let arguments = arguments(&record, spec, path);
        let wanted = Create {
            app_id: self.app().await?.to_owned(),
            definition: Some(definition(&self.options, spec, &record, image, mount, arguments)?),
            tags: names::tags(&LABELS.write(&record, spec, &wish)?),
            secret_sources: vec![SecretSource { env }],
        };
        let (id, created) = self.wish(spec, &wanted, &wish).await?;
        let begun = async {
            progress.enter(Phase::Started, "");
            let started = self.started(&id, created);
            given_up.run_until_cancelled(started).await.unwrap_or_else(|| self.maker().unwanted())?;
            self.maker().outcome(self.find(&id).await?, self.last_lines(&id, &record)).await
        };
        match begun.await {
            Ok(sandbox) => {
                if !spec.keep_alive {
                    self.backend.own().insert(id);
                }
                Ok(sandbox)
            }
            Err(error) => {
                self.take_back(&id).await;
                Err(error)
            }
        }
    }

    /// Wishes for a sandbox until there is one, and never for two: the service knows a wish by its key and a sandbox by its name,
    /// and one whose answer was lost is looked for.
    async fn wish(
        &self,
        spec: &SandboxSpec,
        wanted: &Create,
        wish: &str,
    ) -> Result<(SandboxId, Option<Created>), ProviderError> {
        let (action, mut unsure) = ("make a sandbox", None);
        let key = self.control.key(action)?;
        // A sandbox takes longer than other answers.
        let limit = self.control.limit.saturating_mul(2);
        for _ in 0..WISHES {
            match self.control.ask_as::<_, Created>(action, "SandboxCreateV2", wanted, &key, limit).await {
                Ok(made) => return Ok((SandboxId::new(made.sandbox_id.clone())?, Some(made))),
                Err(Refused { code: Some(Code::AlreadyExists), .. }) => match self.granted(spec, wish, false).await? {
                    Some(id) => return Ok((id, None)),
                    // It has ended since then.
                    None => {
                        unsure = Some(self.control.service.failed(action, "its name was taken and is not any more"));
                    }
                },
                Err(Refused { code, error }) if is_unsure(code, &error) => {
                    tracing::debug!(%error, wish, "the answer to a wish for a sandbox was lost");
                    if let Some(id) = self.granted(spec, wish, true).await? {
                        return Ok((id, None));
                    }
                    unsure = Some(error);
                }
                Err(refused) => return Err(self.not_made(spec, refused)),
            }
        }
        Err(unsure.unwrap_or_else(|| self.control.service.failed(action, "it does not say why")))
    }

    /// The sandbox that was made for a wish, if there is one. Whoever else has its name is told of.
    async fn granted(
        &self,
        spec: &SandboxSpec,
        wish: &str,
        may_come: bool,
    ) -> Result<Option<SandboxId>, ProviderError> {
        for pause in LOOKS {
            sleep(pause).await;
            if let Some(id) = self.by_name(&spec.session_id, false).await? {
                return match self.labelled(&id).await? {
                    Some(labelled) if labelled.wish.as_deref() == Some(wish) => Ok(Some(id)),
                    Some(labelled) if labelled.session == spec.session_id => Err(exists(spec, id)),
                    _ => {
                        let reason = format!("the sandbox {id} has this name, and is not one of gloveport");
                        Err(self.control.service.failed("make a sandbox", reason))
                    }
                };
            }
            if !may_come {
                break;
            }
        }
        Ok(None)
    }

    /// Why a sandbox was not made, and what to do.
    fn not_made(&self, spec: &SandboxSpec, refused: Refused) -> ProviderError {
        if refused.code != Some(Code::NotFound) {
            return refused.error;
        }
        let image = spec.image.as_deref().unwrap_or(&self.options.image);
        let reason = format!("{}; does the image `{image}` still exist? Name another one", refused.error);
        gloveport_hosted::fault::wrong("image", reason)
    }

    /// Waits until our server listens, or has ended.
    async fn started(&self, id: &SandboxId, created: Option<Created>) -> Result<(), ProviderError> {
        let (began, limit) = (Instant::now(), self.options.start_within);
        let given = created.and_then(|created| Some((created.task_id, created.access?)));
        let mut router = match given {
            Some((task, access)) if !task.is_empty() => Some(self.router_of(id, task, access)?),
            _ => None,
        };
        let late = sleep(limit);
        tokio::pin!(late);
        while began.elapsed() < limit {
            tokio::select! {
                () = &mut late => break,
                is_ready = self.is_ready(id, &mut router) => match is_ready {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(error) => {
                        tracing::debug!(%id, %error, "whether a sandbox is ready is not known; it is asked again");
                        router = None;
                        sleep(AGAIN).await;
                    }
                },
                outcome = self.outcome(id, STEP) => match outcome? {
                    Some(None) => {}
                    // Why is told from what it says then.
                    Some(Some(outcome)) => {
                        tracing::debug!(%id, state = %ended(&outcome), "a sandbox has ended before it was ready");
                        return Ok(());
                    }
                    None => return Err(self.control.service.failed("make a sandbox", "it was deleted meanwhile")),
                },
            }
        }
        Err(ProviderError::Timeout { action: format!("waiting for the server of sandbox `{id}`"), limit })
    }

    async fn is_ready<'a>(&'a self, id: &SandboxId, router: &mut Option<Router<'a>>) -> Result<bool, ProviderError> {
        if router.is_none() {
            *router = self.router(id).await?;
        }
        let Some(router) = router else {
            sleep(AGAIN).await;
            return Ok(false);
        };
        Ok(router.is_ready(STEP).await?)
    }

    /// The last that a server has written; empty where nobody can tell any more.
    async fn last_lines(&self, id: &SandboxId, record: &Record) -> String {
        let said = self.past(id, record.created).await.unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim_end().to_owned();
        let lines: Vec<&str> = said.lines().collect();
        lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
    }
}

/// Whether a sandbox may have been made although its wish has failed.
fn is_unsure(code: Option<Code>, error: &ProviderError) -> bool {
    let may_have_begun = [Code::Internal, Code::Unknown, Code::Aborted, Code::Cancelled, Code::DeadlineExceeded];
    match code {
        Some(code) => code == Code::Unavailable || may_have_begun.contains(&code),
        None => error.is_temporary(),
    }
}

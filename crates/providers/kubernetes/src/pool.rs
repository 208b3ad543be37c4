//! Pods that wait for a session. Those of a backend belong to one object of the cluster, their pool, and end with it; any
//! backend that would make the same pod may claim one.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::join_all, stream};
use gloveport_protocol::Secret as Hidden;
use gloveport_provider::{Phase, Progress, ProviderError, Removed, SandboxSpec, SessionId, Teller, WarmKind, apart};
use k8s_openapi::{
    api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::api::{DeleteParams, Preconditions};
use tokio_util::sync::CancellationToken;

use crate::{
    SandboxApi,
    body::{Plan, Waits, once_more},
    create::random,
    fault::{NAME, failed, given_up, wrong},
    inner::Inner,
    names::{self, APP, POOL_ROLE, ROLE},
    pool_owner::Owner,
    record::owner,
    start::{NotStarted, Starting},
    view::{self, Stage},
};

/// Pods that are started at the same time.
const AT_ONCE: usize = 8;
/// Pods that may wait.
const MOST: usize = 256;
/// How long the end of a pool may take.
const REMOVAL: Duration = Duration::from_secs(30);

/// What tells a program from one of another build.
fn program_mark(program: &std::path::Path) -> String {
    let changed = std::fs::metadata(program).and_then(|meta| meta.modified());
    format!("{changed:?}")
}

/// The name of a session that there is not: what waits is made for it.
pub(crate) fn nobody() -> Result<SessionId, ProviderError> {
    Ok(SessionId::new("nobody")?)
}

impl Inner {
    /// Starts pods until as many of this backend wait as these kinds say, and ends those beyond.
    pub(crate) async fn keep_warm(self: &Arc<Self>, kinds: &[WarmKind]) -> Result<Vec<usize>, ProviderError> {
        let image = self.options.image.as_deref();
        let is_usual = |kind: &WarmKind| {
            let has_image = kind.image.is_none() || kind.image.as_deref() == image;
            has_image && kind.factor.unwrap_or(1) == 1 && !kind.has_editor()
        };
        if !kinds.iter().all(is_usual) {
            let what = "warm sandboxes of another image or size than the configured ones, or with an editor".to_owned();
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what });
        }
        let sum = |number: fn(&WarmKind) -> usize| kinds.iter().map(number).fold(0, usize::saturating_add);
        self.fill_up(sum(|kind| kind.least), sum(|kind| kind.most)).await?;
        Ok(kinds.iter().map(|kind| kind.least).collect())
    }

    async fn fill_up(self: &Arc<Self>, count: usize, most: usize) -> Result<(), ProviderError> {
        self.check_open()?;
        if count > MOST {
            return Err(wrong("warm", format!("{count} are too many; {MOST} may wait")));
        }
        if !self.capabilities().warm {
            let what =
                "starting sandboxes ahead whose workspaces are on volumes, with `api = \"sandboxes\"`".to_owned();
            return Err(ProviderError::Unsupported { provider: NAME.to_owned(), what });
        }
        if self.options.image.is_none() {
            let key = "sandbox.runtime_container_image";
            return Err(wrong("image", format!("none is configured to start sandboxes from ahead; set `{key}`")));
        }
        let inner = Arc::clone(self);
        let filling = move |_, given_up| async move { inner.fill((count, most), &given_up).await };
        apart(&Progress::silent(), filling).await.map_err(|error| failed("start sandboxes ahead", error))?
    }

    async fn fill(
        self: &Arc<Self>,
        (count, most): (usize, usize),
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        let mut object = self.pool.lock().await;
        if self.options.api == SandboxApi::Sandboxes {
            self.check_pools().await?;
            let owner = self.owner(&mut object).await?;
            return self.fill_claims(&owner, count, given_up).await;
        }
        let owner = self.owner(&mut object).await?;
        let mut waiting = 0;
        for pod in self.waiting(&owner.own).await? {
            match view::stage(&pod) {
                Stage::Runs if waiting < most => waiting += 1,
                // One too many, one that was left while it was started, or that has ended.
                _ => self.end_waiting(&pod).await?,
            }
        }
        let missing = count.saturating_sub(waiting);
        let made = (0..missing).map(|_| self.start_one(&owner, given_up));
        let made: Vec<Result<(), ProviderError>> = stream::iter(made).buffer_unordered(AT_ONCE).collect().await;
        made.into_iter().collect()
    }

    /// The object that owns the pods of this backend, made if it is missing.
    async fn owner(&self, object: &mut Option<String>) -> Result<Owner, ProviderError> {
        let label = self.backends.label(&self.cluster).await?;
        let own = self.backends.own()?;
        let alike = self.alike(&SandboxSpec::new(nobody()?), self.options.image.as_deref().unwrap_or_default()).await?;
        if let Some(uid) = object {
            return Ok(Owner { reference: owner("ConfigMap", &names::pool(&own), uid), own, alike });
        }
        let labels = [(APP.0, APP.1), (ROLE, POOL_ROLE)].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let wanted = ConfigMap {
            metadata: ObjectMeta {
                name: Some(names::pool(&own)),
                labels: Some(labels.into()),
                annotations: Some([(names::BACKEND.to_owned(), label)].into()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        let uid = self.cluster.apply(&wanted).await?.metadata.uid.unwrap_or_default();
        let reference = owner("ConfigMap", &names::pool(&own), object.insert(uid));
        Ok(Owner { own, reference, alike })
    }

    /// The pods of a backend's pool.
    async fn waiting(&self, own: &str) -> Result<Vec<Pod>, ProviderError> {
        self.cluster.list::<Pod>(&format!("{ROLE}={},{}={own}", names::WARM, names::POOL)).await
    }

    /// Starts one pod and waits until its server runs. One that does not is taken back.
    async fn start_one(self: &Arc<Self>, owner: &Owner, given_up: &CancellationToken) -> Result<(), ProviderError> {
        let image = self.options.image.clone().unwrap_or_default();
        let (key, token) = (Hidden::new(random("make a key")?), random("make a name")?);
        let (id, spec) = (names::warm_id(&token)?, SandboxSpec::new(nobody()?));
        let plan = Plan {
            options: &self.options,
            spec: &spec,
            id: &id,
            image: &image,
            backend: "",
            token: &token,
            key: &key,
            program_size: self.program_size(true).await?,
            source: None,
            waits: Some(Waits { pool: &owner.own, alike: &owner.alike }),
        };
        let started = self.start_plan(&plan, &owner.reference, given_up).await;
        if started.is_err()
            && let Ok(Some(pod)) = self.cluster.get::<Pod>(id.as_str()).await
            && let Err(error) = self.end_waiting(&pod).await
        {
            tracing::warn!(%error, "a pod that was started ahead in vain ends with its pool");
        }
        started
    }

    async fn start_plan(
        self: &Arc<Self>,
        plan: &Plan<'_>,
        pool: &OwnerReference,
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        let (secret, claim) = (plan.secret(pool)?, plan.claim(pool));
        let waiter = self.watch.pod(&self.cluster, plan.id.as_str()).await?;
        tokio::try_join!(self.cluster.apply(&secret), async {
            if let Some(claim) = &claim { self.cluster.apply(claim).await.map(drop) } else { Ok(()) }
        })?;
        if given_up.is_cancelled() || self.closing.is_cancelled() {
            return Err(self::given_up());
        }
        let mut pod = plan.pod()?;
        let brings = once_more(&mut pod, pool, plan.token, plan.program_size);
        let made = self.make_pod(&pod, pool, plan.token).await?;
        let uid = made.metadata.uid.unwrap_or_default();
        // What it was made with ends with it.
        let of_pod = OwnerReference { block_owner_deletion: None, ..owner("Pod", plan.id.as_str(), &uid) };
        self.give(plan.id.as_str(), claim.is_some(), &of_pod).await?;
        let starting = Starting {
            inner: self,
            pod: plan.id.as_str(),
            uid: &uid,
            tell: &Teller::silent(),
            phase: Phase::Creating,
            given_up,
            brings,
        };
        let started = tokio::select! {
            started = starting.wait(waiter) => started,
            () = self.closing.cancelled() => return Err(self::given_up()),
        };
        started.map_err(|error| match error {
            NotStarted::Failed(error) => error,
            NotStarted::Taken(reason) => failed("start a sandbox ahead", reason),
        })
    }

    /// Ends a pod that waits, unless a session has claimed it since it was read.
    async fn end_waiting(&self, pod: &Pod) -> Result<(), ProviderError> {
        let meta = &pod.metadata;
        let preconditions = Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default().grace_period(1) };
        let name = meta.name.as_deref().unwrap_or_default();
        self.cluster.delete::<Pod>(name, &parameters).await.map(drop)
    }

    /// What a pod that waited was made with belongs to this object from now on.
    pub(crate) async fn give(&self, pod: &str, has_claim: bool, owner: &OwnerReference) -> Result<(), ProviderError> {
        let (secret, claim) = (names::secret(pod), names::claim(pod));
        tokio::try_join!(self.cluster.own::<Secret>(&secret, owner), async {
            if has_claim { self.cluster.own::<PersistentVolumeClaim>(&claim, owner).await } else { Ok(()) }
        })?;
        Ok(())
    }

    /// What sandboxes have in common that are made alike, but for what a server can be told later.
    pub(crate) async fn alike(&self, spec: &SandboxSpec, image: &str) -> Result<String, ProviderError> {
        let of_anybody = SandboxSpec {
            image: None,
            command: spec.command.clone(),
            working_dir: spec.working_dir.clone(),
            workspace: spec.workspace.clone(),
            mounts: spec.mounts.clone(),
            limits: spec.limits.clone(),
            user: spec.user,
            runtime_class: spec.runtime_class.clone(),
            ..SandboxSpec::new(nobody()?)
        };
        let (id, key) = (names::warm_id("alike")?, Hidden::new(String::new()));
        let plan = Plan {
            options: &self.options,
            spec: &of_anybody,
            id: &id,
            image,
            backend: "",
            token: "",
            key: &key,
            program_size: self.program_size(spec.command.is_none()).await?,
            source: None,
            waits: Some(Waits { pool: "", alike: "" }),
        };
        let text = |value: serde_json::Result<String>| value.map_err(|error| failed("be told a pod", error));
        let pod = text(serde_json::to_string(&plan.pod()?))?;
        let claim = text(serde_json::to_string(&plan.claim(&OwnerReference::default())))?;
        Ok(names::digest(&[&pod, &claim, &program_mark(&self.options.program)]))
    }

    /// Ends what this backend has started ahead and nobody has claimed.
    pub(crate) async fn close_pool(&self) {
        let mut object = self.pool.lock().await;
        let Some(uid) = object.take() else { return };
        let ended = async {
            let own = self.backends.own()?;
            // The controller of agent-sandbox ends what it has made.
            let pods = if self.options.api == SandboxApi::Pods { self.waiting(&own).await? } else { Vec::new() };
            join_all(pods.iter().map(|pod| self.end_waiting(pod))).await.into_iter().collect::<Result<(), _>>()?;
            self.remove_pool(&names::pool(&own), &uid).await
        };
        if let Err(error) = ended.await {
            tracing::warn!(%error, "sandboxes that were started ahead are left; collect garbage");
        }
    }

    async fn remove_pool(&self, name: &str, uid: &str) -> Result<(), ProviderError> {
        let mut parameters = DeleteParams::foreground();
        parameters.preconditions = Some(Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() });
        if self.cluster.delete::<ConfigMap>(name, &parameters).await? {
            self.cluster.gone::<ConfigMap>(name, uid, REMOVAL).await?;
        }
        Ok(())
    }

    /// Removes the pools of dead backends.
    pub(crate) async fn sweep_pools(&self, dry_run: bool) -> Result<Vec<Removed>, ProviderError> {
        let mut removed = Vec::new();
        for pool in self.cluster.list::<ConfigMap>(&format!("{}={},{ROLE}={POOL_ROLE}", APP.0, APP.1)).await? {
            let (Some(name), Some(uid)) = (pool.metadata.name, pool.metadata.uid) else { continue };
            let backend = pool.metadata.annotations.as_ref().and_then(|all| all.get(names::BACKEND));
            let backend = backend.map(String::as_str).unwrap_or_default();
            if pool.metadata.deletion_timestamp.is_some() || self.backends.lives(&self.cluster, backend).await? {
                continue;
            }
            if !dry_run {
                self.remove_pool(&name, &uid).await?;
            }
            let reason = "its backend has died".to_owned();
            removed.push(Removed { id: None, session_id: None, path: Some(format!("{NAME}:{name}").into()), reason });
        }
        Ok(removed)
    }
}

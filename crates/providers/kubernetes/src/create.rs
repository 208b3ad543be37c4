//! Makes a sandbox: the record, which decides who makes the session's, then what the pod needs, then the pod. What is given
//! up is taken back.

use std::sync::Arc;

use gloveport_protocol::Secret as Hidden;
use gloveport_provider::{
    Phase, Progress, ProviderError, STARTED_AHEAD, Sandbox, SandboxId, SandboxSpec, SandboxState, Teller, backend,
    handed_over,
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::api::PostParams;
use tokio_util::sync::CancellationToken;

use crate::{
    body::{Plan, lead_through, once_more},
    cluster::Refusal,
    fault::{NAME, failed, given_up, wrong},
    inner::Inner,
    names,
    record::{Maker, Record, belongs_to},
    start::{NotStarted, Starting},
    view,
    watch::Waiter,
};

/// How often a name is asked for again that was just given up.
const RACES: u32 = 10;
/// How often a pod is made that its node has ended before it started.
const TAKEN: u32 = 3;

impl Inner {
    /// Makes a sandbox in a task of its own, so that nothing is left behind when the caller gives up.
    pub(crate) async fn create(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        progress: &Progress,
    ) -> Result<Sandbox, ProviderError> {
        let (inner, spec) = (Arc::clone(self), spec.clone());
        let making = |tell, given_up| async move { inner.create_told(&spec, tell, given_up).await };
        let inner = Arc::clone(self);
        let undo = |made| async move { inner.undo(made).await };
        handed_over(progress, making, undo).await.map_err(|error| failed("make a sandbox", error))?
    }

    /// Takes back what was made and nobody waits for.
    pub(crate) async fn undo(&self, made: Result<Sandbox, ProviderError>) {
        if let Ok(sandbox) = made
            && let Err(error) = self.delete(&sandbox.id).await
        {
            tracing::warn!(%error, "a sandbox that nobody waits for stays until garbage is collected");
        }
    }

    /// The same, for a caller that has such a task already.
    pub(crate) async fn create_told(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        tell: Teller,
        given_up: CancellationToken,
    ) -> Result<Sandbox, ProviderError> {
        spec.check(NAME, &self.capabilities())?;
        self.check_open()?;
        self.check_kind().await?;
        let id = names::id_of(&spec.session_id)?;
        Making { inner: Arc::clone(self), id, spec: spec.clone(), tell, given_up }.make().await
    }
}

struct Making {
    inner: Arc<Inner>,
    id: SandboxId,
    spec: SandboxSpec,
    tell: Teller,
    given_up: CancellationToken,
}

impl Making {
    async fn make(self) -> Result<Sandbox, ProviderError> {
        let inner = &self.inner;
        let source = match &self.spec.image {
            Some(image) => inner.source(image, &self.spec.workspace).await?,
            None => None,
        };
        let named = match &source {
            Some(source) => source.image.clone(),
            None => self.spec.image.clone(),
        };
        let image = named.or_else(|| inner.options.image.clone());
        let image = image.ok_or_else(|| wrong("image", "none is named, and none is configured"))?;
        self.tell.enter(Phase::Creating, "");
        let key = match &self.spec.session_key {
            Some(key) => key.clone(),
            None => Hidden::new(random("make a key")?),
        };
        let token = random("make a name")?;
        let backend = inner.backends.label(&inner.cluster).await?;
        let plan = Plan {
            options: &inner.options,
            spec: &self.spec,
            id: &self.id,
            image: &image,
            backend: &backend,
            token: &token,
            key: &key,
            program_size: 0,
            source: source.as_ref(),
            waits: None,
        };
        // A gate runs our program whatever the sandbox runs.
        let is_needed = self.spec.command.is_none() || plan.has_gate()?;
        let plan = Plan { program_size: inner.program_size(is_needed).await?, ..plan };
        let record = self.record(&plan).await?;
        match Box::pin(self.made(&plan, &record)).await {
            Ok(sandbox) => Ok(sandbox),
            Err(error) => {
                // What it owns goes with it; the cluster sees to that also if we do not wait.
                if let Err(left) = inner.let_go(&record).await {
                    tracing::warn!(error = %left, "a sandbox that was not made stays until garbage is collected");
                }
                inner.forget(&self.id);
                Err(error)
            }
        }
    }

    fn check_wanted(&self) -> Result<(), ProviderError> {
        if self.given_up.is_cancelled() || self.inner.closing.is_cancelled() { Err(given_up()) } else { Ok(()) }
    }

    /// Makes the record. Its name decides who makes the session's.
    async fn record(&self, plan: &Plan<'_>) -> Result<Record, ProviderError> {
        let inner = &*self.inner;
        let (api, wanted) = (inner.cluster.api::<ConfigMap>().await?, plan.record()?);
        let action = format!("make the record `{}`", self.id);
        let parameters = PostParams::default();
        for _ in 0..RACES {
            self.check_wanted()?;
            let refusal = match inner.cluster.attempt(|| api.create(&parameters, &wanted)).await {
                Ok(made) => return Record::of(&made.metadata).ok_or_else(|| failed(&action, "it is another one")),
                Err(refusal) => refusal,
            };
            if refusal.status() != Some(409) {
                // It may be there all the same.
                if matches!(refusal, Refusal::Late) {
                    self.take_back(plan.token).await;
                }
                return Err(refusal.told(&action, inner.cluster.place()));
            }
            let Some(existing) = inner.record(&self.id).await? else { continue };
            if existing.token == plan.token {
                // The answer to an earlier try was lost.
                return Ok(existing);
            }
            if existing.session != self.spec.session_id {
                return Err(failed(&action, format!("the session `{}` has that name already", existing.session)));
            }
            if !existing.ends {
                let pod = inner.pod(&existing).await?;
                let state = view::state(&existing, pod.as_ref());
                // One that was never completed has no use without its backend.
                let left =
                    state == SandboxState::Pending && !inner.backends.lives(&inner.cluster, &existing.backend).await?;
                if state.is_live() && !left {
                    let (session, sandbox) = (self.spec.session_id.clone(), self.id.clone());
                    return Err(ProviderError::SessionExists { session, sandbox });
                }
            }
            self.tell.enter(Phase::Creating, "removing the one before");
            inner.remove(&existing).await?;
        }
        Err(failed(action, "its name is taken and given up all the time"))
    }

    /// Removes the record if it is ours.
    async fn take_back(&self, token: &str) {
        if let Ok(Some(record)) = self.inner.record(&self.id).await
            && record.token == token
        {
            let _left_as_garbage = self.inner.let_go(&record).await;
        }
    }

    /// The sandbox, from a pod that waits if there is one.
    async fn made(&self, plan: &Plan<'_>, record: &Record) -> Result<Sandbox, ProviderError> {
        if !self.spec.keep_alive {
            self.inner.own().insert(self.id.clone());
        }
        let can_claim = self.spec.warm && plan.source.is_none() && self.inner.capabilities().warm;
        let claimed = match record.maker {
            _ if !can_claim => None,
            Maker::Backend => Box::pin(self.inner.claim(plan, record)).await?,
            Maker::Controller(_) => Box::pin(self.inner.claim_sandbox(plan, record, &self.given_up)).await?,
        };
        if let Some(sandbox) = claimed {
            self.check_wanted()?;
            self.tell.enter(Phase::Creating, STARTED_AHEAD);
            self.tell.enter(Phase::Started, "");
            return Ok(sandbox);
        }
        Box::pin(self.objects(plan, record)).await
    }

    /// Makes what the record owns, and waits until the server has been started.
    async fn objects(&self, plan: &Plan<'_>, record: &Record) -> Result<Sandbox, ProviderError> {
        let inner = &self.inner;
        let cluster = &inner.cluster;
        let owner = record.owner();
        let (secret, claim, service) = (plan.secret(&owner)?, plan.claim(&owner), plan.service(&owner)?);
        let (policy, editor) = (plan.policy(&owner)?, plan.editor(&owner));
        let waiter = inner.watch.pod(cluster, self.id.as_str()).await?;
        self.check_wanted()?;
        // All that the pod needs, or that confines it, is there before the pod is.
        let (gate, _, (), service, (), ()) = tokio::try_join!(
            inner.gate_objects(plan, &owner),
            cluster.apply(&secret),
            async { if let Some(claim) = &claim { cluster.apply(claim).await.map(drop) } else { Ok(()) } },
            cluster.apply(&service),
            async { if let Some(policy) = &policy { cluster.apply(policy).await.map(drop) } else { Ok(()) } },
            async {
                let Some((service, ingress)) = &editor else { return Ok(()) };
                tokio::try_join!(cluster.apply(service), cluster.apply(ingress)).map(drop)
            },
        )?;
        let address = service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
        self.check_wanted()?;
        let opened = inner.open_gate(plan, &owner, &self.given_up);
        tokio::try_join!(opened, self.started(plan, record, waiter, &address, gate.as_deref()))?;
        self.check_wanted()?;
        self.tell.enter(Phase::Started, "");
        let made = inner.find(&self.id).await?;
        made.ok_or_else(|| failed("make the sandbox", "it was removed meanwhile"))
    }

    /// Makes the pod, and waits until its server has been started.
    async fn started(
        &self,
        plan: &Plan<'_>,
        record: &Record,
        waiter: Waiter,
        address: &str,
        gate: Option<&str>,
    ) -> Result<(), ProviderError> {
        let inner = &self.inner;
        let (cluster, owner) = (&inner.cluster, record.owner());
        let mut waiter = Some(waiter);
        for tries in 1.. {
            let mut pod = plan.pod()?;
            if let Some(gate) = gate {
                lead_through(&mut pod, gate);
            }
            let brings = once_more(&mut pod, &owner, plan.token, plan.program_size);
            let pod = inner.bring_up(&pod, record, plan.token, &self.given_up).await?;
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let seen = inner.sees(waiter.take(), name).await?;
            let starting = Starting {
                inner,
                pod: name,
                uid: pod.metadata.uid.as_deref().unwrap_or_default(),
                tell: &self.tell,
                phase: Phase::Creating,
                given_up: &self.given_up,
                brings,
            };
            let addresses = [(names::ADDRESS, Some(address)), (names::GATE_ADDRESS, gate)];
            let complete = cluster.annotate::<ConfigMap>(self.id.as_str(), &addresses);
            let (started, completed) = tokio::join!(starting.wait(seen), complete);
            if !completed? {
                return Err(failed("make the sandbox", "its record was removed meanwhile"));
            }
            match started {
                Ok(()) => break,
                Err(NotStarted::Failed(error)) => return Err(error),
                Err(NotStarted::Taken(reason)) if tries >= TAKEN => {
                    return Err(failed("start the pod", format!("{reason}; {TAKEN} were made")));
                }
                Err(NotStarted::Taken(reason)) => {
                    self.tell.enter(Phase::Creating, &format!("{reason}; another pod is made"));
                    inner.remove_pod(record).await?;
                }
            }
        }
        Ok(())
    }
}

/// A word that nobody else has.
pub(crate) fn random(action: &str) -> Result<String, ProviderError> {
    backend::random().map_err(|error| failed(action, error))
}

impl Inner {
    /// Makes a pod of this owner. One that somebody else has made is theirs to fill: it is an error, unless it has the word
    /// of this making, whose answer was lost.
    pub(crate) async fn make_pod(&self, pod: &Pod, owner: &OwnerReference, token: &str) -> Result<Pod, ProviderError> {
        let api = self.cluster.api::<Pod>().await?;
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let action = format!("make the pod `{name}`");
        let parameters = PostParams { field_manager: Some(names::MANAGER.to_owned()), ..PostParams::default() };
        for _ in 0..RACES {
            let refusal = match self.cluster.attempt(|| api.create(&parameters, pod)).await {
                Ok(made) => return Ok(made),
                Err(refusal) if refusal.status() == Some(409) => refusal,
                Err(refusal) => return Err(refusal.told(&action, self.cluster.place())),
            };
            let Some(existing) = self.cluster.get::<Pod>(name).await? else { continue };
            let has_token = existing.metadata.annotations.as_ref().and_then(|all| all.get(names::TOKEN));
            if belongs_to(&existing, &owner.uid) && has_token.map(String::as_str) == Some(token) {
                return Ok(existing);
            }
            if belongs_to(&existing, &owner.uid) && existing.metadata.deletion_timestamp.is_none() {
                return Err(refusal.told(&action, self.cluster.place()));
            }
            // Of an earlier sandbox, or on its way out.
            self.end_pod(name, existing.metadata.uid.as_deref().unwrap_or_default()).await?;
        }
        Err(failed(action, "its name is taken and given up all the time"))
    }
}

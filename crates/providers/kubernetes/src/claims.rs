//! Sandboxes that agent-sandbox starts ahead. A backend has one template and one pool of it; a session's claim gets a sandbox
//! of a pool whose pods are made alike, and its server is told what it is for.

use std::{sync::Arc, time::Duration};

use gloveport_protocol::Secret as Hidden;
use gloveport_provider::{Phase, ProviderError, Sandbox, SandboxSpec, Teller};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    body::{Plan, Waits},
    claim::{can_wait, shift},
    claim_object::{Kind, VERSION, claim_of, given, pool_of, ready, template_of, why},
    create::random,
    fault::{failed, given_up},
    inner::Inner,
    names::{self, AGENT_SANDBOX_EXTENSIONS as GROUP},
    pool::nobody,
    pool_owner::Owner,
    record::{Record, data},
    sandbox_object::Told,
    start::{NotStarted, Starting},
};

/// What a backend does with these kinds: group, resource, verbs.
pub(crate) const RIGHTS: [(&str, &str, &[&str]); 3] = [
    (GROUP, Kind::Template.plural(), &["create", "patch"]),
    (GROUP, Kind::Pool.plural(), &["create", "get", "list", "watch", "patch"]),
    (GROUP, Kind::Claim.plural(), &["create", "get", "watch", "delete"]),
];

/// Pools in one answer of a list; there are as many as backends.
const PAGE: u32 = 500;
/// Time for a controller to give a sandbox to a claim.
const GIVING: Duration = Duration::from_secs(20);
/// Time for the end of a claim with what it has got.
const ENDING: Duration = Duration::from_mins(1);

impl Inner {
    /// Whether the cluster has the kinds.
    async fn has_pools(&self) -> Result<bool, ProviderError> {
        let client = self.cluster.client().await?;
        let name = format!("{GROUP}/{VERSION}");
        match self.cluster.attempt(|| client.list_api_group_resources(&name)).await {
            Ok(served) => {
                let has = |kind: &Kind| served.resources.iter().any(|resource| resource.name == kind.plural());
                Ok(Kind::ALL.iter().all(has))
            }
            Err(refusal) if refusal.status() == Some(404) => Ok(false),
            Err(refusal) => Err(refusal.told(&format!("tell of {name}"), self.cluster.place())),
        }
    }

    /// The kinds are there.
    pub(crate) async fn check_pools(&self) -> Result<(), ProviderError> {
        if self.has_pools().await? {
            return Ok(());
        }
        let kinds = Kind::ALL.map(Kind::name).join(", ");
        let reason = format!(
            "it has no kinds {kinds} of {GROUP}/{VERSION}; install the extensions of agent-sandbox \
             (https://github.com/kubernetes-sigs/agent-sandbox, its extensions.yaml), or start none ahead"
        );
        Err(failed("start sandboxes ahead", reason))
    }

    async fn extension(&self, kind: Kind) -> Result<Api<DynamicObject>, ProviderError> {
        let client = self.cluster.client().await?.clone();
        Ok(Api::namespaced_with(client, &self.options.namespace, &kind.resource()))
    }

    async fn apply_extension(&self, kind: Kind, object: &DynamicObject) -> Result<DynamicObject, ProviderError> {
        let (api, name) = (self.extension(kind).await?, object.metadata.name.as_deref().unwrap_or_default());
        let (patch, parameters) = (Patch::Apply(object), PatchParams::apply(names::MANAGER).force());
        let action = format!("make the {} `{name}`", kind.name());
        self.cluster.ask(&action, || api.patch(name, &parameters, &patch)).await
    }

    /// The controller keeps this many sandboxes of this backend started.
    pub(crate) async fn fill_claims(
        self: &Arc<Self>,
        owner: &Owner,
        count: usize,
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        let image = self.options.image.clone().unwrap_or_default();
        let (key, spec) = (Hidden::new(random("make a key")?), SandboxSpec::new(nobody()?));
        let name = names::pool(&owner.own);
        let id = gloveport_provider::SandboxId::new(&name)?;
        let plan = Plan {
            options: &self.options,
            spec: &spec,
            id: &id,
            image: &image,
            backend: "",
            token: "",
            key: &key,
            program_size: 0,
            source: None,
            waits: Some(Waits { pool: &owner.own, alike: &owner.alike }),
        };
        // Those that run have the key that was there first.
        if self.cluster.get::<Secret>(&names::secret(&name)).await?.is_none() {
            self.cluster.apply(&plan.secret(&owner.reference)?).await?;
        }
        let pod = plan.pod()?;
        self.apply_extension(Kind::Template, &template_of(&name, &pod, &owner.reference)?).await?;
        let made = self.apply_extension(Kind::Pool, &pool_of(&name, count, &pod, &owner.reference)).await?;
        let api = self.extension(Kind::Pool).await?;
        let limit = self.options.start_within;
        let filled = timeout(limit, self.filled(&api, made, count));
        tokio::select! {
            filled = filled => filled.map_err(|_| {
                let reason = format!("the controller of agent-sandbox has not started {count} within {} s; does it run?", limit.as_secs());
                failed("start sandboxes ahead", reason)
            })?,
            () = given_up.cancelled() => Err(self::given_up()),
            () = self.closing.cancelled() => Err(self::given_up()),
        }
    }

    async fn filled(
        &self,
        api: &Api<DynamicObject>,
        mut pool: DynamicObject,
        count: usize,
    ) -> Result<(), ProviderError> {
        let name = pool.metadata.name.clone().unwrap_or_default();
        while ready(&pool) < count as u64 {
            self.changed(api, &name, pool.metadata.resource_version.as_deref().unwrap_or_default()).await;
            let action = format!("look at the {} `{name}`", Kind::Pool.name());
            let found = self.cluster.ask(&action, || api.get_opt(&name)).await?;
            pool = found.ok_or_else(|| failed("start sandboxes ahead", "their pool was removed meanwhile"))?;
        }
        Ok(())
    }

    /// Makes a sandbox of a pool the sandbox of a record, if there is one that would be made for it.
    pub(crate) async fn claim_sandbox(
        self: &Arc<Self>,
        plan: &Plan<'_>,
        record: &Record,
        given_up: &CancellationToken,
    ) -> Result<Option<Sandbox>, ProviderError> {
        if !can_wait(plan) || !self.has_pools().await? {
            return Ok(None);
        }
        let alike = self.alike(plan.spec, plan.image).await?;
        let api = self.extension(Kind::Pool).await?;
        let parameters = ListParams::default().labels(&format!("{}={alike}", names::ALIKE)).limit(PAGE).match_any();
        let listed = self.cluster.ask("list pools of sandboxes", || api.list(&parameters)).await?.items;
        let waits = |pool: &DynamicObject| pool.metadata.deletion_timestamp.is_none() && ready(pool) > 0;
        let mut pools: Vec<String> = listed.into_iter().filter(waits).filter_map(|pool| pool.metadata.name).collect();
        shift(&mut pools, record);
        let Some(pool) = pools.first() else { return Ok(None) };
        match Box::pin(self.claimed(pool, plan, record, given_up)).await {
            Ok(()) => {
                let found = self.find(&record.id).await?;
                found.map(Some).ok_or_else(|| failed("claim a sandbox", "it was removed meanwhile"))
            }
            Err(error) if given_up.is_cancelled() || self.closing.is_cancelled() => Err(error),
            Err(error) => {
                tracing::warn!(%error, pool, "a sandbox that was started ahead is of no use");
                self.give_back(record).await?;
                Ok(None)
            }
        }
    }

    async fn claimed(
        self: &Arc<Self>,
        pool: &str,
        plan: &Plan<'_>,
        record: &Record,
        given_up: &CancellationToken,
    ) -> Result<(), ProviderError> {
        let (id, owner, version) = (record.id.as_str(), record.owner(), self.version().await?);
        let sandbox = self.given_sandbox(pool, record, given_up).await?;
        // From now on others find it by its record.
        self.cluster.annotate::<ConfigMap>(id, &[(names::SANDBOX_NAME, Some(&sandbox))]).await?;
        let sandboxes = self.objects_of(version).await?;
        let told = self.sandbox(&sandboxes, &sandbox).await?.map(|found| Told::of(&found));
        let told = told.ok_or_else(|| failed("claim a sandbox", format!("the Sandbox `{sandbox}` is gone")))?;
        let pod = self.made_pod(&sandboxes, &sandbox, &told.uid, given_up).await?;
        let (name, uid) = (pod.metadata.name.unwrap_or_default(), pod.metadata.uid.unwrap_or_default());
        // It runs, unless the pool was empty by then.
        let seen = self.sees(None, &name).await?;
        let (tell, phase) = (&Teller::silent(), Phase::Creating);
        let starting = Starting { inner: self, pod: &name, uid: &uid, tell, phase, given_up, brings: false };
        starting.wait(seen).await.map_err(|error| match error {
            NotStarted::Failed(error) => error,
            NotStarted::Taken(reason) => failed("claim a sandbox", reason),
        })?;
        let (labels, later) = (plan.shown_labels(), plan.pod()?);
        let mut changes: serde_json::Map<String, serde_json::Value> =
            labels.into_iter().map(|(key, value)| (key, value.into())).collect();
        changes.extend([names::POOL, names::ALIKE].map(|key| (key.to_owned(), serde_json::Value::Null)));
        let annotations = json!({names::SESSION: plan.spec.session_id.as_str(), names::TOKEN: plan.token});
        let of_pod = Patch::Merge(json!({"metadata": {"labels": changes, "annotations": annotations}}));
        // What is made again after this one is the session's from the beginning.
        let mut of_sandbox = version.go_on(&later)?;
        of_sandbox["metadata"] = json!({ "labels": changes });
        of_sandbox["spec"]["podTemplate"]["metadata"]["labels"][names::POOL] = serde_json::Value::Null;
        of_sandbox["spec"]["podTemplate"]["metadata"]["labels"][names::ALIKE] = serde_json::Value::Null;
        let (of_sandbox, parameters) = (Patch::Merge(of_sandbox), PatchParams::default());
        let pods = self.cluster.api::<Pod>().await?;
        // In this order: a controller may give a pod the labels of its template again.
        self.cluster.ask("claim a Sandbox", || sandboxes.patch(&sandbox, &parameters, &of_sandbox)).await?;
        let pod = self.cluster.ask("claim a pod", || pods.patch(&name, &parameters, &of_pod)).await?;
        let (secret, service) = (plan.secret(&owner)?, plan.service(&owner)?);
        let first_key = names::secret(pool);
        let (_, service, ()) = tokio::try_join!(
            self.cluster.apply(&secret),
            self.cluster.apply(&service),
            self.tell(&pod, &name, &first_key, plan.spec, plan.key.expose()),
        )?;
        let address = service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
        let patch = Patch::Merge(json!({
            "metadata": {"annotations": {names::ADDRESS: address}},
            "data": data(&later, None, None)?,
        }));
        let api = self.cluster.api::<ConfigMap>().await?;
        self.cluster.ask("complete the record", || api.patch(id, &parameters, &patch)).await.map(drop)
    }

    /// The name of the sandbox that a claim gets. The claim has the name of the record, and ends with it.
    async fn given_sandbox(
        &self,
        pool: &str,
        record: &Record,
        given_up: &CancellationToken,
    ) -> Result<String, ProviderError> {
        let (api, id) = (self.extension(Kind::Claim).await?, record.id.as_str());
        let (wanted, parameters) = (claim_of(id, pool, &record.owner()), PostParams::default());
        let action = format!("make the {} `{id}`", Kind::Claim.name());
        match self.cluster.attempt(|| api.create(&parameters, &wanted)).await {
            Ok(_) => {}
            // The answer to an earlier try was lost: nobody else makes one of this name, as there is one record of it.
            Err(refusal) if refusal.status() == Some(409) => {}
            Err(refusal) => return Err(refusal.told(&action, self.cluster.place())),
        }
        let end = Instant::now() + GIVING;
        loop {
            let look = format!("look at the {} `{id}`", Kind::Claim.name());
            let found = self.cluster.ask(&look, || api.get_opt(id)).await?;
            let claim = found.ok_or_else(|| failed("claim a sandbox", "the claim was removed meanwhile"))?;
            if let Some(name) = given(&claim) {
                return Ok(name.to_owned());
            }
            let version = claim.metadata.resource_version.as_deref().unwrap_or_default();
            tokio::select! {
                changed = timeout_at(end, self.changed(&api, id, version)) => {
                    if changed.is_err() {
                        let reason = why(&claim).unwrap_or_else(|| "its controller says nothing".to_owned());
                        return Err(failed("claim a sandbox", format!("none was given within {} s: {reason}", GIVING.as_secs())));
                    }
                }
                () = given_up.cancelled() => return Err(self::given_up()),
            }
        }
    }

    /// The claim of a record ends with what it has got, so that the record can have another sandbox.
    async fn give_back(&self, record: &Record) -> Result<(), ProviderError> {
        let (api, id) = (self.extension(Kind::Claim).await?, record.id.as_str());
        let (action, parameters) = (format!("delete the {} `{id}`", Kind::Claim.name()), DeleteParams::foreground());
        match self.cluster.attempt(|| api.delete(id, &parameters)).await {
            Ok(_) => {}
            Err(refusal) if refusal.status() == Some(404) => {}
            Err(refusal) => return Err(refusal.told(&action, self.cluster.place())),
        }
        let gone = async {
            while let Some(found) = self.cluster.ask(&action, || api.get_opt(id)).await? {
                self.changed(&api, id, found.metadata.resource_version.as_deref().unwrap_or_default()).await;
            }
            Ok::<_, ProviderError>(())
        };
        timeout(ENDING, gone).await.map_err(|_| ProviderError::Timeout {
            action: format!("deleting the {} `{id}`", Kind::Claim.name()),
            limit: ENDING,
        })??;
        self.cluster.annotate::<ConfigMap>(id, &[(names::SANDBOX_NAME, None)]).await.map(drop)
    }
}

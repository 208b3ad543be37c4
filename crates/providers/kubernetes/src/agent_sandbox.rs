//! Pods that the controller of agent-sandbox makes (`api = "sandboxes"`): an object `Sandbox` stands between the record and the
//! pod. The record owns it, it says whether there is to be a pod, and the controller sees to that.

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt as _, pin_mut};
use gloveport_provider::{Check, ProviderError};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    SandboxApi,
    claim_object::is_claim_of,
    fault::{failed, given_up},
    inner::Inner,
    names::{self, AGENT_SANDBOX as GROUP},
    record::{Maker, Record},
    sandbox_object::{KIND, PLURAL, Told, Version, made_for},
    watch::{Seen, Waiter},
};

/// What a backend does with these objects: group, resource, verbs.
pub(crate) const RIGHT: (&str, &str, &[&str]) = (GROUP, PLURAL, &["create", "get", "list", "watch", "patch"]);

/// What to do where the kind is missing.
const REMEDY: &str = "install agent-sandbox (https://github.com/kubernetes-sigs/agent-sandbox, its manifest.yaml), or set \
                      `api = \"pods\"` in [extended.kubernetes]";
/// Objects in one answer of a list.
const PAGE: u32 = 500;
/// How often an object is looked at again that others change.
const RACES: u32 = 10;
/// Pause before it is, where it could not be watched.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest time that a watch is kept open, in seconds; the API server takes less than five minutes.
const WATCH: u32 = 290;

impl Inner {
    /// The version of the kind that is spoken with this cluster, if it has one.
    async fn served(&self) -> Result<Option<Version>, ProviderError> {
        if let Some(version) = self.sandboxes.get() {
            return Ok(Some(*version));
        }
        let client = self.cluster.client().await?;
        for version in Version::ALL {
            let name = format!("{GROUP}/{}", version.name());
            let served = match self.cluster.attempt(|| client.list_api_group_resources(&name)).await {
                Ok(served) => served,
                Err(refusal) if refusal.status() == Some(404) => continue,
                Err(refusal) => return Err(refusal.told(&format!("tell of {name}"), self.cluster.place())),
            };
            if served.resources.iter().any(|resource| resource.name == PLURAL) {
                return Ok(Some(*self.sandboxes.get_or_init(|| async { version }).await));
            }
        }
        Ok(None)
    }

    /// The same where the kind must be there.
    pub(crate) async fn version(&self) -> Result<Version, ProviderError> {
        let versions = Version::ALL.map(Version::name).join(" or ");
        let missing = || format!("it has no kind {KIND} of {GROUP} in the version {versions}; {REMEDY}");
        self.served().await?.ok_or_else(|| failed("make sandboxes of agent-sandbox", missing()))
    }

    /// The kind is there, if sandboxes are to be made of it.
    pub(crate) async fn check_kind(&self) -> Result<(), ProviderError> {
        if self.options.api == SandboxApi::Sandboxes { self.version().await.map(drop) } else { Ok(()) }
    }

    pub(crate) async fn objects_of(&self, version: Version) -> Result<Api<DynamicObject>, ProviderError> {
        let client = self.cluster.client().await?.clone();
        Ok(Api::namespaced_with(client, &self.options.namespace, &version.resource()))
    }

    /// What the cluster tells of the object of this name, if it is there.
    pub(crate) async fn sandbox(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
    ) -> Result<Option<DynamicObject>, ProviderError> {
        self.cluster.ask(&format!("look at the Sandbox `{name}`"), || api.get_opt(name)).await
    }

    /// Completes a record by what its `Sandbox` says, if it has one.
    pub(crate) async fn told(&self, record: Option<Record>) -> Result<Option<Record>, ProviderError> {
        let Some(mut record) = record else { return Ok(None) };
        if record.maker != Maker::Backend
            && let Some(version) = self.served().await?
        {
            let api = self.objects_of(version).await?;
            let found = self.sandbox(&api, &record.sandbox).await?;
            record.learn(found.as_ref().map(Told::of));
        }
        Ok(Some(record))
    }

    /// The same for many at once, with one list.
    pub(crate) async fn told_all(&self, records: &mut [Record], selector: &str) -> Result<(), ProviderError> {
        if records.iter().all(|record| record.maker == Maker::Backend) {
            return Ok(());
        }
        let Some(version) = self.served().await? else { return Ok(()) };
        let api = self.objects_of(version).await?;
        let mut parameters = ListParams::default().labels(selector).limit(PAGE);
        let mut all = HashMap::new();
        loop {
            let page = match self.cluster.attempt(|| api.list(&parameters)).await {
                // The list is too old to go on with; from the beginning, as a whole.
                Err(refusal) if refusal.status() == Some(410) && parameters.limit.is_some() => {
                    all.clear();
                    parameters = ListParams::default().labels(selector);
                    continue;
                }
                other => other.map_err(|refusal| refusal.told("list Sandboxes", self.cluster.place()))?,
            };
            let named = |object: &DynamicObject| Some((object.metadata.name.clone()?, Told::of(object)));
            all.extend(page.items.iter().filter_map(named));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => break,
            }
        }
        for record in records.iter_mut().filter(|record| record.maker != Maker::Backend) {
            record.learn(all.remove(&record.sandbox));
        }
        Ok(())
    }

    /// The pod of a record from now on, made by this backend or by the controller.
    pub(crate) async fn bring_up(
        &self,
        pod: &Pod,
        record: &Record,
        token: &str,
        given_up: &CancellationToken,
    ) -> Result<Pod, ProviderError> {
        if record.maker == Maker::Backend {
            return self.make_pod(pod, &record.owner(), token).await;
        }
        let version = self.version().await?;
        let api = self.objects_of(version).await?;
        let told = self.run_sandbox(&api, version, pod, record).await?;
        self.made_pod(&api, &record.sandbox, &told.uid, given_up).await
    }

    /// The `Sandbox` of a record is there and is to have this pod.
    async fn run_sandbox(
        &self,
        api: &Api<DynamicObject>,
        version: Version,
        pod: &Pod,
        record: &Record,
    ) -> Result<Told, ProviderError> {
        let (name, owner) = (record.sandbox.as_str(), record.owner());
        let (action, mut object) = (format!("make the Sandbox `{name}`"), version.object(pod, &owner)?);
        object.metadata.name = Some(name.to_owned());
        let change = Patch::Merge(version.go_on(pod)?);
        let manager = Some(names::MANAGER.to_owned());
        let (post, patch) = (
            PostParams { field_manager: manager.clone(), ..PostParams::default() },
            PatchParams { field_manager: manager, ..PatchParams::default() },
        );
        for _ in 0..RACES {
            let made = match self.sandbox(api, name).await? {
                None => self.cluster.attempt(|| api.create(&post, &object)).await,
                Some(found) if found.metadata.deletion_timestamp.is_some() => {
                    // One before it, which is on its way out.
                    self.changed(api, name, &Told::of(&found).version).await;
                    continue;
                }
                Some(found) => {
                    let owners = found.metadata.owner_references.iter().flatten();
                    let is_claim = |found: &OwnerReference| is_claim_of(found, record.id.as_str());
                    if !owners.into_iter().any(|found| found.uid == owner.uid || is_claim(found)) {
                        return Err(failed(action, "there is one of this name that belongs to somebody else"));
                    }
                    self.cluster.attempt(|| api.patch(name, &patch, &change)).await
                }
            };
            match made {
                Ok(made) => return Ok(Told::of(&made)),
                // Somebody else was faster, or it has gone.
                Err(refusal) if matches!(refusal.status(), Some(404 | 409)) => {}
                Err(refusal) => return Err(refusal.told(&action, self.cluster.place())),
            }
        }
        Err(failed(action, "others change it all the time"))
    }

    /// Waits for the pod that the controller makes for the object of this identity.
    pub(crate) async fn made_pod(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        uid: &str,
        given_up: &CancellationToken,
    ) -> Result<Pod, ProviderError> {
        let limit = self.options.start_within;
        let end = Instant::now() + limit;
        let fits = |pod: &Pod| made_for(pod, name, Some(uid)) && pod.metadata.deletion_timestamp.is_none();
        loop {
            let found = self.sandbox(api, name).await?.map(|found| Told::of(&found)).filter(|told| told.uid == uid);
            let told =
                found.ok_or_else(|| failed("make the pod", format!("the Sandbox `{name}` was removed meanwhile")))?;
            let called = told.pod.as_deref().unwrap_or(name);
            if let Some(pod) = self.cluster.get::<Pod>(called).await?.filter(fits) {
                return Ok(pod);
            }
            let start = |reason: String| ProviderError::Start { reason, log: String::new() };
            if let Some(refusal) = told.refusal() {
                return Err(start(format!("the controller of agent-sandbox makes no pod: {refusal}")));
            }
            let mut waiter = self.watch.pod(&self.cluster, called).await?;
            let appears = async {
                loop {
                    if let Seen::Pod(pod) = waiter.next().await
                        && fits(&pod)
                    {
                        return pod;
                    }
                }
            };
            tokio::select! {
                pod = appears => return Ok(Pod::clone(&pod)),
                () = self.changed(api, name, &told.version) => {}
                () = given_up.cancelled() => return Err(self::given_up()),
                () = sleep_until(end) => {
                    let why = told.why();
                    let why = if why.is_empty() { "is it running?".to_owned() } else { why };
                    let limit = limit.as_secs();
                    return Err(start(format!("the controller of agent-sandbox has made no pod within {limit} s: {why}")));
                }
            }
        }
    }

    /// Returns when the object has changed since this version, or may have.
    pub(crate) async fn changed(&self, api: &Api<DynamicObject>, name: &str, version: &str) {
        let parameters = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(WATCH);
        if let Ok(events) = api.watch(&parameters, version).await {
            pin_mut!(events);
            loop {
                match events.next().await {
                    Some(Ok(WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Deleted(_))) => return,
                    Some(Ok(WatchEvent::Bookmark(_))) => {}
                    Some(Ok(WatchEvent::Error(_)) | Err(_)) | None => break,
                }
            }
        }
        sleep(PAUSE).await;
    }

    /// The controller makes no pod of this record any more. Its pod ends, whoever asks for that.
    pub(crate) async fn rest(&self, record: &Record) -> Result<(), ProviderError> {
        if record.maker == Maker::Backend {
            return Ok(());
        }
        // Without the kind there is nothing that would make one.
        let Some(version) = self.served().await? else { return Ok(()) };
        let api = self.objects_of(version).await?;
        let (name, patch, parameters) = (&*record.sandbox, Patch::Merge(version.rest()), PatchParams::default());
        match self.cluster.attempt(|| api.patch(name, &parameters, &patch)).await {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.status() == Some(404) => Ok(()),
            Err(refusal) => Err(refusal.told(&format!("let the Sandbox `{name}` rest"), self.cluster.place())),
        }
    }

    /// The same for one that was not resumed, where nothing can be done about an error.
    pub(crate) async fn rest_again(&self, record: &Record) {
        if let Err(error) = self.rest(record).await {
            tracing::warn!(%error, "the pod of a sandbox that was not resumed may be made again");
        }
    }

    /// Sees the pod of this name, by this waiter if it is one for it.
    pub(crate) async fn sees(&self, waiter: Option<Waiter>, pod: &str) -> Result<Waiter, ProviderError> {
        match waiter.filter(|waiter| waiter.is_for(pod)) {
            Some(waiter) => Ok(waiter),
            None => self.watch.pod(&self.cluster, pod).await,
        }
    }

    /// Whether the cluster has the kind, if it is wanted.
    pub(crate) async fn kind_check(&self) -> Option<Check> {
        if self.options.api != SandboxApi::Sandboxes {
            return None;
        }
        let name = "agent-sandbox".to_owned();
        Some(match self.version().await {
            Ok(version) => {
                let found = format!("{KIND} of {GROUP}/{}", version.name());
                Check { name, works: true, found, remedy: None }
            }
            Err(error) => {
                let found = error.to_string();
                // What to do is told apart.
                let (found, remedy) = match found.strip_suffix(&format!("; {REMEDY}")) {
                    Some(found) => (found.to_owned(), Some(REMEDY.to_owned())),
                    None => (found, None),
                };
                Check { name, works: false, found, remedy }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims;

    #[test]
    fn the_component_of_the_manifests_gives_the_rights_that_are_used_and_no_others() {
        let role = include_str!("../../../../deploy/kubernetes/components/agent-sandbox/role.yaml");
        let all: Vec<_> = [RIGHT].into_iter().chain(claims::RIGHTS).collect();
        for (group, resource, verbs) in &all {
            let verbs = verbs.join(", ");
            let expected = format!("  - apiGroups: [{group}]\n    resources: [{resource}]\n    verbs: [{verbs}]\n");
            assert_eq!(role.matches(expected.as_str()).count(), 1, "{expected}");
        }
        assert_eq!(role.matches("verbs:").count(), all.len());
    }
}

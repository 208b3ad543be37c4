//! The provider.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use gloveport_protocol::BoxFuture;
use gloveport_provider::{
    Capabilities, Check, GcOptions, GcReport, ListFilter, LogOptions, LogStream, Progress, Provider, ProviderContext,
    ProviderError, Sandbox, SandboxId, SandboxSpec, SessionId, Snapshot, WarmKind, backend::Backends as Files,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, PartialObjectMeta};
use tokio::{sync::OnceCell, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    KubernetesOptions, access::Way, backends::Backends, cluster::Cluster, fault::NAME, inner::Inner, names,
    place::Place, record::Record, view,
};

/// How long the end of the backend may take.
const CLOSE: Duration = Duration::from_mins(1);
/// Records in one answer of a list.
const PAGE: u32 = 250;

/// Sandboxes as pods.
///
/// Those that are not kept end with [`close`](Provider::close). If the process ends without it, they are garbage, which
/// [`collect_garbage`](Provider::collect_garbage) of any other backend removes.
#[derive(Debug)]
pub struct Kubernetes {
    inner: Arc<Inner>,
}

impl Kubernetes {
    /// The name by which it is registered.
    pub const NAME: &'static str = NAME;

    /// A provider with these options. The cluster is not asked anything yet.
    pub fn new(options: KubernetesOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                cluster: Arc::new(Cluster::new(&options)),
                backends: Backends::new(Files::new(options.backends.clone())),
                way: Way::of(&options),
                options,
                sandboxes: OnceCell::new(),
                watch: Arc::default(),
                forwards: crate::access::Forwards::default(),
                pool: tokio::sync::Mutex::default(),
                own: std::sync::Mutex::default(),
                held: std::sync::Mutex::default(),
                closing: CancellationToken::new(),
            }),
        }
    }

    /// Whether these variables of a process, or the files of its user, name a cluster.
    pub fn is_expected(environment: &BTreeMap<String, String>) -> bool {
        Place::of(environment) != Place::Nowhere
    }

    /// For the [`Registry`](gloveport_provider::Registry).
    ///
    /// # Errors
    ///
    /// A setting that has no meaning.
    pub fn factory(context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(Arc::new(Self::new(KubernetesOptions::new(context)?)))
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        self.inner.closing.cancel();
        self.inner.forwards.close_all();
        self.inner.backends.drop_now();
    }
}

impl Inner {
    /// All records with their pods, the oldest first. No secret is read.
    pub(crate) async fn all(&self) -> Result<Vec<(Record, Option<Pod>)>, ProviderError> {
        let selector = format!("{}={},{}={}", names::APP.0, names::APP.1, names::ROLE, names::SANDBOX);
        // Its status says all that is told of a pod.
        let pods = self.cluster.list_parts::<Pod>(&selector, |pod| pod.spec = None);
        let (mut records, pods) = tokio::try_join!(self.records(&selector), pods)?;
        self.told_all(&mut records, &selector).await?;
        let named = |pod: Pod| Some((pod.metadata.name.clone()?, pod));
        let mut pods: HashMap<String, Pod> = pods.into_iter().filter_map(named).collect();
        let mut all: Vec<(Record, Option<Pod>)> = records
            .into_iter()
            .map(|record| {
                let pod = pods.remove(&record.pod).filter(|pod| record.owns(pod));
                (record, pod)
            })
            .collect();
        all.sort_by(|(one, _), (other, _)| (one.created, &one.id).cmp(&(other.created, &other.id)));
        Ok(all)
    }

    async fn records(&self, selector: &str) -> Result<Vec<Record>, ProviderError> {
        let api = self.cluster.api::<ConfigMap>().await?;
        let mut parameters = ListParams::default().labels(selector).limit(PAGE);
        let mut all = Vec::new();
        loop {
            let page = match self.cluster.attempt(|| api.list_metadata(&parameters)).await {
                // The list is too old to go on with; from the beginning, as a whole.
                Err(refusal) if refusal.status() == Some(410) && parameters.limit.is_some() => {
                    all.clear();
                    parameters = ListParams::default().labels(selector);
                    continue;
                }
                other => other.map_err(|refusal| refusal.told("list sandboxes", self.cluster.place()))?,
            };
            let record = |found: &PartialObjectMeta<ConfigMap>| Record::of(&found.metadata);
            all.extend(page.items.iter().filter_map(record));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(all),
            }
        }
    }

    async fn list(&self, filter: &ListFilter) -> Result<Vec<Sandbox>, ProviderError> {
        let mut listed = Vec::new();
        for (record, pod) in self.all().await? {
            let fits = filter.labels.iter().all(|(name, value)| record.labels.get(name) == Some(value));
            if !fits || (!filter.ended && !view::state(&record, pod.as_ref()).is_live()) {
                continue;
            }
            let lifetime = self.backends.lifetime(&self.cluster, &record).await?;
            let sandbox = view::sandbox(&record, pod.as_ref(), lifetime);
            listed.push((record, sandbox));
        }
        self.look_at_gates(&mut listed).await?;
        let reached = listed.into_iter().map(|(record, mut sandbox)| {
            self.reach_known(&record, &mut sandbox);
            sandbox
        });
        Ok(reached.collect())
    }

    async fn hold(&self, id: &SandboxId) -> Result<(), ProviderError> {
        self.check_open()?;
        let record = self.existing(id).await?;
        if !record.keep {
            // It belongs to whoever made it.
            return Ok(());
        }
        let label = self.backends.label(&self.cluster).await?;
        self.held().insert(id.clone());
        let holder = self.backends.holder()?;
        let is_there = self.cluster.annotate::<ConfigMap>(id.as_str(), &[(&holder, Some(&label))]).await?;
        if is_there { Ok(()) } else { Err(ProviderError::NotFound(id.clone())) }
    }

    async fn release(&self, id: &SandboxId) -> Result<(), ProviderError> {
        // One that this backend does not hold needs no release.
        if !self.held().remove(id) {
            return Ok(());
        }
        let holder = self.backends.holder()?;
        self.cluster.annotate::<ConfigMap>(id.as_str(), &[(&holder, None)]).await.map(drop)
    }

    async fn close(&self) {
        self.closing.cancel();
        let own: Vec<SandboxId> = std::mem::take(&mut *self.own()).into_iter().collect();
        let held: Vec<SandboxId> = self.held().iter().cloned().collect();
        let ending = async {
            let deleted = join_all(own.iter().map(|id| self.delete(id)));
            let released = join_all(held.iter().map(|id| self.release(id)));
            let (deleted, released) = tokio::join!(deleted, released);
            for error in deleted.into_iter().filter_map(Result::err) {
                tracing::warn!(%error, "a sandbox of a closed backend is left; collect garbage");
            }
            for error in released.into_iter().filter_map(Result::err) {
                tracing::warn!(%error, "a kept sandbox will look as if its backend had died");
            }
            self.close_pool().await;
            self.backends.vanish(&self.cluster).await;
        };
        if timeout(CLOSE, ending).await.is_err() {
            tracing::warn!("the end of the backend took too long; what it leaves is garbage");
        }
        self.forwards.close_all();
    }
}

impl Provider for Kubernetes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.inner.create(spec, progress))
    }

    fn find<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(self.inner.find(id))
    }

    /// The id of a sandbox follows from its session, so that the cluster lets each session have one only.
    fn find_session<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Sandbox>, ProviderError>> {
        Box::pin(async {
            let found = self.inner.find(&names::id_of(session)?).await?;
            Ok(found.filter(|sandbox| sandbox.session_id == *session))
        })
    }

    /// Without the keys of the sandboxes: they are in secrets, which are read one by one.
    fn list<'a>(&'a self, filter: &'a ListFilter) -> BoxFuture<'a, Result<Vec<Sandbox>, ProviderError>> {
        Box::pin(self.inner.list(filter))
    }

    fn pause<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.pause(id))
    }

    fn resume<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.resume(id))
    }

    fn delete<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.inner.delete(id))
    }

    fn logs<'a>(&'a self, id: &'a SandboxId, options: LogOptions) -> BoxFuture<'a, Result<LogStream, ProviderError>> {
        Box::pin(self.inner.logs(id, options))
    }

    fn collect_garbage<'a>(&'a self, options: &'a GcOptions) -> BoxFuture<'a, Result<GcReport, ProviderError>> {
        Box::pin(self.inner.collect_garbage(options))
    }

    fn hold<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.hold(id))
    }

    fn release<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.inner.release(id))
    }

    fn snapshot<'a>(&'a self, id: &'a SandboxId, name: &'a str) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(self.inner.snapshot(id, name))
    }

    fn snapshots(&self) -> BoxFuture<'_, Result<Vec<Snapshot>, ProviderError>> {
        Box::pin(self.inner.kept())
    }

    fn delete_snapshot<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<bool, ProviderError>> {
        Box::pin(self.inner.delete_kept(image))
    }

    fn fork<'a>(
        &'a self,
        id: &'a SandboxId,
        session: &'a SessionId,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Sandbox, ProviderError>> {
        Box::pin(self.inner.fork(id, session, progress))
    }

    fn keep_warm<'a>(&'a self, kinds: &'a [WarmKind]) -> BoxFuture<'a, Result<Vec<usize>, ProviderError>> {
        Box::pin(self.inner.keep_warm(kinds))
    }

    fn check(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(self.inner.check())
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.close())
    }
}

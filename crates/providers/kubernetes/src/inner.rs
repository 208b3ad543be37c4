//! What a backend has of the cluster and of its sandboxes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gloveport_protocol::Secret as Hidden;
use gloveport_provider::{Capabilities, ProviderError, Sandbox, SandboxId, SandboxState};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio_util::sync::CancellationToken;

use crate::{
    KubernetesOptions, SandboxApi, Storage,
    access::{self, Forwards, Way},
    backends::Backends,
    capabilities::CAPABILITIES,
    cluster::Cluster,
    fault::NAME,
    names::{self, SERVER_PORT},
    record::Record,
    sandbox_object::Version,
    view,
    watch::Watch,
};

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: KubernetesOptions,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) backends: Backends,
    pub(crate) watch: Arc<Watch>,
    pub(crate) forwards: Forwards,
    /// The uid of the object that owns the pods that it has started ahead, if there is one; one fills it at a time.
    pub(crate) pool: AsyncMutex<Option<String>>,
    pub(crate) way: Way,
    /// The version of agent-sandbox that the cluster has, once it was asked.
    pub(crate) sandboxes: OnceCell<Version>,
    /// Sandboxes that end with this backend.
    pub(crate) own: Mutex<BTreeSet<SandboxId>>,
    /// Kept sandboxes that it uses.
    pub(crate) held: Mutex<BTreeSet<SandboxId>>,
    pub(crate) closing: CancellationToken,
}

impl Inner {
    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            network_policy: self.options.network_policies,
            pause: self.options.storage == Storage::Volume,
            snapshots: self.options.volume_snapshots,
            // A pool of agent-sandbox makes no volumes.
            warm: self.options.api == SandboxApi::Pods || self.options.storage == Storage::EmptyDir,
            ..CAPABILITIES
        }
    }

    pub(crate) fn check_open(&self) -> Result<(), ProviderError> {
        if self.closing.is_cancelled() { Err(ProviderError::Closed(NAME.to_owned())) } else { Ok(()) }
    }

    pub(crate) fn own(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, BTreeSet<SandboxId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sandbox is gone.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.own().remove(id);
        self.held().remove(id);
        self.forwards.close(id);
    }

    /// The record of a sandbox, if there is one. What cannot be the name of an object is the name of none.
    pub(crate) async fn record(&self, id: &SandboxId) -> Result<Option<Record>, ProviderError> {
        if !id.as_str().starts_with(names::PREFIX) {
            return Ok(None);
        }
        let api = self.cluster.api::<ConfigMap>().await?;
        let action = format!("look at the record `{id}`");
        let found = self.cluster.ask(&action, || api.get_metadata_opt(id.as_str())).await?;
        self.told(found.and_then(|found| Record::of(&found.metadata))).await
    }

    /// The record of a sandbox, which must be there.
    pub(crate) async fn existing(&self, id: &SandboxId) -> Result<Record, ProviderError> {
        self.record(id).await?.ok_or_else(|| ProviderError::NotFound(id.clone()))
    }

    /// The pod of a record, if it has one.
    pub(crate) async fn pod(&self, record: &Record) -> Result<Option<Pod>, ProviderError> {
        let found = self.cluster.get::<Pod>(&record.pod).await?;
        Ok(found.filter(|pod| record.owns(pod)))
    }

    /// A sandbox by its id.
    pub(crate) async fn find(&self, id: &SandboxId) -> Result<Option<Sandbox>, ProviderError> {
        let Some(record) = self.record(id).await? else { return Ok(None) };
        let (pod, key) = tokio::try_join!(self.pod(&record), self.key(&record))?;
        let lifetime = self.backends.lifetime(&self.cluster, &record).await?;
        let mut sandbox = view::sandbox(&record, pod.as_ref(), lifetime);
        sandbox.session_key = key;
        self.look_at_gate(&record, &mut sandbox).await?;
        self.reach(&record, &mut sandbox).await?;
        if let SandboxState::Failed(reason) = &mut sandbox.state {
            let log = self.last_lines(&record.pod).await;
            if !log.is_empty() {
                *reason = format!("{reason}; it wrote last:\n{log}");
            }
        }
        Ok(Some(sandbox))
    }

    /// The key of a sandbox. It is read by name, so that a backend needs no right to list secrets.
    pub(crate) async fn key(&self, record: &Record) -> Result<Option<Hidden>, ProviderError> {
        let secret = self.cluster.get::<Secret>(&names::secret(record.id.as_str())).await?;
        let key = secret.and_then(|secret| secret.data?.remove("key"));
        Ok(key.and_then(|key| String::from_utf8(key.0).ok()).map(Hidden::new))
    }

    /// Fills in by what a sandbox is reached.
    pub(crate) async fn reach(&self, record: &Record, sandbox: &mut Sandbox) -> Result<(), ProviderError> {
        if !matches!(sandbox.state, SandboxState::Running | SandboxState::Paused) {
            return Ok(());
        }
        let mut urls = BTreeMap::new();
        match self.way {
            Way::Forward => {
                let api = self.cluster.api::<Pod>().await?;
                sandbox.url = Some(self.forwards.url(&api, record, SERVER_PORT)?);
                for (name, port) in &record.ports {
                    urls.insert(name.clone(), self.forwards.url(&api, record, *port)?);
                }
            }
            way => {
                sandbox.url = access::server(record, &self.options, way);
                for (name, port) in &record.ports {
                    let url = if name == names::EDITOR.0 {
                        let scheme = if self.options.ingress_tls_secret.is_some() { "https" } else { "http" };
                        let host = names::host(record.id.as_str(), &self.options.ingress_domain);
                        Some(format!("{scheme}://{host}"))
                    } else {
                        access::by_service(record, &self.options, way, *port)
                    };
                    urls.extend(url.map(|url| (name.clone(), url)));
                }
            }
        }
        sandbox.urls = urls;
        Ok(())
    }

    /// The same for many at once: no way is opened that is not open yet.
    pub(crate) fn reach_known(&self, record: &Record, sandbox: &mut Sandbox) {
        if !matches!(sandbox.state, SandboxState::Running | SandboxState::Paused) {
            return;
        }
        sandbox.url = match self.way {
            Way::Forward => self.forwards.known(&record.id, SERVER_PORT),
            way => access::server(record, &self.options, way),
        };
    }
}

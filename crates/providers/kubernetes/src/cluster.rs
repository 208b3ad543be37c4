//! The cluster: who is asked, how often, and what its clock says.

use std::{
    fmt::Debug,
    future::Future,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use gloveport_provider::ProviderError;
use gloveport_resolver::Resolver;
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Client, Config, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams},
    client::{Body, ClientBuilder, ConfigExt as _},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep, timeout},
};

use crate::{
    KubernetesOptions,
    fault::{self, CLUSTER, failed},
    names::MANAGER,
    place::Place,
};

/// Time for one request and its answer.
const REQUEST: Duration = Duration::from_secs(30);
/// Time for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a cluster that answered before is waited for.
const PATIENCE: Duration = Duration::from_secs(45);
/// Objects in one answer of a list.
const PAGE: u32 = 250;
/// Pause before an object is looked at again that could not be watched.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest time that one watch is kept open, in seconds; the API server takes less than five minutes.
const WATCH: u32 = 290;

/// A cluster, connected to when it is asked for the first time.
#[derive(Debug)]
pub(crate) struct Cluster {
    namespace: String,
    place: Place,
    context: Option<String>,
    connected: OnceCell<Connected>,
    /// It has answered before, so that it is waited for when it does not.
    answered: AtomicBool,
}

struct Connected {
    client: Client,
    place: String,
}

impl Debug for Connected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connected").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Cluster {
    pub(crate) fn new(options: &KubernetesOptions) -> Self {
        Self {
            namespace: options.namespace.clone(),
            place: Place::of(&options.environment),
            context: options.context.clone(),
            connected: OnceCell::new(),
            answered: AtomicBool::new(false),
        }
    }

    /// Where it is, for messages.
    pub(crate) fn place(&self) -> &str {
        self.connected.get().map_or("an unknown address", |connected| &connected.place)
    }

    pub(crate) async fn client(&self) -> Result<&Client, ProviderError> {
        let connected = self.connected.get_or_try_init(|| async {
            let config = self.config().await?;
            let place = config.cluster_url.to_string().trim_end_matches('/').to_owned();
            let client = client(config).map_err(|error| fault::of(error, "be connected to", &place))?;
            Ok::<_, ProviderError>(Connected { client, place })
        });
        Ok(&connected.await?.client)
    }

    async fn config(&self) -> Result<Config, ProviderError> {
        let unknown = |error: String, hint: &str| ProviderError::Unreachable {
            engine: CLUSTER.to_owned(),
            source: error.into(),
            hint: hint.to_owned(),
        };
        let files = match &self.place {
            Place::Files(files) => files,
            Place::Inside => {
                let config = Config::incluster();
                let mut config =
                    config.map_err(|error| unknown(fault::chain(&error), "look at the account of this pod"))?;
                limits(&mut config);
                return Ok(config);
            }
            Place::Nowhere => {
                let hint = "set KUBECONFIG, or run this program in a pod of the cluster";
                return Err(unknown("there is no ~/.kube/config, and KUBECONFIG is not set".to_owned(), hint));
            }
        };
        let hint = "`kubectl config get-contexts` shows what is configured";
        let mut all = Kubeconfig::default();
        for file in files {
            let read = Kubeconfig::read_from(file).and_then(|read| all.merge(read));
            all = read.map_err(|error| unknown(format!("{}: {}", file.display(), fault::chain(&error)), hint))?;
        }
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(all, &options).await;
        let mut config = config.map_err(|error| unknown(fault::chain(&error), hint))?;
        limits(&mut config);
        Ok(config)
    }

    /// The objects of a kind in the namespace.
    pub(crate) async fn api<K>(&self) -> Result<Api<K>, ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Ok(Api::namespaced(self.client().await?.clone(), &self.namespace))
    }

    /// Asks once, and again while the cluster has too much to do or, if it answered before, cannot be reached. What is asked
    /// must mean the same the second time.
    pub(crate) async fn ask<T, F>(&self, action: &str, request: impl Fn() -> F) -> Result<T, ProviderError>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        self.attempt(request).await.map_err(|error| error.told(action, self.place()))
    }

    /// The same, where the caller looks at the error itself.
    pub(crate) async fn attempt<T, F>(&self, request: impl Fn() -> F) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        let began = Instant::now();
        let mut tries = 0;
        loop {
            let answered = timeout(REQUEST, request()).await;
            let error = match answered {
                Ok(Ok(answer)) => {
                    self.answered.store(true, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(Err(error)) => error,
                Err(_) => return Err(Refusal::Late),
            };
            if fault::status(&error).is_some() {
                self.answered.store(true, Ordering::Relaxed);
            }
            let patience = if self.answered.load(Ordering::Relaxed) { PATIENCE } else { Duration::ZERO };
            match fault::retry_after(&error, tries) {
                Some(pause) if began.elapsed() + pause < patience => {
                    tracing::debug!(error = %fault::chain(&error), ?pause, "the cluster is asked again");
                    sleep(pause).await;
                    tries += 1;
                }
                _ => return Err(Refusal::Error(Box::new(error))),
            }
        }
    }

    /// An object, if it is there.
    pub(crate) async fn get<K>(&self, name: &str) -> Result<Option<K>, ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api = self.api::<K>().await?;
        self.ask(&format!("look at {} `{name}`", kind::<K>()), || api.get_opt(name)).await
    }

    /// Makes an object, or what is there like it. Nobody else makes objects of this name.
    pub(crate) async fn apply<K>(&self, object: &K) -> Result<K, ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
    {
        let api = self.api::<K>().await?;
        let name = object.meta().name.clone().unwrap_or_default();
        // Apply wants to be told what it is.
        let mut value = serde_json::to_value(object).map_err(|error| failed("be told an object", error))?;
        value["apiVersion"] = K::api_version(&()).into();
        value["kind"] = K::kind(&()).into();
        let parameters = PatchParams::apply(MANAGER).force();
        let patch = Patch::Apply(value);
        self.ask(&format!("make {} `{name}`", kind::<K>()), || api.patch(&name, &parameters, &patch)).await
    }

    /// Changes annotations: those with a value are set, the others are removed. Whether the object is there.
    pub(crate) async fn annotate<K>(&self, name: &str, changes: &[(&str, Option<&str>)]) -> Result<bool, ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api = self.api::<K>().await?;
        let annotations: serde_json::Map<String, serde_json::Value> =
            changes.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned).into())).collect();
        let patch = Patch::Merge(serde_json::json!({"metadata": {"annotations": annotations}}));
        let parameters = PatchParams::default();
        match self.attempt(|| api.patch_metadata(name, &parameters, &patch)).await {
            Ok(_) => Ok(true),
            Err(refusal) if refusal.status() == Some(404) => Ok(false),
            Err(refusal) => Err(refusal.told(&format!("change {} `{name}`", kind::<K>()), self.place())),
        }
    }

    /// An object belongs to this one alone from now on.
    pub(crate) async fn own<K>(&self, name: &str, owner: &OwnerReference) -> Result<(), ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api = self.api::<K>().await?;
        let patch = Patch::Merge(serde_json::json!({"metadata": {"ownerReferences": [owner]}}));
        let parameters = PatchParams::default();
        let action = format!("change {} `{name}`", kind::<K>());
        self.ask(&action, || api.patch_metadata(name, &parameters, &patch)).await.map(drop)
    }

    /// Asks for the end of an object; whether it was there.
    pub(crate) async fn delete<K>(&self, name: &str, parameters: &DeleteParams) -> Result<bool, ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api = self.api::<K>().await?;
        match self.attempt(|| api.delete(name, parameters)).await {
            Ok(_) => Ok(true),
            // It is gone, or another one has its name.
            Err(refusal) if matches!(refusal.status(), Some(404 | 409)) => Ok(false),
            Err(refusal) => Err(refusal.told(&format!("delete {} `{name}`", kind::<K>()), self.place())),
        }
    }

    /// All objects with these labels, in pages.
    pub(crate) async fn list<K>(&self, selector: &str) -> Result<Vec<K>, ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.list_parts(selector, |_| {}).await
    }

    /// The same without what this takes away from each: all objects of a large namespace at once need much memory.
    pub(crate) async fn list_parts<K>(&self, selector: &str, shorten: impl Fn(&mut K)) -> Result<Vec<K>, ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let api = self.api::<K>().await?;
        let mut all = Vec::new();
        let mut parameters = ListParams::default().labels(selector).limit(PAGE);
        loop {
            let asked = self.attempt(|| api.list(&parameters)).await;
            let page = match asked {
                // The list is too old to go on with; from the beginning, as a whole.
                Err(refusal) if refusal.status() == Some(410) && parameters.limit.is_some() => {
                    all.clear();
                    parameters = ListParams::default().labels(selector);
                    continue;
                }
                other => other.map_err(|refusal| refusal.told(&format!("list {}s", kind::<K>()), self.place()))?,
            };
            all.extend(page.items.into_iter().map(|mut object| {
                object.meta_mut().managed_fields = None;
                shorten(&mut object);
                object
            }));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(all),
            }
        }
    }

    /// Waits until an object of this identity is gone.
    pub(crate) async fn gone<K>(&self, name: &str, uid: &str, limit: Duration) -> Result<(), ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let late = |_| ProviderError::Timeout { action: format!("deleting {} `{name}`", kind::<K>()), limit };
        timeout(limit, self.until_gone::<K>(name, uid)).await.map_err(late)?
    }

    async fn until_gone<K>(&self, name: &str, uid: &str) -> Result<(), ProviderError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        use futures_util::{StreamExt as _, pin_mut};
        let api = self.api::<K>().await?;
        let action = format!("look at {} `{name}`", kind::<K>());
        loop {
            let found = self.ask(&action, || api.get_metadata_opt(name)).await?;
            let Some(found) = found.filter(|found| found.metadata.uid.as_deref() == Some(uid)) else { return Ok(()) };
            let version = found.metadata.resource_version.unwrap_or_default();
            let parameters = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(WATCH);
            if let Ok(events) = api.watch_metadata(&parameters, &version).await {
                pin_mut!(events);
                while let Some(Ok(event)) = events.next().await {
                    match event {
                        WatchEvent::Deleted(gone) if gone.metadata.uid.as_deref() == Some(uid) => return Ok(()),
                        WatchEvent::Error(_) => break,
                        _ => {}
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// The time of the API server, which is the one that its objects tell: clocks of other machines may differ.
    pub(crate) async fn now(&self) -> Result<SystemTime, ProviderError> {
        let client = self.client().await?;
        let ask = || async {
            let request = http::Request::get("/version").body(Body::empty()).map_err(kube::Error::HttpError)?;
            client.send(request).await
        };
        let answer = self.ask("tell its time", ask).await?;
        let date = answer.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        Ok(date.and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or_else(SystemTime::now))
    }
}

/// Why a request was not answered as hoped.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The cluster, or the way to it.
    Error(Box<kube::Error>),
    /// No answer came.
    Late,
}

impl Refusal {
    /// The status of the answer, if there was one.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Error(error) => fault::status(error),
            Self::Late => None,
        }
    }

    pub(crate) fn told(self, action: &str, place: &str) -> ProviderError {
        match self {
            Self::Error(error) => fault::of(*error, action, place),
            Self::Late => {
                ProviderError::Timeout { action: format!("asking {CLUSTER} at {place} to {action}"), limit: REQUEST }
            }
        }
    }
}

fn limits(config: &mut Config) {
    config.connect_timeout = Some(CONNECT);
    // Requests have a limit of their own; logs and watches may be silent for long.
    (config.read_timeout, config.write_timeout) = (None, None);
}

/// What people call a kind of objects.
pub(crate) fn kind<K: Resource<DynamicType = ()>>() -> String {
    match &*K::kind(&()) {
        "ConfigMap" => "the record".to_owned(),
        "PersistentVolumeClaim" => "the volume claim".to_owned(),
        "NetworkPolicy" => "the network policy".to_owned(),
        other => format!("the {}", other.to_lowercase()),
    }
}

/// A client that resolves names by a library.
fn client(config: Config) -> Result<Client, kube::Error> {
    let namespace = config.default_namespace.clone();
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new_with_resolver(Resolver::default());
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    let https = config.rustls_https_connector_with_connector(connector)?;
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(https);
    let service = tower::ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .map_err(tower::BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, namespace).build())
}

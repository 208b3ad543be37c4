//! The whole: a provider, a key, and what is known of sandboxes.

use std::{io, sync::Arc, time::Duration};

use axum::{Router, middleware};
use gloveport_client::{Certificates, ClientError, Pool};
use gloveport_e2b_face::{E2bFace, FaceOptions};
use gloveport_provider::{Capabilities, GcOptions, Level, Provider};
use http::Uri;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    GatewayOptions, api,
    audit::Audit,
    builds::Builds,
    domain::Domain,
    e2b::{self, E2bHost},
    engine::Engine,
    entry,
    hub::Hub,
    known::Known,
    listen::{self, Service},
    metrics::Metrics,
    openapi, operations, reconcile,
    shared::Shared,
    streams::Streams,
    tenancy::Tenancy,
    tenant,
    tls::{Tls, TlsError},
    traced::Traced,
    turns::Turns,
    v1,
    waking::Waking,
    warm::{Warm, WarmPool},
};

/// Pause between two collections of garbage.
const COLLECT: Duration = Duration::from_mins(5);
/// Time for what goes on behind answers to end with the gateway.
const ENDING: Duration = Duration::from_secs(2);
/// Pause between two looks at the files of the certificate.
const RENEW: Duration = Duration::from_mins(1);

/// Why a gateway cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// It would let everybody in.
    #[error(
        "a gateway needs a key or a database; write at least 16 characters into its file, for example with `openssl rand -hex 32`"
    )]
    NoKey,
    /// The key can be guessed.
    #[error("the key has {0} characters, and at least 16 are needed; `openssl rand -hex 32` makes one")]
    ShortKey(usize),
    /// The public URL is none.
    #[error("`{0}` cannot be the public URL: it must be like https://sandboxes.example.org, without a query")]
    PublicUrl(String),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// The domain is none.
    #[error("`{0}` cannot be the domain of sandboxes: it must be a name like sandboxes.example.org")]
    Domain(String),
    /// Nothing of the kind can be started ahead.
    #[error("{0}")]
    Warm(String),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no client for HTTP.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// A provider over HTTP.
#[derive(Clone, Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    /// What is served beside the interface, for whoever has a key, and what the document of the interface says of it.
    beside: Option<(Router, Value)>,
    /// The API of E2B.
    e2b: Option<E2bFace>,
}

impl Gateway {
    /// Fewest characters of the key.
    pub const SHORTEST_KEY: usize = 16;

    /// A gateway for the sandboxes of this provider. Nothing is asked yet.
    ///
    /// # Errors
    ///
    /// The key is none, or the public URL or the domain is, or the certificate cannot be used.
    pub fn new(provider: Arc<dyn Provider>, mut options: GatewayOptions) -> Result<Self, GatewayError> {
        match options.key.as_ref().map(|key| key.expose().len()) {
            None if options.database.is_some() => {}
            None | Some(0) => return Err(GatewayError::NoKey),
            Some(length) if length < Self::SHORTEST_KEY => return Err(GatewayError::ShortKey(length)),
            Some(_) => {}
        }
        if let Some(url) = &mut options.public_url {
            Self::check_public_url(url)?;
            url.truncate(url.trim_end_matches('/').len());
        }
        let own = provider.capabilities();
        let level = options.confinement.as_ref().map_or(Level::None, |confinement| confinement.level);
        // What clients wish has no place for a level, for whom a secret is, or for a file of this machine. Images are for engines of
        // containers: where all sandboxes are made from the machine, clients name one because they have to.
        let images = own.images;
        let can = Capabilities { confine: false, edge_secrets: false, audit: false, images, ..own.kept_apart(level) };
        WarmPool::check(&options.warm, provider.name(), &can).map_err(GatewayError::Warm)?;
        let tenancy = match &options.database {
            Some(store) => Some(Tenancy {
                store: store.clone(),
                audit: Arc::new(Audit::default()),
                size: options.size,
                gateway: gloveport_ids::random::<8>().map_err(|error| GatewayError::Random(error.to_string()))?,
            }),
            None => None,
        };
        let domain = match &options.domain {
            Some(text) => Some(Domain::new(text).ok_or_else(|| GatewayError::Domain(text.clone()))?),
            None => None,
        };
        let provider: Arc<dyn Provider> = Arc::new(Traced(provider));
        let tls = options.tls.clone().map(Tls::new).transpose()?.map(Arc::new);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            warm: Warm::new(&options.warm),
            builds: options.images.clone().map(|images| Builds::new(images, stop.clone())),
            tenancy,
            can,
            provider,
            known: Known::default(),
            pool: Pool::new(Certificates::Checked)?,
            upgraded: Arc::new(Semaphore::new(options.websockets)),
            options,
            domain,
            tls,
            metrics: Arc::new(Metrics::default()),
            engine: Engine::default(),
            waking: Waking::default(),
            hub: Hub::default(),
            streams: Streams::default(),
            turns: Turns::default(),
            draining: CancellationToken::new(),
            stop,
        });
        let e2b = shared.options.e2b.clone().map(|told| {
            let domain = e2b::domain(shared.options.domain.as_deref(), shared.options.public_url.as_deref());
            let host = Arc::new(E2bHost(Arc::clone(&shared)));
            E2bFace::new(host, FaceOptions { domain, ..told }, shared.pool.clone())
        });
        Ok(Self { shared, beside: None, e2b })
    }

    /// The host of a public URL.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn check_public_url(url: &str) -> Result<String, GatewayError> {
        let uri = url.parse::<Uri>().ok().filter(|uri| {
            let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
            is_http && uri.query().is_none() && uri.authority().is_some_and(|it| !it.as_str().contains('@'))
        });
        let host = uri.filter(|_| !url.contains('#')).and_then(|uri| Some(uri.host()?.to_ascii_lowercase()));
        host.ok_or_else(|| GatewayError::PublicUrl(url.to_owned()))
    }

    /// Whether this can be the domain of sandboxes.
    ///
    /// # Errors
    ///
    /// It cannot.
    pub fn check_domain(text: &str) -> Result<(), GatewayError> {
        Domain::new(text).map(drop).ok_or_else(|| GatewayError::Domain(text.to_owned()))
    }

    /// Serves these routes, too. Nobody reaches them without a key, their bodies are as small and quick as those of the
    /// interface, each request has a [`Tenant`](crate::Tenant) as an extension, and errors have the form of the native API, made
    /// of a [`Refusal`](crate::Refusal) where the answer has one. `document` is an `OpenAPI` document of them.
    #[must_use]
    pub fn with_routes(self, routes: Router, document: Value) -> Self {
        let with_key = middleware::from_fn_with_state(Arc::clone(&self.shared), tenant::with_key);
        let routes = routes.route_layer(with_key).route_layer(middleware::from_fn(v1::shape));
        Self { beside: Some((routes, document)), ..self }
    }

    /// The interface, and the ways to sandboxes.
    pub fn router(&self) -> Router {
        let enter = middleware::from_fn_with_state(Arc::clone(&self.shared), entry::enter);
        let (beside, document) = self.beside.clone().unzip();
        let interface = api::router(&self.shared).merge(v1::router(&self.shared));
        let interface = interface.merge(openapi::router(document.as_ref()));
        let interface = interface.merge(operations::beside_interface(&self.shared));
        let interface = beside.into_iter().fold(interface, Router::merge);
        let interface = match &self.e2b {
            Some(face) => {
                let divert = middleware::from_fn_with_state(face.clone(), e2b::divert);
                interface.merge(face.control()).layer(divert)
            }
            None => interface,
        };
        interface.layer(enter)
    }

    /// Serves until `stop` is cancelled; then no more connections are accepted, and the answers in flight are finished. The
    /// sandboxes stay, and the provider is left open.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        let collecting = AbortOnDropHandle::new(tokio::spawn(collect(Arc::clone(&self.shared))));
        let comparing = AbortOnDropHandle::new(tokio::spawn(reconcile::run(Arc::clone(&self.shared))));
        let filling = AbortOnDropHandle::new(tokio::spawn({
            let (shared, stop) = (Arc::clone(&self.shared), stop.clone());
            async move { shared.warm.keep(&*shared.provider, &stop).await }
        }));
        let ending = self.e2b.clone().map(|face| {
            let stop = stop.clone();
            AbortOnDropHandle::new(tokio::spawn(async move { face.care(stop).await }))
        });
        let written = CancellationToken::new();
        let writing = self.shared.tenancy.as_ref().map(|tenancy| {
            let audit = Arc::clone(&tenancy.audit);
            AbortOnDropHandle::new(tokio::spawn(audit.write(tenancy.store.clone(), written.clone())))
        });
        let renewing = self.shared.tls.clone().map(|tls| AbortOnDropHandle::new(tokio::spawn(renew(tls))));
        let ordering = self.shared.tls.clone().map(|tls| AbortOnDropHandle::new(tokio::spawn(order(tls))));
        let (tls, metrics) = (self.shared.tls.clone(), Arc::clone(&self.shared.metrics));
        let patience = self.shared.options.patience;
        let service = Service { router: self.router(), tls, metrics, patience };
        let draining = self.shared.draining.clone();
        let told = async {
            stop.cancelled().await;
            draining.cancel();
        };
        tokio::join!(listen::serve(listener, service, self.shared.options.drain, &stop), told);
        self.shared.turns.end().await;
        drop((collecting, comparing, renewing, ordering, filling));
        if let Some(ending) = ending {
            // It has ended as far as it matters: what goes on ends with this process.
            let _late = timeout(ENDING, ending).await;
        }
        self.shared.warm.end(&*self.shared.provider).await;
        written.cancel();
        if let Some(writing) = writing {
            // It ends by itself, in time.
            let _panicked = writing.await;
        }
        self.shared.stop.cancel();
    }

    /// Serves the metrics, and whether requests should come here, without a key and without TLS, until `stop` is cancelled.
    pub async fn serve_operations(&self, listener: TcpListener, stop: CancellationToken) {
        // What is asked here is not counted.
        let (router, metrics) = (operations::alone(&self.shared), Arc::new(Metrics::default()));
        let service = Service { router, tls: None, metrics, patience: self.shared.options.patience };
        listen::serve(listener, service, Duration::ZERO, &stop).await;
    }

    /// Reads the files of the certificate again; connections that there are stay as they are.
    pub async fn renew_certificate(&self) {
        if let Some(tls) = &self.shared.tls {
            refresh(tls).await;
        }
    }
}

/// Reads the certificate anew when it has changed.
async fn renew(tls: Arc<Tls>) {
    loop {
        sleep(RENEW).await;
        refresh(&tls).await;
    }
}

/// Has the certificate made by an authority, where nobody else does it.
async fn order(tls: Arc<Tls>) {
    if let Some(acme) = tls.acme() {
        loop {
            acme.renewed().await;
            refresh(&tls).await;
        }
    }
}

async fn refresh(tls: &Arc<Tls>) {
    let (tls, is_ordered) = (Arc::clone(tls), tls.acme().is_some());
    match tokio::task::spawn_blocking(move || tls.refresh()).await {
        Ok(Ok(true)) => tracing::info!("there is a new certificate"),
        Ok(Ok(false)) => {}
        // Before the first one of an authority, there is no file.
        Ok(Err(TlsError::Read { source, .. })) if is_ordered && source.kind() == io::ErrorKind::NotFound => {}
        Ok(Err(error)) => tracing::warn!(%error, "the certificate stays the old one"),
        Err(error) => tracing::warn!(%error, "the certificate could not be looked at"),
    }
}

/// Removes again and again what nobody wants any more: what has ended, and what is over its time.
async fn collect(shared: Arc<Shared>) {
    loop {
        sleep(COLLECT).await;
        match shared.provider.collect_garbage(&GcOptions::default()).await {
            Ok(report) if report.removed.is_empty() && report.failed.is_empty() => {}
            Ok(report) => {
                tracing::info!(removed = report.removed.len(), failed = report.failed.len(), "garbage was collected");
            }
            Err(error) => tracing::warn!(%error, "garbage is left"),
        }
    }
}

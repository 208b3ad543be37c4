//! `gloveport gateway`: serves, with what the command line says, and where it says nothing, the configuration file.

use std::{
    io::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use gloveport_allow_list::Network;
use gloveport_docker_engine::{Endpoint, Engine};
use gloveport_gateway::{Gateway, GatewayOptions, ImageService, Size, TlsFiles, TlsSource, WarmPool};
use gloveport_gateway_store::{Limits, Store};
use gloveport_image::ImageName;
use gloveport_origins::Origins;
use gloveport_protocol::Secret;
use gloveport_provider::{Capabilities, Confinement, Level, ProviderContext};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    acme::AcmeArgs,
    database::{self, DatabaseArgs},
    e2b::E2bArgs,
    sessions::{self, SessionArgs},
    settings::{self, Settings},
};
use crate::{
    key_file, providers,
    session::values::{duration, level},
    signals::{self, Kind, Signal},
};

/// The runtime, unless another one is asked for.
pub(super) const RUNTIME: &str = "local";
/// Where it listens, unless it is told.
pub(super) const PORT: u16 = 8080;
/// What the names of images begin with that are built, unless it is told.
const IMAGE_PREFIX: &str = "gloveport";
/// Images that are built at the same time.
const BUILDS_AT_ONCE: usize = 2;
/// The tenant of the key file.
const DEFAULT: &str = "default";

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The runtime of the sandboxes: local, docker, kubernetes, e2b, daytona, runloop, modal, exec:/path/to/program. [default: local]
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    /// Address to listen on. [default: 127.0.0.1]
    #[arg(long)]
    host: Option<IpAddr>,
    /// Port to listen on; 0 lets the system choose. [default: 8080]
    #[arg(long, short)]
    port: Option<u16>,
    /// File with the key that clients must send as X-API-Key, of at least 16 characters. Required without a database; with
    /// one it is a key of the tenant `default`.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// URL under which clients reach the gateway, if it is not the one that they ask: behind another proxy, for example.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Domain whose sub-domains are sandboxes, as {id}.example.org; all of its names must lead here.
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// File with the certificate for TLS, and those of who signed it; it is read again when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// File with the key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    #[command(flatten)]
    acme: AcmeArgs,
    /// Proxy that is believed when it says for whom it asks, such as 10.0.0.0/8. May be given several times.
    #[arg(long, value_name = "CIDR")]
    trusted_proxy: Vec<Network>,
    /// Let web pages of this origin, such as https://app.example.com, use the native API and the sandboxes from a browser; may be
    /// given several times, and `*` is all pages. A page needs the keys as well.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    allowed_origins: Vec<String>,
    /// Build the images that clients send, with the engine of the runtime docker.
    #[arg(long)]
    build_images: bool,
    /// What the names of these images begin with; the tenant follows. [default: gloveport]
    #[arg(long, value_name = "PREFIX", requires = "build_images")]
    image_prefix: Option<String>,
    /// Make paused sandboxes go on when somebody asks for them.
    #[arg(long)]
    wake: bool,
    /// How far each sandbox of the runtime `local` is kept apart from this machine and from the others: `none`, `files`,
    /// `container` or `gvisor`. [default: none]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    isolation: Option<Level>,
    /// Keep this many sandboxes of the runtime's default image started ahead; the configuration file can say more.
    #[arg(long, value_name = "N")]
    warm: Option<usize>,
    /// Serve metrics on this address, without a key, instead of with the key on the other one alone.
    #[arg(long, value_name = "ADDRESS")]
    metrics_address: Option<SocketAddr>,
    /// Time for requests to finish when the gateway is asked to end; a second signal ends it at once. [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    drain: Option<Duration>,
    /// Delete sandboxes this long after they were started, such as 12h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,
    /// Stop sandboxes that nobody has used for this long, such as 30m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle_stop: Option<Duration>,
    #[command(flatten)]
    e2b: E2bArgs,
    #[command(flatten)]
    sessions: SessionArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

impl ServeArgs {
    /// The same, with what the file says where the command line says nothing.
    fn with(self, settings: &Settings) -> Self {
        let or = |given: Option<PathBuf>, set: &Option<PathBuf>| given.or_else(|| set.clone());
        let trusted_proxy =
            if self.trusted_proxy.is_empty() { settings.trusted_proxies.clone() } else { self.trusted_proxy };
        let allowed_origins =
            if self.allowed_origins.is_empty() { settings.allow_origins.clone() } else { self.allowed_origins };
        Self {
            runtime: self.runtime.or_else(|| settings.runtime.clone()),
            host: self.host.or(settings.host),
            port: self.port.or(settings.port),
            key_file: or(self.key_file, &settings.key_file),
            public_url: self.public_url.or_else(|| settings.public_url.clone()),
            domain: self.domain.or_else(|| settings.domain.clone()),
            tls_cert: or(self.tls_cert, &settings.tls_cert),
            tls_key: or(self.tls_key, &settings.tls_key),
            acme: self.acme.with(settings),
            trusted_proxy,
            allowed_origins,
            build_images: self.build_images || settings.build_images,
            image_prefix: self.image_prefix.or_else(|| settings.image_prefix.clone()),
            wake: self.wake || settings.wake,
            isolation: self.isolation.or(settings.isolation),
            warm: self.warm,
            metrics_address: self.metrics_address.or(settings.metrics_address),
            drain: self.drain.or(settings.drain),
            ttl: self.ttl.or(settings.ttl),
            idle_stop: self.idle_stop.or(settings.idle_stop),
            e2b: self.e2b,
            sessions: self.sessions.with(settings),
            database: self.database,
        }
    }

    fn runtime(&self) -> &str {
        self.runtime.as_deref().unwrap_or(RUNTIME)
    }

    /// The pools of sandboxes that are started ahead.
    fn pools(&self, settings: &Settings) -> Vec<WarmPool> {
        let default = self.warm.filter(|count| *count > 0).map(WarmPool::fixed);
        default.into_iter().chain(settings.warm.iter().cloned()).collect()
    }

    /// The options, if the runtime can do what they ask for.
    fn options(
        &self,
        key: Option<Secret>,
        settings: &Settings,
        can: &Capabilities,
        context: &ProviderContext,
    ) -> anyhow::Result<GatewayOptions> {
        for (flag, given, has) in [
            ("--ttl", self.ttl.is_some(), can.time_to_live),
            ("--idle-stop", self.idle_stop.is_some(), can.idle_stop),
            ("--wake", self.wake, can.pause),
        ] {
            anyhow::ensure!(!given || has, "{flag} has no effect with the runtime {}", self.runtime());
        }
        let pools = self.pools(settings);
        let isolation = self.isolation.filter(|level| *level != Level::None);
        if let Some(level) = isolation {
            anyhow::ensure!(can.confine, "--isolation has no effect with the runtime {}", self.runtime());
            anyhow::ensure!(
                pools.is_empty(),
                "sandboxes that wait (--warm, [[warm]]) cannot be kept apart later: leave out one of them and --isolation {}",
                level.name()
            );
        }
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let files = files.map(|(certificate, key)| TlsSource::Files(TlsFiles { certificate, key }));
        let acme = self.acme.options(self.domain.as_deref(), self.public_url.as_deref(), &context.environment)?;
        let (usual, size) = (GatewayOptions::new(Secret::new("")), Size::default());
        let size = Size {
            cpu_millis: settings.sandbox_cpus.unwrap_or(size.cpu_millis),
            memory_bytes: settings.sandbox_memory.unwrap_or(size.memory_bytes),
        };
        let e2b = settings.e2b.options(&self.e2b, size)?;
        anyhow::ensure!(
            e2b.is_none() || can.labels,
            "--e2b needs a runtime with labels, which {} has none of: what clients say of a sandbox is kept there",
            self.runtime()
        );
        Ok(GatewayOptions {
            key,
            size,
            e2b,
            public_url: self.public_url.clone(),
            domain: self.domain.clone(),
            tls: files.or(acme.map(TlsSource::Acme)),
            trusted_proxies: self.trusted_proxy.clone(),
            origins: Origins::new(&self.allowed_origins)?,
            wake: self.wake,
            warm: pools,
            confinement: isolation.map(|level| Confinement { level, ..Confinement::default() }),
            time_to_live: self.ttl,
            idle_stop: self.idle_stop,
            drain: self.drain.unwrap_or(usual.drain),
            ..usual
        })
    }
}

/// Who builds images, if anybody is to, and the directory for build folders, which is gone with this.
fn images(arguments: &ServeArgs, context: &ProviderContext) -> anyhow::Result<Option<(ImageService, TempDir)>> {
    if !arguments.build_images {
        return Ok(None);
    }
    anyhow::ensure!(
        arguments.runtime() == "docker",
        "--build-images has no effect with the runtime {}: only an engine of Docker builds images",
        arguments.runtime()
    );
    let prefix = arguments.image_prefix.as_deref().unwrap_or(IMAGE_PREFIX).trim_end_matches('/').to_owned();
    format!("{prefix}/tenant/image").parse::<ImageName>().with_context(|| format!("--image-prefix {prefix}"))?;
    let endpoint = Endpoint::find(&context.environment)?;
    let folders = tempfile::Builder::new().prefix("gloveport-builds-").tempdir();
    let folders = folders.context("cannot make a directory for build folders")?;
    let (engine, directory) = (Arc::new(Engine::new(endpoint)), folders.path().to_owned());
    Ok(Some((ImageService { engine, prefix, at_once: BUILDS_AT_ONCE, directory }, folders)))
}

async fn listen(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

pub(super) async fn serve(arguments: ServeArgs) -> anyhow::Result<ExitCode> {
    let settings = arguments.database.settings()?;
    let location = arguments.database.location(&settings)?;
    let arguments = arguments.with(&settings);
    anyhow::ensure!(
        arguments.key_file.is_some() || location.is_some(),
        "a gateway needs a key; write one with `openssl rand -hex 32 > FILE`, and give --key-file FILE, or give it a \
         --database with keys of tenants"
    );
    anyhow::ensure!(
        settings.tenants.is_empty() || location.is_some(),
        "the tenants in the configuration file need a database; name one there, or give --database FILE"
    );
    anyhow::ensure!(
        arguments.tls_cert.is_some() == arguments.tls_key.is_some(),
        "TLS needs both the certificate and its key: --tls-cert and --tls-key, or `tls_cert` and `tls_key` in the file"
    );
    anyhow::ensure!(
        arguments.tls_cert.is_none() || !arguments.acme.is_asked_for(),
        "a certificate comes from files or by ACME, not both: leave out --tls-cert or --acme"
    );
    let key = arguments.key_file.as_ref().map(|file| key_file::given(file).map(Secret::new)).transpose()?;
    let context = providers::context()?;
    let provider = providers::registry().make(arguments.runtime(), &context)?;
    provider.learn().await?;
    let (images, _folders) = images(&arguments, &context)?.unzip();
    let options = GatewayOptions { images, ..arguments.options(key, &settings, &provider.capabilities(), &context)? };
    let database = match &location {
        Some(location) => Some(Store::open(location).await.context("the gateway does not start without its database")?),
        None => None,
    };
    if let Some(store) = &database {
        if options.key.is_some() {
            store.add_tenant(DEFAULT, &Limits::default()).await?;
        }
        take_over(store, &settings).await?;
    }
    let sessions = arguments.sessions.server()?;
    let gateway = Gateway::new(Arc::clone(&provider), GatewayOptions { database: database.clone(), ..options })?;
    let gateway = sessions::beside(gateway, sessions.as_ref());
    let has_tls = arguments.tls_cert.is_some() || arguments.acme.is_asked_for();
    let tenants = database.clone().zip(arguments.database.config.clone());
    // What can be read again is read at this signal, as servers do.
    let rereads = has_tls || tenants.is_some();
    let ends: &[Kind] = if rereads { &[Kind::Terminate, Kind::Interrupt] } else { &signals::ENDS };
    let [stop, at_once] = signals::stop_in_two_steps(ends)?;
    let rereading = rereads.then(|| reread(gateway.clone(), tenants)).transpose()?;
    let host = arguments.host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let (listener, address) = listen(SocketAddr::new(host, arguments.port.unwrap_or(PORT))).await?;
    let operations = match arguments.metrics_address {
        Some(asked) => Some(listen(asked).await?),
        None => None,
    };
    tell(address, has_tls, operations.as_ref().map(|(_, address)| *address));
    // It tells that the gateway ends until it has ended.
    let ended = CancellationToken::new();
    let telling = operations.map(|(listener, _)| {
        let (gateway, ended) = (gateway.clone(), ended.clone());
        AbortOnDropHandle::new(tokio::spawn(async move { gateway.serve_operations(listener, ended).await }))
    });
    let caring = sessions::care(sessions.as_ref(), &stop);
    tokio::select! {
        () = gateway.serve(listener, stop) => {}
        () = at_once.cancelled() => tracing::warn!("ended at once"),
    }
    if let Some(sessions) = &sessions {
        tokio::select! {
            () = sessions.close() => {}
            () = at_once.cancelled() => tracing::warn!("sessions are put in order by whoever takes them up"),
        }
    }
    ended.cancel();
    drop((telling, rereading, caring));
    if let Some(store) = database {
        store.close().await;
    }
    provider.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Says where it listens, and who else may hear.
fn tell(address: SocketAddr, has_tls: bool, operations: Option<SocketAddr>) {
    let scheme = if has_tls { "https" } else { "http" };
    {
        // Scripts read the first line, and may close the pipe after that.
        let mut output = std::io::stdout().lock();
        let mut told = writeln!(output, "listening on {scheme}://{address}");
        if let Some(address) = operations {
            told = told.and_then(|()| writeln!(output, "metrics on http://{address}/metrics"));
        }
        let _told = told.and_then(|()| output.flush());
    }
    if !address.ip().is_loopback() && !has_tls {
        tracing::warn!(
            "{address} is without TLS: give --tls-cert and --tls-key, or --acme, or put a proxy with a certificate before it"
        );
    }
    if let Some(address) = operations.filter(|address| !address.ip().is_loopback()) {
        tracing::warn!("everybody who reaches {address} can read the metrics");
    }
}

/// At each signal that a terminal is gone, reads the certificate again, and the tenants of the configuration file. A file that
/// is wrong changes nothing.
fn reread(gateway: Gateway, tenants: Option<(Store, PathBuf)>) -> anyhow::Result<AbortOnDropHandle<()>> {
    let mut signal = Signal::listen(Kind::HangUp)?;
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            signal.recv().await;
            gateway.renew_certificate().await;
            let Some((store, file)) = &tenants else { continue };
            let taken = async { take_over(store, &settings::read(file)?).await };
            match taken.await {
                Ok(count) => tracing::info!(count, "the tenants of the configuration file were read anew"),
                Err(error) => tracing::error!("the configuration file was not read anew: {error:#}"),
            }
        }
    })))
}

/// Makes and changes tenants as the configuration file says; others stay as they are. Gives how many were changed.
async fn take_over(store: &Store, settings: &Settings) -> anyhow::Result<usize> {
    let mut changed = 0;
    for (name, tenant) in &settings.tenants {
        let limits = tenant.limits();
        let is_new = store.add_tenant(name, &limits).await?;
        let known = store.tenant(name).await?;
        if known.limits != limits || known.disabled != tenant.disabled {
            store.set_tenant(name, &limits, tenant.disabled).await?;
        } else if !is_new {
            continue;
        }
        let detail = "as the configuration file says".to_owned();
        let action = if is_new { "tenant create" } else { "tenant set" };
        database::note(store, action, name, name, Some(detail)).await?;
        changed += 1;
    }
    Ok(changed)
}

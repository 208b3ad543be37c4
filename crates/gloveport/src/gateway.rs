//! `gloveport gateway`: any runtime as the Remote Runtime API of OpenHands, and the tenants of one with a database.

mod check;
mod database;
mod history;
mod keys;
mod settings;
mod tenants;

use std::{
    io::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use gloveport_gateway::{Gateway, GatewayOptions, Size};
use gloveport_gateway_store::{Limits, Store};
use gloveport_protocol::Secret;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use self::{
    database::DatabaseArgs,
    history::{AuditArgs, SessionsArgs},
    keys::KeyCommand,
    settings::Settings,
    tenants::TenantCommand,
};

use crate::{
    key_file,
    output::{print, print_json},
    providers,
    session::values::duration,
    signals::{self, Kind, Signal},
};

/// Exit codes, and how it is used, as `--help` shows them.
pub(crate) const HELP: &str = "Example:\n  openssl rand -hex 32 > key && chmod 600 key\n  gloveport gateway --runtime local \
    --key-file key\n  gloveport gateway env --key-file key      # what an OpenHands backend needs to be told\n  \
    gloveport gateway --config gateway.toml   # tenants with keys of their own: docs/gateway.md\n\nExit codes: 0 \
    done, 1 failed, 2 wrong command line.";
/// The runtime, unless another one is asked for.
const RUNTIME: &str = "local";
/// Where it listens, unless it is told.
const PORT: u16 = 8080;
/// The tenant of the key file.
const DEFAULT: &str = "default";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: Option<GatewayCommand>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum GatewayCommand {
    /// Print what an OpenHands backend needs to be told to use a gateway: variables, and lines of config.toml.
    Env(EnvArgs),
    /// Keys of tenants.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Tenants, and what each may use.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Show the audit log, the newest lines first.
    #[command(after_help = history::AUDIT_HELP)]
    Audit(AuditArgs),
    /// Show sessions and what became of them, the newest first.
    #[command(after_help = history::SESSIONS_HELP)]
    Sessions(SessionsArgs),
    /// Check the configuration, the database and the runtime of a gateway, and say what to do about what is wrong.
    #[command(after_help = check::HELP)]
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// The runtime of the sandboxes: local, docker, kubernetes, exec:/path/to/program. [default: local]
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
    /// Delete sandboxes this long after they were started, such as 12h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,
    /// Stop sandboxes that nobody has used for this long, such as 30m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle_stop: Option<Duration>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// The runtime of the sandboxes. [default: local]
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
struct EnvArgs {
    /// URL of the gateway.
    #[arg(long, value_name = "URL", default_value_t = format!("http://127.0.0.1:{PORT}"))]
    url: String,
    /// File with its key. The key itself is not printed, but how the shell reads it.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn gateway(arguments: GatewayArgs) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Some(GatewayCommand::Env(arguments)) => env(&arguments),
        Some(GatewayCommand::Key(command)) => keys::key(command).await,
        Some(GatewayCommand::Tenant(command)) => tenants::tenant(command).await,
        Some(GatewayCommand::Audit(arguments)) => history::audit(arguments).await,
        Some(GatewayCommand::Sessions(arguments)) => history::sessions(arguments).await,
        Some(GatewayCommand::Check(CheckArgs { runtime, json, database })) => {
            check::check(runtime.as_deref(), json, &database).await
        }
        None => serve(arguments.serve).await,
    }
}

async fn serve(arguments: ServeArgs) -> anyhow::Result<ExitCode> {
    let settings = arguments.database.settings()?;
    let location = arguments.database.location(&settings)?;
    let file = arguments.key_file.as_ref().or(settings.key_file.as_ref());
    anyhow::ensure!(
        file.is_some() || location.is_some(),
        "a gateway needs a key; write one with `openssl rand -hex 32 > FILE`, and give --key-file FILE, or give it a \
         --database with keys of tenants"
    );
    anyhow::ensure!(
        settings.tenants.is_empty() || location.is_some(),
        "the tenants in the configuration file need a database; name one there, or give --database FILE"
    );
    let key = file.map(|file| key_file::given(file).map(Secret::new)).transpose()?;
    let context = providers::context()?;
    let runtime = arguments.runtime.as_deref().or(settings.runtime.as_deref()).unwrap_or(RUNTIME);
    let provider = providers::registry().make(runtime, &context)?;
    let can = provider.capabilities();
    let time_to_live = arguments.ttl.or(settings.ttl);
    let idle_stop = arguments.idle_stop.or(settings.idle_stop);
    for (flag, given, has) in
        [("--ttl", time_to_live.is_some(), can.time_to_live), ("--idle-stop", idle_stop.is_some(), can.idle_stop)]
    {
        anyhow::ensure!(!given || has, "{flag} has no effect with the runtime {runtime}");
    }
    let database = match &location {
        Some(location) => Some(Store::open(location).await.context("the gateway does not start without its database")?),
        None => None,
    };
    if let Some(store) = &database {
        if key.is_some() {
            store.add_tenant(DEFAULT, &Limits::default()).await?;
        }
        take_over(store, &settings).await?;
    }
    let usual = Size::default();
    let options = GatewayOptions {
        key,
        size: Size {
            cpu_millis: settings.sandbox_cpus.unwrap_or(usual.cpu_millis),
            memory_bytes: settings.sandbox_memory.unwrap_or(usual.memory_bytes),
        },
        public_url: arguments.public_url.or(settings.public_url),
        time_to_live,
        idle_stop,
        database: database.clone(),
        ..GatewayOptions::new(Secret::new(""))
    };
    let gateway = Gateway::new(std::sync::Arc::clone(&provider), options)?;
    let reloading = match (&database, arguments.database.config) {
        (Some(store), Some(file)) => {
            let signal = Signal::listen(Kind::HangUp)?;
            Some(AbortOnDropHandle::new(tokio::spawn(reload(signal, store.clone(), file))))
        }
        _ => None,
    };
    let stop = match &reloading {
        Some(_) => signals::stop_by(&[Kind::Terminate, Kind::Interrupt])?,
        None => signals::stop()?,
    };
    let host = arguments.host.or(settings.host).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let address = SocketAddr::new(host, arguments.port.or(settings.port).unwrap_or(PORT));
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    {
        // Scripts read the first line, and may close the pipe after that.
        let mut output = std::io::stdout().lock();
        let _told = writeln!(output, "listening on http://{address}").and_then(|()| output.flush());
    }
    if !address.ip().is_loopback() {
        tracing::warn!("{address} is without TLS: put a proxy with a certificate before it, and give --public-url");
    }
    gateway.serve(listener, stop).await;
    drop(reloading);
    if let Some(store) = database {
        store.close().await;
    }
    provider.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Reads the tenants of the configuration file anew at each SIGHUP. A file that is wrong changes nothing.
async fn reload(mut signal: Signal, store: Store, file: PathBuf) {
    loop {
        signal.recv().await;
        let taken = async { take_over(&store, &settings::read(&file)?).await };
        match taken.await {
            Ok(count) => tracing::info!(count, "the tenants of the configuration file were read anew"),
            Err(error) => tracing::error!("the configuration file was not read anew: {error:#}"),
        }
    }
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

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn env(arguments: &EnvArgs) -> anyhow::Result<ExitCode> {
    // That it can be read is found out here, and not by the backend.
    key_file::given(&arguments.key_file)?;
    let file = std::path::absolute(&arguments.key_file)?;
    let url = arguments.url.trim_end_matches('/');
    if arguments.json {
        let told = serde_json::json!({
            "runtime": "remote", "remote_runtime_api_url": url, "api_key_file": file.display().to_string(),
        });
        print_json(&told)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (url, file) = (url, quoted(&file.display().to_string()));
    let toml = serde_json::Value::from(url);
    print(&format!(
        "export RUNTIME=remote\nexport SANDBOX_REMOTE_RUNTIME_API_URL={}\nexport SANDBOX_API_KEY=\"$(cat {file})\"\n\
         # A gateway builds no images: name one, which the runtime local has no use for.\n\
         export SANDBOX_RUNTIME_CONTAINER_IMAGE=\"${{SANDBOX_RUNTIME_CONTAINER_IMAGE:-debian:13}}\"\n\n\
         # or in config.toml:\n#   [core]\n#   runtime = \"remote\"\n#   [sandbox]\n#   remote_runtime_api_url = {toml}\n\
         #   api_key = \"the contents of the file\"\n#   runtime_container_image = \"debian:13\"\n",
        quoted(url),
    ))?;
    Ok(ExitCode::SUCCESS)
}

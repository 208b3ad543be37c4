//! `gloveport gateway`: any runtime as the Remote Runtime API of OpenHands.

use std::{
    io::Write as _,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use gloveport_allow_list::Network;
use gloveport_gateway::{Gateway, GatewayOptions, TlsFiles};
use gloveport_protocol::Secret;
use gloveport_provider::Capabilities;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    key_file,
    output::{print, print_json},
    providers,
    session::values::duration,
    signals::{self, Kind, Signal},
};

/// Exit codes, and how it is used, as `--help` shows them.
pub(crate) const HELP: &str = "Example:\n  openssl rand -hex 32 > key && chmod 600 key\n  gloveport gateway --runtime local \
    --key-file key\n  gloveport gateway env --key-file key      # what an OpenHands backend needs to be told\n\nExit codes: 0 \
    done, 1 failed, 2 wrong command line.";
/// The runtime, unless another one is asked for.
const RUNTIME: &str = "local";
/// Where it listens, unless it is told.
const PORT: u16 = 8080;

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
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// The runtime of the sandboxes: local, docker, kubernetes, exec:/path/to/program.
    #[arg(long, value_name = "NAME", default_value = RUNTIME)]
    runtime: String,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port to listen on; 0 lets the system choose.
    #[arg(long, short, default_value_t = PORT)]
    port: u16,
    /// File with the key that clients must send as X-API-Key, of at least 16 characters. Required.
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
    /// Proxy that is believed when it says for whom it asks, such as 10.0.0.0/8. May be given several times.
    #[arg(long, value_name = "CIDR")]
    trusted_proxy: Vec<Network>,
    /// Make paused sandboxes go on when somebody asks for them.
    #[arg(long)]
    wake: bool,
    /// Serve metrics on this address, without a key, instead of with the key on the other one alone.
    #[arg(long, value_name = "ADDRESS")]
    metrics_address: Option<SocketAddr>,
    /// Time for requests to finish when the gateway is asked to end; a second signal ends it at once.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    drain: Duration,
    /// Delete sandboxes this long after they were started, such as 12h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,
    /// Stop sandboxes that nobody has used for this long, such as 30m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    idle_stop: Option<Duration>,
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
        None => serve(arguments.serve).await,
    }
}

/// The options, if the runtime can do what they ask for.
fn options(arguments: ServeArgs, key: Secret, can: &Capabilities) -> anyhow::Result<GatewayOptions> {
    for (flag, given, has) in [
        ("--ttl", arguments.ttl.is_some(), can.time_to_live),
        ("--idle-stop", arguments.idle_stop.is_some(), can.idle_stop),
        ("--wake", arguments.wake, can.pause),
    ] {
        anyhow::ensure!(!given || has, "{flag} has no effect with the runtime {}", arguments.runtime);
    }
    let tls = arguments.tls_cert.zip(arguments.tls_key).map(|(certificate, key)| TlsFiles { certificate, key });
    Ok(GatewayOptions {
        public_url: arguments.public_url,
        domain: arguments.domain,
        tls,
        trusted_proxies: arguments.trusted_proxy,
        wake: arguments.wake,
        time_to_live: arguments.ttl,
        idle_stop: arguments.idle_stop,
        drain: arguments.drain,
        ..GatewayOptions::new(key)
    })
}

async fn listen(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

async fn serve(arguments: ServeArgs) -> anyhow::Result<ExitCode> {
    let file = arguments.key_file.as_ref();
    let file =
        file.context("a gateway needs a key; write one with `openssl rand -hex 32 > FILE`, and give --key-file FILE")?;
    let key = Secret::new(key_file::given(file)?);
    let context = providers::context()?;
    let provider = providers::registry().make(&arguments.runtime, &context)?;
    let address = SocketAddr::new(arguments.host, arguments.port);
    let (metrics_address, has_tls) = (arguments.metrics_address, arguments.tls_cert.is_some());
    let options = options(arguments, key, &provider.capabilities())?;
    let gateway = Gateway::new(std::sync::Arc::clone(&provider), options)?;
    // With a certificate, the terminal that goes away is no reason to end.
    let ends: &[Kind] = if has_tls { &[Kind::Terminate, Kind::Interrupt] } else { &signals::ENDS };
    let [stop, at_once] = signals::stop_in_two_steps(ends)?;
    let renewing = has_tls.then(|| renew(gateway.clone())).transpose()?;
    let (listener, address) = listen(address).await?;
    let operations = match metrics_address {
        Some(asked) => Some(listen(asked).await?),
        None => None,
    };
    let scheme = if has_tls { "https" } else { "http" };
    {
        // Scripts read the first line, and may close the pipe after that.
        let mut output = std::io::stdout().lock();
        let mut told = writeln!(output, "listening on {scheme}://{address}");
        if let Some((_, address)) = &operations {
            told = told.and_then(|()| writeln!(output, "metrics on http://{address}/metrics"));
        }
        let _told = told.and_then(|()| output.flush());
    }
    if !address.ip().is_loopback() && !has_tls {
        tracing::warn!(
            "{address} is without TLS: give --tls-cert and --tls-key, or put a proxy with a certificate before it"
        );
    }
    if let Some((_, address)) = operations.as_ref().filter(|(_, address)| !address.ip().is_loopback()) {
        tracing::warn!("everybody who reaches {address} can read the metrics");
    }
    // It tells that the gateway ends until it has ended.
    let ended = CancellationToken::new();
    let telling = operations.map(|(listener, _)| {
        let (gateway, ended) = (gateway.clone(), ended.clone());
        AbortOnDropHandle::new(tokio::spawn(async move { gateway.serve_operations(listener, ended).await }))
    });
    tokio::select! {
        () = gateway.serve(listener, stop) => {}
        () = at_once.cancelled() => tracing::warn!("ended at once"),
    }
    ended.cancel();
    drop((telling, renewing));
    provider.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Reads the certificate again at each signal that a terminal is gone, as servers do.
fn renew(gateway: Gateway) -> anyhow::Result<AbortOnDropHandle<()>> {
    let mut signal = Signal::listen(Kind::HangUp)?;
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            signal.recv().await;
            gateway.renew_certificate().await;
        }
    })))
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

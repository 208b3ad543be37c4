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
use gloveport_gateway::{Gateway, GatewayOptions};
use gloveport_protocol::Secret;
use tokio::net::TcpListener;

use crate::{
    key_file,
    output::{print, print_json},
    providers,
    session::values::duration,
    signals,
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

async fn serve(arguments: ServeArgs) -> anyhow::Result<ExitCode> {
    let file = arguments.key_file.as_ref();
    let file =
        file.context("a gateway needs a key; write one with `openssl rand -hex 32 > FILE`, and give --key-file FILE")?;
    let key = Secret::new(key_file::given(file)?);
    let context = providers::context()?;
    let provider = providers::registry().make(&arguments.runtime, &context)?;
    let can = provider.capabilities();
    for (flag, given, has) in [
        ("--ttl", arguments.ttl.is_some(), can.time_to_live),
        ("--idle-stop", arguments.idle_stop.is_some(), can.idle_stop),
    ] {
        anyhow::ensure!(!given || has, "{flag} has no effect with the runtime {}", arguments.runtime);
    }
    let options = GatewayOptions {
        public_url: arguments.public_url,
        time_to_live: arguments.ttl,
        idle_stop: arguments.idle_stop,
        ..GatewayOptions::new(key)
    };
    let gateway = Gateway::new(std::sync::Arc::clone(&provider), options)?;
    let stop = signals::stop()?;
    let address = SocketAddr::new(arguments.host, arguments.port);
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
    provider.close().await;
    Ok(ExitCode::SUCCESS)
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

//! `gloveport serve`: a sandbox on this machine.

use std::{fs, net::SocketAddr, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use gloveport_executor::Executor;
use gloveport_server::{DrainEnd, ServerOptions, SessionKey};
use tokio::net::TcpListener;

use crate::{Owner, cli::ServeArgs, local, plugins};

/// Bytes of one GiB.
pub(crate) const GIB: f64 = 1_073_741_824.0;

pub(crate) async fn serve(arguments: ServeArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let key = session_key(arguments.key_file.as_ref())?;
    if key.is_none() && !arguments.host.is_loopback() && !arguments.insecure {
        anyhow::bail!(
            "{} can be reached from other machines, and no key is set: everybody there could run commands; set \
             GLOVEPORT_KEY or --key-file, or give --insecure if the network is trusted",
            arguments.host
        );
    }
    let plugins = plugins::offered(&arguments.plugins, arguments.no_plugins)?;
    fs::create_dir_all(&arguments.workspace)
        .with_context(|| format!("cannot make the workspace {}", arguments.workspace.display()))?;
    let workspace = local::existing_directory(&arguments.workspace)?;
    let stop = local::server_stop(owner)?;

    // The port is taken first, so that one that is in use is told before anything is started.
    let address = SocketAddr::new(arguments.host, arguments.port);
    let listener = bind(address).await?;
    let mut options = local::executor_options(owner, workspace)?;
    options.environment.retain(|(name, _)| name != "GLOVEPORT_KEY");
    options.memory_limit = arguments.max_memory_gb.map(bytes);
    options.plugins = plugins;
    options.startup_commands.push(local::NO_PAGER.to_owned());
    let executor = Executor::start(options).await?;
    announce(&listener.local_addr()?, key.is_some());
    local::settle();

    let server_options = ServerOptions { session_key: key, ..ServerOptions::default() };
    let end = gloveport_server::serve(listener, executor.clone(), server_options, stop, local::DRAIN).await;
    executor.close().await;
    if let DrainEnd::CutOff { open } = end? {
        tracing::warn!(open, "requests were cut off");
    }
    owner.check()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; is something else using the port? --port 0 takes a free one")
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the command line admits only positive numbers below 1e9"
)]
fn bytes(gib: f64) -> u64 {
    (gib * GIB) as u64
}

/// The key from the file or the environment; never from the command line, where other users see it.
fn session_key(file: Option<&PathBuf>) -> anyhow::Result<Option<SessionKey>> {
    if let Some(path) = file {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read the key file {}", path.display()))?;
        anyhow::ensure!(!text.trim().is_empty(), "the key file {} is empty", path.display());
        return Ok(Some(SessionKey::new(text.trim())));
    }
    let variable = |name| std::env::var(name).ok().filter(|key| !key.is_empty());
    Ok(variable("GLOVEPORT_KEY").or_else(|| variable("SESSION_API_KEY")).map(SessionKey::new))
}

#[expect(clippy::print_stdout, reason = "scripts read the address from standard output")]
fn announce(address: &SocketAddr, with_key: bool) {
    println!("listening on http://{address}");
    if !with_key {
        tracing::warn!(
            "no key is set, so every user of this machine can run commands; set GLOVEPORT_KEY to change that"
        );
    }
}

//! `gloveport serve`: a sandbox on this machine.

use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context as _;
use gloveport_executor::Executor;
use gloveport_sandbox::{
    Owner, plugins,
    tools::{self, bind},
};
use gloveport_server::{DrainEnd, Names, Origins, ServerOptions, SessionKey};

use super::kept_keys;
use crate::{cli::ServeArgs, directory, key_file};

/// Bytes of one GiB.
const GIB: f64 = 1_073_741_824.0;

pub(crate) async fn serve(arguments: ServeArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let given = given_key(arguments.key_file.as_ref())?;
    anyhow::ensure!(
        !arguments.no_key || given.is_none(),
        "--no-key contradicts the key in GLOVEPORT_KEY or SESSION_API_KEY; leave one of them away"
    );
    let keyless = given.is_none() && (arguments.no_key || arguments.insecure);
    if keyless && !arguments.host.is_loopback() && !arguments.insecure {
        anyhow::bail!(
            "{} can be reached from other machines, and without a key everyone there could run commands; leave --no-key \
             away, or give --insecure if the network is trusted",
            arguments.host
        );
    }
    let names = Names::new(&arguments.allowed_hosts)?;
    let origins = Origins::of_text(&arguments.allowed_origins.join(","))?;
    anyhow::ensure!(
        !keyless || origins.is_empty(),
        "--allow-origin needs a key, since without one every such page could run commands here; leave --no-key and --insecure \
         away, and give the page the key"
    );
    let plugins = plugins::offered(&arguments.plugins, arguments.no_plugins)?;
    fs::create_dir_all(&arguments.workspace)
        .with_context(|| format!("cannot make the workspace {}", arguments.workspace.display()))?;
    let workspace = directory::existing(&arguments.workspace)?;
    let stop = tools::server_stop(owner)?;

    // The port is taken first, so that one that is in use is told before anything is started.
    let address = SocketAddr::new(arguments.host, arguments.port);
    let listener = bind(address).await?;
    let mut options = tools::executor_options(owner, workspace)?;
    tools::without_keys(&mut options);
    tools::without_pagers(&mut options);
    options.memory_limit = arguments.memory.or_else(|| arguments.max_memory_gb.map(bytes));
    options.when_waiting = tools::when_waiting(arguments.answer_when_waiting);
    options.plugins = plugins;
    options.startup_commands.push(tools::NO_PAGER.to_owned());
    let executor = Executor::start(options).await?;
    let address = listener.local_addr()?;
    let made = if given.is_none() && !keyless { Some(kept_keys::random()?) } else { None };
    // Whoever reads that the server listens finds the key.
    let kept = made.as_deref().map(|key| kept_keys::keep(address, key)).transpose();
    announce(address, made.as_deref(), keyless);
    let kept = kept.unwrap_or_else(|error| {
        tracing::warn!("the other commands do not find the key by themselves: {error:#}");
        None
    });

    let session_key = given.or(made).map(SessionKey::new);
    let server_options = ServerOptions { session_key, names, origins, ..ServerOptions::default() };
    let end = gloveport_server::serve(listener, executor.clone(), server_options, stop, tools::DRAIN).await;
    drop(kept);
    executor.close().await;
    if let DrainEnd::CutOff { open } = end? {
        tracing::warn!(open, "requests were cut off");
    }
    owner.check()?;
    Ok(ExitCode::SUCCESS)
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
fn given_key(file: Option<&PathBuf>) -> anyhow::Result<Option<String>> {
    if let Some(path) = file {
        return key_file::given(path).map(Some);
    }
    let variable = |name| std::env::var(name).ok().filter(|key| !key.is_empty());
    Ok(variable("GLOVEPORT_KEY").or_else(|| variable("SESSION_API_KEY")))
}

/// Tells where the server is, and for once the key that it has made, as a command for a shell.
fn announce(address: SocketAddr, made: Option<&str>, keyless: bool) {
    let export = made.map(|key| {
        let mut reached = address;
        if address.ip().is_unspecified() {
            reached.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        format!("export GLOVEPORT_URL=http://{reached} GLOVEPORT_KEY={key}\n")
    });
    let text = format!("listening on http://{address}\n{}", export.unwrap_or_default());
    // Scripts read the first line, and may close the pipe after that.
    let mut output = std::io::stdout().lock();
    let _told = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    if keyless {
        tracing::warn!("there is no key, so every user who reaches this address can run commands");
    }
}

//! What the commands share that run tools on this machine.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use gloveport_executor::ExecutorOptions;
use gloveport_server::Origins;
use gloveport_terminal::WhenWaiting;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::Owner;

/// Time that requests in flight have to end when a server stops; callers kill a server that takes 5 s.
pub const DRAIN: Duration = Duration::from_secs(3);

/// What the shell of a server runs first: a pager would wait for keys that nobody types.
pub const NO_PAGER: &str = "alias git=\"git --no-pager\"";

/// The same for programs that look for one.
const PAGERS: [(&str, &str); 2] = [("PAGER", "cat"), ("GIT_PAGER", "cat")];

/// Has what programs would page shown at once, unless the environment says something else.
pub fn without_pagers(options: &mut ExecutorOptions) {
    for (name, value) in PAGERS {
        if !options.environment.iter().any(|(key, _)| key == name) {
            options.environment.push((name.into(), value.into()));
        }
    }
}

/// Tools of this process's user in `directory`, owned by `owner`.
pub fn executor_options(owner: &Owner, directory: PathBuf) -> anyhow::Result<ExecutorOptions> {
    Ok(ExecutorOptions {
        spawner: owner.spawner.clone(),
        process_root: Some(owner.pid),
        no_change: no_change()?,
        ..ExecutorOptions::inherited(directory)
    })
}

/// The variable with the origins whose pages may use the server from a browser.
pub const ALLOWED_ORIGINS: &str = Origins::VARIABLE;

/// The origins in a value of [`ALLOWED_ORIGINS`], which need a key.
pub fn origins(text: Option<&str>, has_key: bool) -> anyhow::Result<Origins> {
    let origins = Origins::of_text(text.unwrap_or_default()).context(ALLOWED_ORIGINS)?;
    anyhow::ensure!(
        has_key || origins.is_empty(),
        "{ALLOWED_ORIGINS} needs a key, since without one every such page could run commands here; set SESSION_API_KEY, and \
         give the page the key"
    );
    Ok(origins)
}

/// What becomes of an action whose program waits for input, as the command line says it.
pub const fn when_waiting(answer: bool) -> WhenWaiting {
    if answer { WhenWaiting::Answer } else { WhenWaiting::GoOn }
}

/// Soft time limit of commands, from the environment (`action-execution-api` 1.3).
fn no_change() -> anyhow::Result<Duration> {
    match std::env::var("NO_CHANGE_TIMEOUT_SECONDS") {
        Ok(text) => {
            let seconds = text.trim().parse().with_context(|| {
                format!("NO_CHANGE_TIMEOUT_SECONDS must be a whole number of seconds, and is `{text}`")
            })?;
            Ok(Duration::from_secs(seconds))
        }
        Err(_) => Ok(Duration::from_secs(10)),
    }
}

/// Keeps what this process was given, such as a key in its environment, from processes of the same user: without it they
/// read its memory and `/proc/PID/environ`. Call it before the first child, which has the same memory for a while.
pub fn hide() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "other processes of this user may read the memory of this one");
    }
}

/// Variables with the key of a server.
const KEYS: [&str; 2] = ["GLOVEPORT_KEY", "SESSION_API_KEY"];

/// Leaves the keys of servers out of what the tools of one get: whoever is in a sandbox would otherwise have the rights
/// of the server, which can be another user's.
pub fn without_keys(options: &mut ExecutorOptions) {
    options.environment.retain(|(name, _)| !KEYS.iter().any(|key| name == key));
}

/// An existing directory as an absolute path.
pub fn existing_directory(path: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(path).with_context(|| format!("cannot use the directory {}", path.display()))?;
    anyhow::ensure!(absolute.is_dir(), "{} is not a directory", absolute.display());
    Ok(absolute)
}

/// A token for a server: it is cancelled by SIGTERM, SIGINT or SIGHUP, and when the guard of its processes was killed.
pub fn server_stop(owner: &Owner) -> anyhow::Result<CancellationToken> {
    let stop = stop_signal()?;
    let (lost, stopped) = (owner.lost(), stop.clone());
    tokio::spawn(async move {
        lost.await;
        stopped.cancel();
    });
    Ok(stop)
}

/// A token that is cancelled by SIGTERM, SIGINT or SIGHUP.
pub fn stop_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut signals = signal(kind).context("cannot listen for signals")?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(stop)
}

/// An address as people write it: in numbers, or `localhost`.
pub fn address(text: &str) -> Result<IpAddr, String> {
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    text.parse().map_err(|_| "it must be an address in numbers, such as 127.0.0.1, or `localhost`".to_owned())
}

/// Listens on an address, or says what to do about why not.
pub async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied if address.port() < 1024 => {
                "ports below 1024 are for root; choose another one with --port"
            }
            ErrorKind::AddrInUse => "something else uses the port; --port 0 takes a free one",
            ErrorKind::AddrNotAvailable => "this machine does not have the address",
            _ => "see --host and --port",
        };
        anyhow::Error::from(error).context(format!("cannot listen on {address}: {hint}"))
    })
}

//! `relayed-server`: the tools of a sandbox, for whoever may enter the directory of the server.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use clap::Args;
use gloveport_executor::Executor;
use gloveport_server::{DrainEnd, Occupancy, ServerOptions, SessionKey};
use rustix::{fs::FlockOperation, io::Errno};
use tokio_util::sync::CancellationToken;

use super::{ADDRESS, Address};
use crate::{
    Owner,
    local::server::unused,
    owner, plugins,
    tools::{self, bind},
};

/// The file that a server holds locked as long as it lives.
const LOCK: &str = "lock";
/// Time that requests in flight have to end.
const DRAIN: Duration = Duration::from_millis(200);
/// How often is looked whether the directory is still there.
const LOOK: Duration = Duration::from_millis(500);
/// How often files of calls are looked for that nobody has fetched, and how old those are that are removed.
const SWEEP: (Duration, Duration) = (Duration::from_mins(5), Duration::from_hours(1));

#[derive(Debug, Args)]
pub struct ServerArgs {
    /// The directory of the server, which only its user can enter.
    #[arg(long, value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Where the tools start, if it is a directory; otherwise they start in the current one.
    #[arg(long, value_name = "DIRECTORY")]
    workspace: PathBuf,
    /// Plugins of the server; may be repeated.
    #[arg(long, value_name = "NAME")]
    plugin: Vec<String>,
    /// The server ends when nobody has asked it anything for this long.
    #[arg(long, value_name = "SECONDS")]
    idle_stop: u64,
}

pub(crate) async fn serve(arguments: ServerArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let stop = tools::server_stop(owner)?;
    // Another one serves there: that is as good.
    let Some(_lock) = lock(&arguments.directory)? else { return Ok(ExitCode::SUCCESS) };
    let directory = if arguments.workspace.is_dir() {
        arguments.workspace.clone()
    } else {
        std::env::current_dir().context("the current directory cannot be used")?
    };
    let mut options = tools::executor_options(owner, tools::existing_directory(&directory)?)?;
    tools::without_keys(&mut options);
    let environment: Vec<(OsString, OsString)> = options.environment.clone();
    options.plugins = plugins::asked(&arguments.plugin, &environment)?;
    options.startup_commands.push(tools::NO_PAGER.to_owned());
    let allowed = std::env::var(tools::ALLOWED_ORIGINS).ok();
    let origins = tools::origins(allowed.as_deref(), true)?;
    let executor = Executor::start(options).await?;
    let listener = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let key = gloveport_ids::random::<32>().context("cannot make a key")?;
    Address { port: listener.local_addr()?.port(), key: key.clone() }.write(&arguments.directory)?;
    let address = arguments.directory.join(ADDRESS);
    let mine = inode(&address).with_context(|| format!("cannot read {}", address.display()))?;
    tracing::info!(directory = %arguments.directory.display(), "ready");
    let occupancy = Arc::new(Occupancy::limited(Some(Duration::from_secs(arguments.idle_stop))));
    let options = ServerOptions {
        session_key: Some(SessionKey::new(key)),
        origins,
        occupancy: Arc::clone(&occupancy),
        ..ServerOptions::default()
    };
    let closing = CancellationToken::new();
    let answering = gloveport_server::serve(listener, Arc::clone(&executor), options, closing.clone(), DRAIN);
    let watch = async {
        let reason = tokio::select! {
            () = stop.cancelled() => "it was told to end".to_owned(),
            () = owner.lost() => owner::LOST.to_owned(),
            () = removed(&arguments.directory, mine) => "its directory was removed".to_owned(),
            limit = unused(&occupancy, &executor) => {
                format!("nobody used it for {} s", limit.as_secs())
            }
        };
        tracing::info!(reason, "the server ends");
        closing.cancel();
    };
    let (drained, ()) = tokio::join!(answering, watch);
    executor.close().await;
    if inode(&address).is_some_and(|inode| inode == mine)
        && let Err(error) = fs::remove_dir_all(&arguments.directory)
    {
        tracing::warn!(%error, "the directory of the server stays");
    }
    if let DrainEnd::CutOff { open } = drained? {
        tracing::info!(open, "requests were cut off");
    }
    Ok(ExitCode::SUCCESS)
}

/// The lock of this directory; none if another server has it.
fn lock(directory: &Path) -> anyhow::Result<Option<File>> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(std::io::Error::from(error)).with_context(|| format!("cannot lock {}", path.display())),
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Ends when the address of this server is gone. Until then it removes what nobody fetches.
async fn removed(directory: &Path, mine: (u64, u64)) {
    let address = directory.join(ADDRESS);
    let mut swept = tokio::time::Instant::now();
    while inode(&address) == Some(mine) {
        if swept.elapsed() > SWEEP.0 {
            swept = tokio::time::Instant::now();
            sweep(directory);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Removes old bodies of requests and answers.
fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_body = [super::REQUEST, super::ANSWER].iter().any(|end| name.to_string_lossy().ends_with(end));
        let is_old = || {
            let age =
                entry.metadata().and_then(|meta| meta.modified()).map(|time| SystemTime::now().duration_since(time));
            age.is_ok_and(|age| age.is_ok_and(|age| age > SWEEP.1))
        };
        if is_body
            && is_old()
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!(%error, "what nobody has fetched stays");
        }
    }
}

//! Starts a server that has no session yet.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{DirBuilderExt as _, OpenOptionsExt as _},
            net::UnixStream,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Weak},
};

use gloveport_contract::local::lifeline::{Lifeline, Reply, Request};
use gloveport_provider::{Level, ProviderError, SandboxId};
use gloveport_sys::{mark, reap::reaper};

use crate::{
    confine::{self, Confined, Network},
    delete,
    fault::{self, blocking, engine},
    image::Prepared,
    lock, logs,
    provider::Inner,
    server::ServerProcess,
    state,
    steps::Step,
};

/// Ports that every server reserves: the editor's and two for the user's programs (`local-and-cli-runtime` A2).
pub(crate) const STANDARD_PORTS: usize = 3;
/// Variables of the backend that the server itself gets; those of the tools come with the start.
pub(crate) const INHERITED: [&str; 10] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "GLOVEPORT_LOG",
    "LOG_LEVEL",
    "LOG_JSON",
    "DEBUG",
    "NO_CHANGE_TIMEOUT_SECONDS",
];

/// A server that waits for its session. When it is dropped it ends, and removes its directory.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: ServerProcess,
    /// What all its processes have in their environment: the first name of its directory.
    pub(crate) mark: String,
    pub(crate) directory: PathBuf,
    pub(crate) port: u16,
    pub(crate) reserved: Vec<u16>,
    /// What its root directory is made from, if that is not this machine.
    pub(crate) image: Option<Arc<Prepared>>,
    pub(crate) socket: UnixStream,
    /// For waiting until nothing of it is left, wherever its directory is then.
    pub(crate) lock: File,
}

impl Server {
    /// Starts one, and returns when it listens.
    pub(crate) async fn launch(inner: &Arc<Inner>) -> Result<Self, ProviderError> {
        Self::launch_as(inner, None).await
    }

    /// The same, where it is kept to a part of the machine, in the sandbox of this id.
    pub(crate) async fn launch_confined(
        inner: &Arc<Inner>,
        confined: Confined,
        id: SandboxId,
    ) -> Result<Self, ProviderError> {
        Self::launch_as(inner, Some((confined, id))).await
    }

    async fn launch_as(inner: &Arc<Inner>, apart: Option<(Confined, SandboxId)>) -> Result<Self, ProviderError> {
        let image = apart.as_ref().and_then(|(confined, _)| confined.image.clone());
        let has_kernel = apart.as_ref().is_some_and(|(confined, _)| confined.gvisor.is_some());
        let Spawned { process, mark, directory, socket, lock } = {
            let inner = Arc::clone(inner);
            blocking(move || spawn(&inner, apart.as_ref())).await?
        };
        let talk = async {
            let mut lifeline = Lifeline::new(socket)?;
            let sent = lifeline.send(&Request::Listen { host: inner.urls.listen(), reserve: STANDARD_PORTS }).await;
            // One that has ended may have said why.
            let reply = lifeline.receive().await?;
            if reply.is_none() {
                sent?;
            }
            io::Result::Ok((lifeline.into_socket()?, reply))
        };
        let told = talk.await;
        let is_refused = matches!(told, Ok((_, Some(Reply::Refused { .. }))));
        let reason = match told {
            Ok((socket, Some(Reply::Listening { port, reserved }))) => {
                inner.options.observer.tell(Step::Listening);
                return Ok(Self { process, mark, directory, port, reserved, image, socket, lock });
            }
            Ok((_, Some(Reply::Failed { reason } | Reply::Refused { reason }))) => reason,
            Ok((_, None)) => "its server has ended".to_owned(),
            Ok((_, Some(other))) => format!("its server answered {other:?}"),
            Err(error) => format!("its server does not answer: {error}"),
        };
        let log = logs::last_lines(&directory);
        let removal = inner.removal();
        let cleaned = blocking(move || delete::remove_server(&removal, process, &mark, &lock, &directory)).await;
        if let Err(error) = cleaned {
            tracing::warn!(%error, "the rest of a server that did not start stays until garbage is collected");
        }
        if is_refused {
            let level = if has_kernel { Level::Gvisor } else { Level::Container };
            let reason = confine::not_here(level, &reason);
            return Err(ProviderError::Spec { field: confine::ISOLATION.to_owned(), reason });
        }
        Err(ProviderError::Start { reason, log })
    }
}

/// A server that was started, and does not listen yet.
struct Spawned {
    process: ServerProcess,
    mark: String,
    directory: PathBuf,
    socket: UnixStream,
    lock: File,
}

fn spawn(inner: &Arc<Inner>, apart: Option<&(Confined, SandboxId)>) -> Result<Spawned, ProviderError> {
    let observer = &inner.options.observer;
    let mark = inner.next_name();
    let directory = inner.state.servers().join(&mark);
    fs::DirBuilder::new().mode(0o700).create(&directory).map_err(fault::file("make the directory", &directory))?;
    observer.tell(Step::DirectoryMade);
    let started = start(inner, &mark, &directory, apart);
    if started.is_err() {
        // Nothing runs; what cannot be removed now is garbage.
        let _left = fs::remove_dir_all(&directory);
    }
    started.map(|(process, socket, lock)| Spawned { process, mark, directory, socket, lock })
}

fn start(
    inner: &Arc<Inner>,
    mark: &str,
    directory: &Path,
    apart: Option<&(Confined, SandboxId)>,
) -> Result<(ServerProcess, UnixStream, File), ProviderError> {
    let (lock_path, log_path) = (directory.join(state::LOCK), directory.join(state::LOG));
    let lock = lock::make_locked(&lock_path).map_err(fault::file("make", &lock_path))?;
    inner.options.observer.tell(Step::LockTaken);
    // Another description than the one that is locked.
    let watched = File::open(&lock_path).map_err(fault::file("open", &lock_path))?;
    let log = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&log_path);
    let log = log.map_err(fault::file("make", &log_path))?;
    let program = &inner.options.program;
    let failed = |error: io::Error| engine(format!("start {}", program.display()), error);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg("sandbox-server").arg("--state").arg(inner.state.root()).current_dir("/");
    command.env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, inner.options.environment.get(*name)?))));
    let outer = inner.options.environment.get(mark::VARIABLE).map(String::as_str);
    command.env(mark::VARIABLE, mark::within(outer, mark));
    if let Some((confined, id)) = apart {
        let place = confine::make_place(directory, confined.image.is_some(), confined.gvisor.is_some())?;
        if let Some(edge) = &confined.edge {
            edge.write_trust(&place)?;
            // It stays in the socket until the server looks.
            edge.hand_over(&ours)?;
        }
        command.arg("--confine");
        let level = if let Some(home) = &confined.home {
            command.arg("--container").arg(place).arg("--home").arg(home);
            if confined.has_own_work {
                command.arg("--work").arg(confine::workspace(&inner.state.sandbox(id), confined.image.is_some()));
            }
            if let Some(image) = &confined.image {
                command.arg("--root").arg(image.root()).arg("--lease").arg(image.lease());
                if let Some(owners) = image.owners() {
                    let owners = serde_json::to_string(owners);
                    command.arg("--owners").arg(owners.map_err(|error| engine("tell the owners of files", error))?);
                }
                command.envs(image.of_server());
            }
            if let Some(runsc) = &confined.gvisor {
                command.arg("--gvisor").arg(runsc);
            }
            Level::Container
        } else {
            command.arg("--write").arg(place);
            Level::Files
        };
        for (flag, places) in [("--write", &confined.write), ("--read", &confined.read)] {
            for place in places {
                command.arg(flag).arg(place);
            }
        }
        if let Some(processes) = confined.processes {
            command.arg("--processes").arg(processes.to_string());
        }
        for (flag, amount) in [("--memory", confined.memory), ("--cpu-thousandths", confined.cpu_thousandths)] {
            if let Some(amount) = amount {
                command.arg(flag).arg(amount.to_string());
            }
        }
        match &confined.network {
            Network::Full => {}
            Network::None => {
                command.arg("--no-network");
            }
            Network::Only(rules) => {
                for rule in rules {
                    command.arg("--allow").arg(rule);
                }
            }
        }
        if confined.edge.is_some() {
            command.arg("--edge");
        }
        if let Some(audit) = &confined.audit {
            command.arg("--audit").arg(audit).arg("--session").arg(id.as_str());
        }
        // By then the sandbox has its name.
        command.env("TMPDIR", confine::temporary(&inner.state.sandbox(id), level));
    }
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::from(lock)).stderr(Stdio::from(log));
    let child = command.spawn().map_err(failed)?;
    // It is not waited for yet, so its id cannot be anybody else's.
    let process = ServerProcess::of(child.id())
        .ok_or_else(|| engine("look at the server that was started", "/proc does not show it; is /proc mounted?"))?;
    let own = watched.try_clone().map_err(failed)?;
    watch(process, mark.to_owned(), own, directory.to_owned(), Arc::downgrade(inner)).map_err(failed)?;
    inner.options.observer.tell(Step::ServerStarted);
    Ok((process, ours, watched))
}

/// Forgets a server when it has ended, ends what lives on of one that was killed with all that own its processes, and
/// removes what is left of one that was killed while it waited.
fn watch(process: ServerProcess, mark: String, lock: File, directory: PathBuf, inner: Weak<Inner>) -> io::Result<()> {
    let ended = reaper(process.pid)?;
    tokio::spawn(async move {
        ended.await;
        let orphans = blocking(move || Ok(delete::end_orphans(&mark, &lock))).await;
        if let Ok(count @ 1..) = orphans {
            tracing::warn!(count, "ended processes of a sandbox whose owners were killed");
        }
        let Some(inner) = inner.upgrade() else { return };
        // Whoever closes the provider waits for what was begun before, and removes the rest.
        let _waited_for = inner.making.token();
        if inner.check_open().is_err() {
            return;
        }
        inner.forget(process);
        // A sandbox has another directory, and is still to be seen when its server has ended.
        let removed = blocking(move || delete::end_and_remove(&inner.removal(), &directory)).await;
        if let Err(error) = removed {
            tracing::warn!(%error, "the rest of a server stays until garbage is collected");
        }
    });
    Ok(())
}

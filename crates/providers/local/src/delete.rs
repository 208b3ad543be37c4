//! Ends sandboxes and removes what is left of them.

use std::{
    fs::File,
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use gloveport_contract::local::directory::unpublish;
use gloveport_provider::ProviderError;
use gloveport_sys::mark;
use rustix::process::Signal;

use crate::{
    fault::{self, engine},
    lock,
    options::LocalOptions,
    owners,
    record::Record,
    server::ServerProcess,
    state::{LOCK, State},
    steps::Step,
};

/// Time for a killed server to be gone, with all that it started.
const KILL_LIMIT: Duration = Duration::from_secs(15);
/// Time for the guard and the owners of a dead server to end what they own.
const OWNERS_LIMIT: Duration = Duration::from_secs(1);
/// First and longest pause between two looks at a lock.
const PAUSES: (Duration, Duration) = (Duration::from_micros(500), Duration::from_millis(20));

/// What a removal needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Removal {
    pub(crate) state: State,
    pub(crate) options: LocalOptions,
}

impl Removal {
    fn tell(&self, step: Step) {
        self.options.observer.tell(step);
    }
}

/// Ends what runs of a sandbox or a server and removes its directory and its temporary workspace. Returns when nothing
/// is left; `false` if there was nothing.
pub(crate) fn end_and_remove(removal: &Removal, directory: &Path) -> Result<bool, ProviderError> {
    let record = match Record::read(directory) {
        Ok(record) => record,
        // What cannot be understood is removed all the same, unless it runs.
        Err(error) if is_free(directory) => {
            tracing::warn!(%error, "removing it");
            None
        }
        Err(error) => return Err(error),
    };
    let mark = match &record {
        Some(record) => record.mark.clone(),
        // A server that never had a session.
        None if directory.parent() == Some(&removal.state.servers()) => {
            directory.file_name().and_then(|name| name.to_str()).map(str::to_owned)
        }
        None => None,
    };
    end(removal, record.map(|record| record.server), mark.as_deref(), directory)
}

/// Ends what a dead server left whose guard and owners were killed, too, and tells how many processes that was. Guard and
/// owners that live do it themselves, and have a moment for that.
pub(crate) fn end_orphans(mark: &str, lock: &File) -> usize {
    let (mut pause, longest) = PAUSES;
    let began = Instant::now();
    while began.elapsed() < OWNERS_LIMIT && !is_taken_for_a_moment(lock) {
        thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
    sweep();
    mark::end(mark)
}

/// Whether nobody has the lock; it is free again afterwards.
fn is_taken_for_a_moment(lock: &File) -> bool {
    let taken = lock::try_lock_file(lock).unwrap_or(true);
    let _free = rustix::fs::flock(lock, rustix::fs::FlockOperation::Unlock);
    taken
}

/// Ends what other sandboxes of this user left, with their control groups.
pub(crate) fn sweep() {
    if let Err(error) = mark::sweep() {
        tracing::warn!(%error, "cannot look for processes whose owners were killed");
    }
}

/// The same for a server that this backend has started. Its lock was opened before: the server removes itself when its
/// socket ends, and then its directory is gone before the last of its processes.
pub(crate) fn remove_server(
    removal: &Removal,
    server: ServerProcess,
    mark: &str,
    lock: &File,
    directory: &Path,
) -> Result<(), ProviderError> {
    end_locked(removal, Some(server), Some(mark), lock, directory)
}

fn end(
    removal: &Removal,
    server: Option<ServerProcess>,
    mark: Option<&str>,
    directory: &Path,
) -> Result<bool, ProviderError> {
    let path = directory.join(LOCK);
    match File::open(&path) {
        Ok(lock) => end_locked(removal, server, mark, &lock, directory).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !directory.exists() => Ok(false),
        // Its maker died before anything ran, or its removal was cut off.
        Err(error) if error.kind() == io::ErrorKind::NotFound => remove(removal, directory).map(|()| true),
        Err(error) => Err(fault::file("open", &path)(error)),
    }
}

fn end_locked(
    removal: &Removal,
    server: Option<ServerProcess>,
    mark: Option<&str>,
    lock: &File,
    directory: &Path,
) -> Result<(), ProviderError> {
    let path = directory.join(LOCK);
    let mut crashed = server.is_none_or(|server| !server.is_alive());
    let taken = |lock: &File| lock::try_lock_file(lock).map_err(fault::file("lock", &path));
    if !taken(lock)? {
        if let Some(server) = server {
            let ask = |signal, limit| server.end(signal, limit).map_err(|error| engine("end the server", error));
            removal.tell(Step::EndAsked);
            if !ask(Signal::TERM, removal.options.grace)? {
                ask(Signal::KILL, KILL_LIMIT)?;
                crashed = true;
            }
        }
        let (mut pause, longest) = PAUSES;
        let began = Instant::now();
        while !taken(lock)? {
            if began.elapsed() > OWNERS_LIMIT {
                // Guard and owners were stopped, or something holds them up: they go with the rest.
                mark.map(mark::end);
            }
            if began.elapsed() > KILL_LIMIT {
                let action = format!("the end of the processes of {}", directory.display());
                return Err(ProviderError::Timeout { action, limit: KILL_LIMIT });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }
    if crashed {
        sweep();
        mark.map(mark::end);
    }
    removal.tell(Step::Ended);
    // Whoever had the lock before may have removed it all: the server does, when its backend is gone.
    if lock::is_at(lock, &path) { remove(removal, directory) } else { Ok(()) }
}

/// Removes the directory of something that does not run, and its temporary workspace. The caller has its lock, if it has
/// one.
pub(crate) fn remove(removal: &Removal, directory: &Path) -> Result<(), ProviderError> {
    let unpublished = unpublish(directory, &removal.state.old()).map_err(fault::file("remove", directory))?;
    let Some(old) = unpublished else { return Ok(()) };
    removal.tell(Step::Unpublished);
    remove_old(removal, &old)
}

/// Removes what has lost its name already.
pub(crate) fn remove_old(removal: &Removal, old: &Path) -> Result<(), ProviderError> {
    if let Some(record) = Record::read(old).unwrap_or_default()
        && record.at.temporary
    {
        let workspace = &record.at.workspace;
        owners::remove(workspace, &removal.options).map_err(fault::file("remove", workspace))?;
    }
    removal.tell(Step::WorkspaceRemoved);
    owners::remove(old, &removal.options).map_err(fault::file("remove", old))?;
    removal.tell(Step::DirectoryRemoved);
    Ok(())
}

fn is_free(directory: &Path) -> bool {
    match lock::try_lock(&directory.join(LOCK)) {
        Ok(lock) => lock.is_some(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

//! The directories of a server, and those that a killed one left.
//!
//! ```text
//! ROOT/packages-HASH/        the package, which servers share
//! ROOT/packages-HASH.lock    locked by all that use it
//! ROOT/servers/ID.lock       locked for the life of a server
//! ROOT/servers/ID/editor/    belongs to the user of the kernels, who alone can enter it
//! ROOT/servers/ID/editor/socket
//! ```

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    thread,
};

use gloveport_sys::Identity;
use rustix::{fs::FlockOperation, process::geteuid};

/// Bits of a mode with which others than the owner can write.
const OTHERS_WRITE: u32 = 0o022;
/// Only the owners of the entries of a directory can rename them.
const STICKY: u32 = 0o1000;

/// The directories of this server. They go with it.
#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
    own: PathBuf,
    lock: PathBuf,
    _locked: File,
}

impl Place {
    /// Where the directories can be, the best first. The last ones are for systems without the first.
    pub(crate) fn candidates() -> Vec<PathBuf> {
        let user = geteuid();
        let fallback = std::env::temp_dir().join(format!("gloveport-skills-{user}"));
        let best = if user.is_root() {
            Some(PathBuf::from("/run"))
        } else {
            std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())
        };
        best.map(|path| path.join("gloveport-skills")).into_iter().chain([fallback]).collect()
    }

    /// Makes the directories of this server, and removes those of servers that are gone.
    pub(crate) fn at(root: &Path) -> io::Result<Self> {
        owned_directory(root)?;
        let root = fs::canonicalize(root)?;
        check_way(&root)?;
        let servers = root.join("servers");
        owned_directory(&servers)?;
        remove_unlocked(&servers, "");
        // Whoever removes left-overs at the same moment may take the file before it is locked.
        for _ in 0..10 {
            let id = gloveport_ids::random::<8>()?;
            let (own, lock) = (servers.join(&id), servers.join(format!("{id}.lock")));
            let locked = lock_new(&lock).map_err(|error| said(&format!("cannot make {}", lock.display()), &error))?;
            if let Some(locked) = locked {
                let place = Self { root, own, lock, _locked: locked };
                make(&place.own, 0o755)?;
                return Ok(place);
            }
        }
        Err(io::Error::other(format!(
            "the lock of this server in {} is removed each time it is made",
            servers.display()
        )))
    }

    /// The directory that servers share.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of this server alone.
    pub(crate) fn own(&self) -> &Path {
        &self.own
    }

    /// Makes the directory for the socket. It does not belong to the user yet.
    pub(crate) fn editor(&self) -> io::Result<PathBuf> {
        let path = self.own.join("editor");
        make(&path, 0o700)?;
        Ok(path)
    }

    /// Removes the directories of this server.
    pub(crate) fn remove(&self) {
        remove(&self.own, &self.lock);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Gives a file or directory to the user, if it is another one.
pub(crate) fn give(path: &Path, identity: Option<&Identity>) -> io::Result<()> {
    let Some(user) = identity else { return Ok(()) };
    let has = fs::symlink_metadata(path)?;
    if (has.uid(), has.gid()) == (user.uid, user.gid) {
        return Ok(());
    }
    chown(path, Some(user.uid), Some(user.gid))
        .map_err(|error| said(&format!("cannot give {} to the user {}", path.display(), user.uid), &error))
}

/// An error with what failed before its reason.
pub(crate) fn said(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Makes a directory with this mode, whatever the mask of this process is.
fn make(path: &Path, mode: u32) -> io::Result<()> {
    let created = DirBuilder::new().mode(mode).create(path);
    created
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)))
        .map_err(|error| said(&format!("cannot make {}", path.display()), &error))
}

/// Makes a directory that only this user can write to, if it is not there.
fn owned_directory(path: &Path) -> io::Result<()> {
    match make(path, 0o755) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{} is not a directory that only this user can write to; remove it", path.display()),
    ))
}

/// Whether nobody else can put another directory in the place of this one.
fn check_way(path: &Path) -> io::Result<()> {
    for directory in path.ancestors().skip(1) {
        let found = fs::metadata(directory)?;
        let is_trusted = found.uid() == 0 || found.uid() == geteuid().as_raw();
        if !is_trusted || found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("others can replace what is in {}, so {} cannot be used", directory.display(), path.display()),
            ));
        }
    }
    Ok(())
}

/// A new file that is locked; none if somebody removed it before.
fn lock_new(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    Ok((file.metadata()?.nlink() > 0).then_some(file))
}

/// A lock that others can hold, too, and with which [`remove_unlocked`] leaves its directory alone.
pub(crate) fn lock_shared(path: &Path) -> io::Result<File> {
    for _ in 0..10 {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        // Whoever holds it otherwise is about to remove it.
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        if locked && file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
        thread::yield_now();
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Removes the directories of this prefix whose lock nobody holds.
pub(crate) fn remove_unlocked(place: &Path, prefix: &str) {
    let entries = match fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) => return tracing::warn!(%error, path = %place.display(), "left-overs cannot be looked for"),
    };
    for entry in entries.flatten() {
        let (lock, name) = (entry.path(), entry.file_name());
        let is_lock = lock.extension().is_some_and(|extension| extension == "lock");
        if !is_lock || !name.to_string_lossy().starts_with(prefix) {
            continue;
        }
        let Ok(file) = File::open(&lock) else { continue };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&lock.with_extension(""), &lock);
        }
    }
}

/// Removes a directory, its lock last.
fn remove(own: &Path, lock: &Path) {
    let removed = match fs::remove_dir_all(own) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(lock),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %own.display(), "a directory of AgentSkills cannot be removed");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_server_left_is_removed_and_what_lives_stays() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        let living = Place::at(&root).unwrap();
        let dead = root.join("servers/0123");
        fs::create_dir_all(dead.join("editor")).unwrap();
        fs::write(dead.join("editor/socket"), "").unwrap();
        fs::write(root.join("servers/0123.lock"), "").unwrap();
        let second = Place::at(&root).unwrap();
        assert!(!dead.exists() && !root.join("servers/0123.lock").exists());
        assert!(living.own().is_dir() && second.own().is_dir());
        drop((living, second));
        assert_eq!(fs::read_dir(root.join("servers")).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_others_can_change_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, Permissions::from_mode(0o777)).unwrap();
        let error = Place::at(&root).unwrap_err();
        let expected = format!("{} is not a directory that only this user can write to; remove it", root.display());
        assert_eq!(error.to_string(), expected);
        fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let error = Place::at(&root).unwrap_err().to_string();
        assert!(error.starts_with("others can replace what is in "), "{error}");
    }
}

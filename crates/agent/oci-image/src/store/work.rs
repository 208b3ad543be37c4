//! Directories for what is not finished. Each is locked by whoever works in it; one that nobody has locked was left by a
//! process that was killed, and is removed by the next one.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_platform as platform;
use rustix::fs::{FlockOperation, OFlags};

use crate::{
    error::ImageError,
    owners::{self, Owners},
    store::locks,
};

/// Tries to make one: another process can take it for a forgotten one before it is locked.
const TRIES: usize = 8;

/// A directory that is removed with all that is in it when this is dropped.
#[derive(Debug)]
pub(crate) struct Work {
    path: PathBuf,
    owners: Option<Arc<dyn Owners>>,
    // Held until the directory is gone.
    _lock: File,
}

impl Work {
    /// Makes one.
    pub(crate) fn new(below: &Path, owners: Option<&Arc<dyn Owners>>) -> Result<Self, ImageError> {
        for _ in 0..TRIES {
            let name = gloveport_ids::random::<16>().map_err(|error| {
                ImageError::store("name a directory in", below)(io::Error::other(error.to_string()))
            })?;
            let path = below.join(name);
            platform::private_directory().create(&path).map_err(ImageError::store("make the directory", &path))?;
            if let Some(lock) = lock(&path)
                && platform::is_at(&lock, &path).is_ok_and(|same| same)
            {
                return Ok(Self { path, owners: owners.cloned(), _lock: lock });
            }
        }
        let busy = io::Error::other("another process removes it again and again");
        Err(ImageError::store("make a directory in", below)(busy))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn remove(&self) -> io::Result<()> {
        owners::remove(&self.path, self.owners.as_deref())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The mark that an image is on the disk can come while the image is removed, once.
        if let Err(error) = self.remove().or_else(|_| self.remove()) {
            tracing::warn!("cannot remove {}: {error}; the next pull tries it again", self.path.display());
        }
    }
}

/// Locks a directory, if nobody else has.
fn lock(path: &Path) -> Option<File> {
    let flags = i32::try_from((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    locks::try_lock(&file, FlockOperation::NonBlockingLockExclusive).ok().filter(|locked| *locked).map(|_| file)
}

/// Removes those that nobody works in any more.
pub(crate) fn sweep(below: &Path, owners: Option<&Arc<dyn Owners>>) {
    let Ok(entries) = fs::read_dir(below) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if let Some(_lock) = lock(&path) {
            tracing::info!("removing {}, which a process left that was killed", path.display());
            if let Err(error) = owners::remove(&path, owners.map(AsRef::as_ref)) {
                tracing::warn!("cannot remove {}: {error}; the next pull tries it again", path.display());
            }
        }
    }
}

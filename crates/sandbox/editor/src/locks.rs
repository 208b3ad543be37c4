//! One lock for each file that is in use: edits of a file come one after the other, and no other file waits.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// The locks of the files that are in use.
#[derive(Debug, Default)]
pub(crate) struct PathLocks {
    locks: Mutex<HashMap<PathBuf, Arc<RwLock<()>>>>,
}

/// A file's lock, which is gone when nobody uses it.
#[derive(Debug)]
pub(crate) struct Lease<'a> {
    owner: &'a PathLocks,
    key: PathBuf,
    lock: Arc<RwLock<()>>,
}

impl PathLocks {
    /// The lock of a file by its path without links, which is the same whichever of its names is used.
    pub(crate) fn lease(&self, key: PathBuf) -> Lease<'_> {
        let lock = Arc::clone(self.map().entry(key.clone()).or_default());
        Lease { owner: self, key, lock }
    }

    fn map(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<RwLock<()>>>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease<'_> {
    /// Waits until nobody edits the file.
    pub(crate) fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody uses the file.
    pub(crate) fn exclusive(&self) -> RwLockWriteGuard<'_, ()> {
        self.lock.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut locks = self.owner.map();
        // That of the map, and this one; others are only made while the map is locked.
        if Arc::strong_count(&self.lock) == 2 {
            locks.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use gloveport_sys::reach::Reach;

    use super::*;

    #[test]
    fn a_lock_is_shared_by_all_names_of_a_file_and_gone_behind_the_last() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let real = |path: &Path| Reach::Anywhere.real_path(path);
        let locks = PathLocks::default();
        let (first, second) = (locks.lease(real(&file)), locks.lease(real(&link)));
        let other = locks.lease(real(&directory.path().join("other")));
        let held = first.exclusive();
        assert!(second.lock.try_read().is_err());
        assert!(other.lock.try_write().is_ok());
        drop(held);
        assert!(second.lock.try_write().is_ok());
        drop((first, second, other));
        assert!(locks.map().is_empty());
    }
}

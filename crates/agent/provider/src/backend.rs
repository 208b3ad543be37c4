//! How others find out that a backend of this machine has died: a file that the backend keeps locked for its life.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_platform::{private_directory, private_file};

use crate::ProviderError;

/// What the names of files begin with that are not locked yet.
const NEW: &str = ".new-";
/// Age at which such a file is taken for a left-over.
const LEFT_OVER: Duration = Duration::from_mins(10);

/// One backend: the lock is held until this is dropped or its process ends, however it ends.
#[derive(Debug)]
pub struct BackendLock {
    /// Its name: 32 random hexadecimal digits.
    pub id: String,
    /// The file that is locked.
    pub lock: PathBuf,
    _held: File,
}

impl BackendLock {
    /// A new backend in this directory, which is made; what dead backends left there is removed.
    pub fn start(directory: &Path) -> Result<Self, ProviderError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| ProviderError::File { action, path, source }
        };
        private_directory().recursive(true).create(directory).map_err(failed("make", directory))?;
        sweep(directory);
        let id = random().map_err(failed("make a name in", directory))?;
        let unlocked = directory.join(format!("{NEW}{id}"));
        let lock = directory.join(&id);
        let opened = private_file().write(true).create_new(true).open(&unlocked);
        let held = opened.map_err(failed("make", &unlocked))?;
        held.lock().map_err(failed("lock", &unlocked))?;
        fs::rename(&unlocked, &lock).map_err(failed("make", &lock))?;
        Ok(Self { id, lock, _held: held })
    }
}

/// Whether the backend of this id lives, whose file is in this directory.
pub fn lives(directory: &Path, id: &str) -> bool {
    match File::open(directory.join(id)) {
        Ok(file) => file.try_lock().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Where backends of this user have their files: what does not outlive the machine's uptime, or else the user's state.
pub fn directory(environment: &BTreeMap<String, String>) -> PathBuf {
    gloveport_platform::state_directory(environment).join("gloveport").join("backends")
}

impl Drop for BackendLock {
    fn drop(&mut self) {
        // Whoever finds no file knows as much as from one without a lock.
        let _gone_already = fs::remove_file(&self.lock);
    }
}

/// 32 hexadecimal digits of the system's random numbers.
pub fn random() -> io::Result<String> {
    Ok(gloveport_ids::random::<16>()?)
}

/// Removes the files of dead backends. Nothing depends on it.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_new = entry.file_name().to_string_lossy().starts_with(NEW);
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
        if is_new && age.is_none_or(|age| age < LEFT_OVER) {
            continue;
        }
        if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _gone_already = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_locked_for_its_life_and_the_files_of_dead_ones_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let one = BackendLock::start(directory.path()).unwrap();
        assert!(File::open(&one.lock).unwrap().try_lock().is_err());
        // What a killed backend leaves: a file without a lock.
        let dead = directory.path().join("dead");
        fs::write(&dead, "").unwrap();
        let two = BackendLock::start(directory.path()).unwrap();
        assert!(!dead.exists() && one.lock.exists() && two.lock.exists());
        assert!(lives(directory.path(), &one.id) && !lives(directory.path(), "dead"));
        let lock = one.lock.clone();
        drop(one);
        assert!(!lock.exists());
    }
}

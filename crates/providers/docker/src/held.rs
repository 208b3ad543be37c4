//! Which backends use a kept sandbox: a file for each, named after the backend, below the container's id.
//!
//! Only backends of this machine are known; a container that one of another machine has made is never taken for an orphan.

use std::{
    fs, io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use gloveport_platform::{boot_id, private_directory, private_file, user_id};
use gloveport_provider::{
    ProviderError,
    backend::{self, BackendLock},
};
use sha2::{Digest as _, Sha256};

/// This backend, and what is known of others.
#[derive(Debug)]
pub(crate) struct Holders {
    backends: PathBuf,
    own: Mutex<Option<BackendLock>>,
    machine: OnceLock<String>,
}

impl Holders {
    pub(crate) fn new(backends: PathBuf) -> Self {
        Self { backends, own: Mutex::default(), machine: OnceLock::new() }
    }

    /// The id of this backend, which lives from now on in the eyes of others.
    pub(crate) fn own(&self) -> Result<String, ProviderError> {
        let mut own = self.lock();
        if let Some(own) = &*own {
            return Ok(own.id.clone());
        }
        let made = BackendLock::start(&self.backends)?;
        Ok(own.insert(made).id.clone())
    }

    /// No longer lives in the eyes of others.
    pub(crate) fn vanish(&self) {
        *self.lock() = None;
    }

    /// This backend as a label tells it.
    pub(crate) fn label(&self) -> Result<String, ProviderError> {
        Ok(format!("{}/{}", self.place(), self.own()?))
    }

    /// Whether the backend of a label lives; one of another machine, or of another user, does as far as we know.
    pub(crate) fn lives(&self, label: &str) -> bool {
        match label.split_once('/') {
            Some((at, id)) if at == self.place() => backend::lives(&self.backends, id),
            Some(_) => true,
            None => false,
        }
    }

    /// Where this backend's files are: only those who look there know whether it lives.
    fn place(&self) -> String {
        let digest = Sha256::digest(self.backends.as_os_str().as_encoded_bytes());
        let user = user_id().unwrap_or_default();
        let directory = gloveport_ids::hex(&digest[..4]);
        format!("{}-{user}-{directory}", self.machine.get_or_init(|| self.machine()))
    }

    /// This backend uses a container.
    pub(crate) fn hold(&self, container: &str) -> Result<(), ProviderError> {
        let directory = self.directory(container);
        let file = directory.join(self.own()?);
        let failed = |source| ProviderError::File { action: "make", path: file.clone(), source };
        private_directory().recursive(true).create(&directory).map_err(failed)?;
        private_file().write(true).create(true).truncate(true).open(&file).map_err(failed)?;
        Ok(())
    }

    /// This backend no longer uses a container.
    pub(crate) fn release(&self, container: &str) -> Result<(), ProviderError> {
        let directory = self.directory(container);
        let file = directory.join(self.own()?);
        match fs::remove_file(&file) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(ProviderError::File { action: "remove", path: file, source })
            }
            _ => {
                // Others may hold it, and then it is not empty.
                let _used = fs::remove_dir(&directory);
                Ok(())
            }
        }
    }

    /// Whether any backend that lives holds it, and whether any that is dead did.
    pub(crate) fn holders(&self, container: &str) -> (bool, bool) {
        let names = fs::read_dir(self.directory(container)).into_iter().flatten().flatten();
        let lives = names.map(|entry| backend::lives(&self.backends, &entry.file_name().to_string_lossy()));
        lives.fold((false, false), |(living, dead), lives| (living || lives, dead || !lives))
    }

    /// Forgets a container that is gone.
    pub(crate) fn forget(&self, container: &str) {
        // Nothing depends on it: the id of a container is never used again.
        let _absent = fs::remove_dir_all(self.directory(container));
    }

    /// A name of this machine; another one after a start of it where the system has such a name, because no backend
    /// survives that. Elsewhere it is a random one in a file. Without either it is this process's own, so that no other
    /// backend is taken for a dead one.
    fn machine(&self) -> String {
        boot_id().or_else(|| self.kept_name().ok()).or_else(|| backend::random().ok()).unwrap_or_default()
    }

    fn kept_name(&self) -> io::Result<String> {
        let file = self.backends.with_file_name("machine");
        if let Some(directory) = file.parent() {
            private_directory().recursive(true).create(directory)?;
        }
        let name = backend::random()?;
        let new = file.with_file_name(format!("machine.{name}"));
        private_file().write(true).create_new(true).open(&new)?;
        // Whole before it has its name, and the first one stays.
        let placed = fs::write(&new, &name).and_then(|()| gloveport_platform::rename_new(&new, &file));
        match placed {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&new)?;
                fs::read_to_string(&file)
            }
            placed => placed.map(|()| name),
        }
    }

    fn directory(&self, container: &str) -> PathBuf {
        self.backends.with_file_name("docker").join(container)
    }

    fn lock(&self) -> MutexGuard<'_, Option<BackendLock>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_name_of_its_start_keeps_a_random_one() {
        let directory = tempfile::tempdir().unwrap();
        let of = |directory: &std::path::Path| Holders::new(directory.join("gloveport/backends")).kept_name().unwrap();
        let name = of(directory.path());
        assert_eq!((name.len(), of(directory.path())), (32, name));
        assert_eq!(fs::read_dir(directory.path().join("gloveport")).unwrap().count(), 1);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(of(other.path()), of(directory.path()));
    }

    #[test]
    fn who_holds_a_container_is_known_as_long_as_it_lives() {
        let directory = tempfile::tempdir().unwrap();
        let backends = directory.path().join("backends");
        let (one, other) = (Holders::new(backends.clone()), Holders::new(backends));
        one.hold("c").unwrap();
        assert_eq!(other.holders("c"), (true, false));
        let label = one.label().unwrap();
        assert!(other.lives(&label) && other.lives("elsewhere/x") && !other.lives("x"));
        let elsewhere = Holders::new(directory.path().join("of-another-user/backends"));
        assert!(elsewhere.lives(&label));
        drop(one);
        assert!(elsewhere.lives(&label));
        assert_eq!(other.holders("c"), (false, true));
        assert!(!other.lives(&label));
        other.hold("c").unwrap();
        other.release("c").unwrap();
        assert_eq!(other.holders("c"), (false, true));
        other.forget("c");
        assert_eq!(other.holders("c"), (false, false));
    }
}

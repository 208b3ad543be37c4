//! Which backends use a kept sandbox: a file for each, named after the backend, below the container's id. Its label is in it, which
//! tells where the backend's files are.
//!
//! Only backends of this machine are known; a container that one of another machine has made is never taken for an orphan.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::PathBuf,
};

use gloveport_platform::{private_directory, private_file};
use gloveport_provider::{
    ProviderError,
    backend::{self, Backends, Known},
};

/// Most bytes of a label.
const LONGEST: u64 = 4096;

/// This backend, and what is known of others.
#[derive(Debug)]
pub(crate) struct Holders {
    backends: Backends,
}

impl Holders {
    pub(crate) fn new(backends: PathBuf) -> Self {
        Self { backends: Backends::new(backends) }
    }

    /// The id of this backend, which lives from now on in the eyes of others.
    pub(crate) fn own(&self) -> Result<String, ProviderError> {
        self.backends.own()
    }

    /// No longer lives in the eyes of others.
    pub(crate) fn vanish(&self) {
        self.backends.vanish();
    }

    /// This backend as a label tells it.
    pub(crate) fn label(&self) -> Result<String, ProviderError> {
        self.backends.label()
    }

    /// Whether the backend of a label lives; one of another machine, or of another user, does as far as we know.
    pub(crate) fn lives(&self, label: &str) -> bool {
        self.backends.known(label) != Known::Dead
    }

    /// This backend uses a container.
    pub(crate) fn hold(&self, container: &str) -> Result<(), ProviderError> {
        let directory = self.directory(container);
        let file = directory.join(self.own()?);
        let failed = |source| ProviderError::File { action: "make", path: file.clone(), source };
        private_directory().recursive(true).create(&directory).map_err(failed)?;
        let mut opened = private_file().write(true).create(true).truncate(true).open(&file).map_err(&failed)?;
        opened.write_all(self.label()?.as_bytes()).map_err(failed)
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
        let files = fs::read_dir(self.directory(container)).into_iter().flatten().flatten();
        let lives = files.map(|entry| {
            let label = File::open(entry.path()).and_then(|file| io::read_to_string(file.take(LONGEST)));
            match label {
                Ok(label) if !label.is_empty() => self.lives(&label),
                // One that has just been made, or that an earlier version has made.
                _ => backend::lives(self.backends.directory(), &entry.file_name().to_string_lossy()),
            }
        });
        lives.fold((false, false), |(living, dead), lives| (living || lives, dead || !lives))
    }

    /// Forgets a container that is gone.
    pub(crate) fn forget(&self, container: &str) {
        // Nothing depends on it: the id of a container is never used again.
        let _absent = fs::remove_dir_all(self.directory(container));
    }

    fn directory(&self, container: &str) -> PathBuf {
        self.backends.directory().with_file_name("docker").join(container)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

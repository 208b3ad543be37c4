//! The directory: account, certificate with its key, certificates of challenges, and a lock for whoever renews.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use gloveport_platform::{private_directory, private_file};

use crate::AcmeError;

const ACCOUNT: &str = "account.json";
/// The key, and the chain that begins with the certificate.
const CERTIFICATE: &str = "certificate.pem";
const LOCK: &str = "lock";
/// What files of challenges begin with; the name follows.
const CHALLENGE: &str = "challenge-";

#[derive(Debug)]
pub(crate) struct Store(PathBuf);

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AcmeError {
    let path = path.to_owned();
    move |source| AcmeError::Store { what, path, source }
}

impl Store {
    /// Makes the directory, for its owner alone.
    pub(crate) fn new(directory: PathBuf) -> Result<Self, AcmeError> {
        let made = private_directory().recursive(true).create(&directory);
        made.map_err(failed("make the directory", &directory))?;
        Ok(Self(directory))
    }

    pub(crate) fn certificate_file(&self) -> PathBuf {
        self.0.join(CERTIFICATE)
    }

    pub(crate) fn certificate(&self) -> Result<Option<String>, AcmeError> {
        Self::read(&self.certificate_file())
    }

    pub(crate) fn set_certificate(&self, text: &str) -> Result<(), AcmeError> {
        Self::write(&self.certificate_file(), text)
    }

    pub(crate) fn account(&self) -> Result<Option<String>, AcmeError> {
        Self::read(&self.0.join(ACCOUNT))
    }

    pub(crate) fn set_account(&self, text: &str) -> Result<(), AcmeError> {
        Self::write(&self.0.join(ACCOUNT), text)
    }

    pub(crate) fn challenge(&self, name: &str) -> Result<Option<String>, AcmeError> {
        Self::read(&self.challenge_file(name))
    }

    pub(crate) fn set_challenge(&self, name: &str, text: &str) -> Result<(), AcmeError> {
        Self::write(&self.challenge_file(name), text)
    }

    /// Nobody asks for it any more.
    pub(crate) fn remove_challenge(&self, name: &str) {
        let path = self.challenge_file(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "the certificate of a challenge is left");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// The right to renew, until the file is dropped; none if another process has it.
    pub(crate) fn lock(&self) -> Result<Option<File>, AcmeError> {
        let path = self.0.join(LOCK);
        let file = private_file().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(failed("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
        }
    }

    /// Names are those of the options, which have no slash.
    fn challenge_file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{CHALLENGE}{name}.pem"))
    }

    fn read(path: &Path) -> Result<Option<String>, AcmeError> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", path)(error)),
        }
    }

    /// Whole or not at all, and for its owner alone.
    fn write(path: &Path, text: &str) -> Result<(), AcmeError> {
        let new = path.with_extension("new");
        let written = || {
            // One that a process left when it ended has its own mode.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let mut file = private_file().write(true).create_new(true).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, path)
        };
        written().map_err(failed("write", path))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_kept_is_its_owners_alone_and_one_at_a_time_may_renew() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a/b");
        let store = Store::new(place.clone()).unwrap();
        assert_eq!(store.certificate().unwrap(), None);
        store.set_certificate("one").unwrap();
        store.set_certificate("two").unwrap();
        assert_eq!(store.certificate().unwrap().as_deref(), Some("two"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place), mode(&store.certificate_file())), (0o700, 0o600));
        store.set_challenge("example.org", "x").unwrap();
        assert_eq!(store.challenge("example.org").unwrap().as_deref(), Some("x"));
        store.remove_challenge("example.org");
        store.remove_challenge("example.org");
        assert_eq!(store.challenge("example.org").unwrap(), None);
        let held = store.lock().unwrap();
        assert!(held.is_some() && Store::new(place.clone()).unwrap().lock().unwrap().is_none());
        drop(held);
        assert!(store.lock().unwrap().is_some());
    }
}

//! What whoever starts for real prepares: the cache directory and the secret (configuration 7).

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use gloveport_protocol::Secret;

use crate::{error::ConfigError, model::Config};

/// Name of the stored secret.
pub const JWT_SECRET_FILE: &str = ".jwt_secret";

/// Where the secret is kept between runs, under the name `.jwt_secret`.
pub trait SecretStore {
    /// What is stored; nothing if nothing is.
    fn read(&self) -> io::Result<Option<String>>;

    /// Stores the text unless something is there by now, and gives what is stored then.
    fn create(&self, text: &str) -> io::Result<String>;
}

/// A directory of this machine.
#[derive(Clone, Debug)]
pub struct LocalSecretStore {
    directory: PathBuf,
}

impl LocalSecretStore {
    /// Keeps the secret in `file_store_path`; `~` at its start is the home.
    pub fn new(file_store_path: &str, home: Option<&Path>) -> Self {
        let directory = match (file_store_path.strip_prefix('~'), home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(file_store_path),
        };
        Self { directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.join(JWT_SECRET_FILE)
    }
}

impl SecretStore for LocalSecretStore {
    fn read(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(self.file()) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Only the owner can read the file. It appears with its content, so that another process reads all of it.
    fn create(&self, text: &str) -> io::Result<String> {
        fs::create_dir_all(&self.directory)?;
        let suffix = random_hex().map_err(|error| io::Error::other(error.to_string()))?;
        let new = self.directory.join(format!("{JWT_SECRET_FILE}.{suffix}"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let linked = file.write_all(text.as_bytes()).map(|()| fs::hard_link(&new, self.file()));
        match linked {
            Ok(Ok(())) => fs::remove_file(&new).map(|()| text.to_owned()),
            Ok(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&new)?;
                fs::read_to_string(self.file())
            }
            // A file system without links.
            Ok(Err(_)) => fs::rename(&new, self.file()).map(|()| text.to_owned()),
            Err(error) => fs::remove_file(&new).and(Err(error)),
        }
    }
}

impl Config {
    /// Makes the directory for what can be made again, if one is configured.
    pub fn make_cache_directory(&self) -> Result<(), ConfigError> {
        if self.cache_dir.is_empty() {
            return Ok(());
        }
        let path = PathBuf::from(&self.cache_dir);
        fs::create_dir_all(&path).map_err(|source| ConfigError::CacheDirectory { path, source })
    }

    /// Sets `jwt_secret` from the store, which gets a new one if it has none. A configured secret stays.
    pub fn keep_jwt_secret(&mut self, store: &dyn SecretStore) -> Result<(), ConfigError> {
        if self.jwt_secret.as_ref().is_some_and(|secret| !secret.is_empty()) {
            return Ok(());
        }
        let stored = store.read().map_err(ConfigError::ReadSecret)?;
        let secret = match stored {
            Some(secret) => secret,
            None => store.create(new_jwt_secret()?.expose()).map_err(ConfigError::StoreSecret)?,
        };
        self.jwt_secret = Some(Secret::new(secret));
        Ok(())
    }
}

/// A new secret for `jwt_secret`: 32 hexadecimal digits. [`Config::keep_jwt_secret`] makes and stores one by itself;
/// this is for stores that answer later.
pub fn new_jwt_secret() -> Result<Secret, ConfigError> {
    random_hex().map(Secret::new).map_err(ConfigError::Random)
}

/// 128 random bits as 32 hexadecimal digits.
fn random_hex() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_secret_is_made_once_and_read_afterwards() {
        let home = tempfile::tempdir().unwrap();
        let store = LocalSecretStore::new("~/.openhands", Some(home.path()));
        let mut config = Config::default();
        config.keep_jwt_secret(&store).unwrap();
        let secret = config.jwt_secret.clone().unwrap();
        assert_eq!(secret.expose().len(), 32);
        assert!(secret.expose().bytes().all(|byte| byte.is_ascii_hexdigit()));
        let file = home.path().join(".openhands/.jwt_secret");
        assert_eq!(fs::read_to_string(&file).unwrap(), secret.expose());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);

        let mut again = Config::default();
        again.keep_jwt_secret(&store).unwrap();
        assert_eq!(again.jwt_secret, config.jwt_secret);
        let mut own = Config { jwt_secret: Some("mine".into()), ..Config::default() };
        own.keep_jwt_secret(&store).unwrap();
        assert_eq!(own.jwt_secret, Some("mine".into()));
        // Of two that make one at once, the first wins.
        assert_eq!(store.create("other").unwrap(), secret.expose());
    }

    #[test]
    fn a_secret_that_cannot_be_stored_is_an_error_that_tells_why() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let store = LocalSecretStore::new(home.path().join("file/x").to_str().unwrap(), None);
        let error = Config::default().keep_jwt_secret(&store).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the stored `.jwt_secret`: Not a directory"), "{error}");
    }

    #[test]
    fn the_cache_directory_is_made_with_all_above_it() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join("a/b");
        let mut config = Config { cache_dir: cache.to_str().unwrap().to_owned(), ..Config::default() };
        config.make_cache_directory().unwrap();
        config.make_cache_directory().unwrap();
        assert!(cache.is_dir());
        fs::write(home.path().join("file"), "").unwrap();
        config.cache_dir = home.path().join("file").to_str().unwrap().to_owned();
        let error = config.make_cache_directory().unwrap_err().to_string();
        assert!(error.starts_with("cannot make the cache directory") && error.contains("File exists"), "{error}");
        config.cache_dir = String::new();
        config.make_cache_directory().unwrap();
    }
}

//! Where things are in the state directory.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use gloveport_contract::local::directory;
pub(crate) use gloveport_contract::local::directory::{
    EARLIER_LOG, ENDED, LOCK, LOG, OLD, PAUSED, PLACE, RECORD, VERSION, move_unless_there,
};
use gloveport_provider::{ProviderError, SandboxId};

use crate::fault::{self, engine};

/// Backends that use it.
pub(crate) const HOLDERS: &str = "holders";

/// The state directory.
#[derive(Clone, Debug)]
pub(crate) struct State {
    root: PathBuf,
}

impl State {
    /// The state below this directory. Nothing is made yet.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn servers(&self) -> PathBuf {
        self.root.join("new")
    }

    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    pub(crate) fn sandbox(&self, id: &SandboxId) -> PathBuf {
        self.sandboxes().join(id.as_str())
    }

    pub(crate) fn old(&self) -> PathBuf {
        self.root.join(OLD)
    }

    /// Images that root directories of sandboxes are made from.
    pub(crate) fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    pub(crate) fn backends(&self) -> PathBuf {
        self.root.join("backends")
    }

    /// Makes the directories that are missing, for this user alone. One of somebody else is refused.
    pub(crate) fn prepare(&self) -> Result<(), ProviderError> {
        for directory in [self.servers(), self.sandboxes(), self.old(), self.backends()] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&directory)
                .map_err(fault::file("make the directory", &directory))?;
            let mode = fs::metadata(&directory).map_err(fault::file("look at", &directory))?.permissions().mode();
            if mode & 0o777 != 0o700 {
                // It was there before, open to others, and holds keys.
                fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))
                    .map_err(fault::file("close to other users", &directory))?;
            }
        }
        Ok(())
    }
}

/// The names in a directory; none if it is missing.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>, ProviderError> {
    let read = fault::file("list", directory);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read(error)),
    };
    let mut names: Vec<String> =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// 32 random hexadecimal digits.
pub(crate) fn random_name() -> Result<String, ProviderError> {
    directory::random_name().map_err(|error| engine("give random numbers", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_were_open_to_others_are_closed() {
        let root = tempfile::tempdir().unwrap();
        let state = State::new(root.path().join("state"));
        state.prepare().unwrap();
        fs::set_permissions(state.sandboxes(), fs::Permissions::from_mode(0o755)).unwrap();
        state.prepare().unwrap();
        assert_eq!(fs::metadata(state.sandboxes()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

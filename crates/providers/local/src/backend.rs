//! Which backends live: each has a file that it keeps locked.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use gloveport_provider::ProviderError;

use crate::{fault, lock, state::State};

/// This backend.
#[derive(Debug)]
pub(crate) struct Backend {
    name: String,
    lock: Mutex<Option<File>>,
}

impl Backend {
    /// A backend of this name, which must be random. It does not live yet in the eyes of others.
    pub(crate) fn new(name: String) -> Self {
        Self { name, lock: Mutex::new(None) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Lives from now on in the eyes of others.
    pub(crate) fn appear(&self, state: &State) -> Result<(), ProviderError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path(state, &self.name);
        while lock.is_none() {
            let made = lock::make_locked(&path).map_err(fault::file("make", &path))?;
            // Between its making and its lock somebody may have taken it for that of a dead backend.
            if lock::is_at(&made, &path) {
                *lock = Some(made);
            }
        }
        Ok(())
    }

    /// No longer lives in the eyes of others.
    pub(crate) fn vanish(&self, state: &State) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.take().is_some() {
            // A file without a lock says the same.
            let _left = fs::remove_file(path(state, &self.name));
        }
    }
}

/// Whether the backend of this name lives.
pub(crate) fn lives(state: &State, name: &str) -> bool {
    match lock::try_lock(&path(state, name)) {
        Ok(lock) => lock.is_none(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes what a dead backend left; whether it was dead.
pub(crate) fn bury(state: &State, name: &str) -> io::Result<bool> {
    let path = path(state, name);
    let Some(lock) = lock::try_lock(&path)? else { return Ok(false) };
    if lock::is_at(&lock, &path) {
        fs::remove_file(&path)?;
    }
    Ok(true)
}

fn path(state: &State, name: &str) -> PathBuf {
    state.backends().join(name)
}

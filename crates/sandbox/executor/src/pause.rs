//! All processes of the tools stopped where they are.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use gloveport_sys::freeze::{Frozen, freeze};
use tokio::task::spawn_blocking;

use crate::error::PauseError;

/// Whether the tools are paused.
#[derive(Debug)]
pub(crate) struct Pause {
    /// The guard that owns their processes.
    guard: Option<u32>,
    paused: AtomicBool,
    since: Mutex<Instant>,
    /// One pause or resumption at a time. Holds what was stopped.
    frozen: tokio::sync::Mutex<Option<Frozen>>,
}

impl Pause {
    pub(crate) fn new(guard: Option<u32>) -> Self {
        let (paused, since) = (AtomicBool::new(false), Mutex::new(Instant::now()));
        Self { guard, paused, since, frozen: tokio::sync::Mutex::new(None) }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    pub(crate) fn since(&self) -> Instant {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn pause(&self) -> Result<(), PauseError> {
        let guard = self.guard.ok_or(PauseError::NoGuard)?;
        let mut frozen = self.frozen.lock().await;
        if frozen.is_some() {
            return Ok(());
        }
        // Nothing is started by new requests from here on.
        self.set(true);
        // Should the caller leave meanwhile, the processes go on as soon as they have all been stopped.
        let mut announced = Announced { pause: self, kept: false };
        match spawn_blocking(move || freeze(guard)).await {
            Ok(Ok(stopped)) => {
                tracing::info!(processes = stopped.count(), "paused");
                *frozen = Some(stopped);
                announced.kept = true;
                Ok(())
            }
            Ok(Err(error)) => Err(error.into()),
            Err(error) => Err(PauseError::Lost(error.to_string())),
        }
    }

    pub(crate) async fn resume(&self) {
        let mut frozen = self.frozen.lock().await;
        if let Some(stopped) = frozen.take() {
            tracing::info!(processes = stopped.count(), "resumed");
            // A few system calls for each.
            drop(stopped);
            self.set(false);
        }
    }

    fn set(&self, paused: bool) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.paused.store(paused, Ordering::Release);
    }
}

/// A pause that is announced, and taken back if it does not come.
struct Announced<'a> {
    pause: &'a Pause,
    kept: bool,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.pause.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tools_without_a_guard_are_not_paused() {
        let pause = Pause::new(None);
        assert!(matches!(pause.pause().await, Err(PauseError::NoGuard)));
        assert!(!pause.is_paused());
        // Of what is not paused it is no error.
        pause.resume().await;
        assert!(!pause.is_paused());
    }
}

//! The containers of a backend that wait, each for one session.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gloveport_protocol::Secret;

/// A container that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) engine_id: String,
    pub(crate) kind: Kind,
    /// URL of its server.
    pub(crate) url: String,
    /// The key with which it waits.
    pub(crate) key: Secret,
}

/// What containers have in common that can become the same sandboxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The engine's id of the image; its name may mean another one later.
    pub(crate) image: String,
    pub(crate) has_editor: bool,
}

/// The containers that wait.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    waiting: Mutex<VecDeque<Waiting>>,
    /// Who fills up does so alone.
    pub(crate) filling: tokio::sync::Mutex<()>,
}

impl Pool {
    pub(crate) fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one of a kind that waits longest. Nobody else gets it.
    pub(crate) fn take(&self, kind: &Kind) -> Option<Waiting> {
        let mut waiting = self.lock();
        let at = waiting.iter().position(|it| it.kind == *kind)?;
        waiting.remove(at)
    }

    /// How many of a kind wait.
    pub(crate) fn count(&self, kind: &Kind) -> usize {
        self.lock().iter().filter(|it| it.kind == *kind).count()
    }
}

//! What a backend has of the engine and of its sandboxes.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use gloveport_client::Pool as Clients;
use gloveport_docker_engine::Engine;
use gloveport_provider::SandboxId;
use tokio::{io::AsyncWrite, sync::OnceCell};
use tokio_util::sync::CancellationToken;

use crate::{DockerOptions, held::Holders, ports::LockedPort, waiting::Pool};

/// Standard input of a container.
pub(crate) type Lifeline = Pin<Box<dyn AsyncWrite + Send>>;

/// What this backend has of a sandbox.
pub(crate) struct Own {
    /// Its standard input, whose end is its own.
    pub(crate) lifeline: Option<Lifeline>,
    /// Ports that nobody else takes.
    pub(crate) _ports: Option<[LockedPort; 4]>,
    /// It is deleted when the backend ends.
    pub(crate) ends_with_us: bool,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("lifeline", &self.lifeline.is_some()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: DockerOptions,
    pub(crate) holders: Holders,
    /// The volume with our program, once it is known to be filled.
    pub(crate) copied: OnceCell<String>,
    pub(crate) own: Mutex<HashMap<SandboxId, Own>>,
    /// Kept containers that this backend uses, by the engine's id.
    pub(crate) held: Mutex<BTreeSet<String>>,
    /// Containers that are started ahead.
    pub(crate) pool: Pool,
    /// For their servers.
    pub(crate) clients: OnceLock<Clients>,
    pub(crate) closing: CancellationToken,
}

impl Inner {
    pub(crate) fn own(&self) -> MutexGuard<'_, HashMap<SandboxId, Own>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

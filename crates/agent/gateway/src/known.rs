//! Where sandboxes are, remembered for a moment, so that not every request to one is a question to the engine.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gloveport_protocol::Secret;
use gloveport_provider::{Sandbox, SandboxId, SandboxState};

/// How long it is remembered.
const FRESH: Duration = Duration::from_secs(2);
/// Most sandboxes that are remembered.
const MOST: usize = 16 * 1024;

/// The way to a sandbox.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) state: SandboxState,
    pub(crate) url: Option<String>,
    pub(crate) urls: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, Secret>,
    /// Whether its server asks for a key.
    pub(crate) has_key: bool,
}

impl Place {
    pub(crate) fn of(sandbox: Sandbox) -> Self {
        let has_key = sandbox.session_key.is_some();
        Self { state: sandbox.state, url: sandbox.url, urls: sandbox.urls, headers: sandbox.headers, has_key }
    }
}

/// The places of sandboxes.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<SandboxId, (Instant, Arc<Place>)>>);

impl Known {
    /// What is known of a sandbox and not old.
    pub(crate) fn get(&self, id: &SandboxId) -> Option<Arc<Place>> {
        let known = self.lock();
        let (since, place) = known.get(id)?;
        (since.elapsed() < FRESH).then(|| Arc::clone(place))
    }

    /// Remembers a place.
    pub(crate) fn set(&self, id: SandboxId, place: Place) -> Arc<Place> {
        let mut known = self.lock();
        if known.len() >= MOST {
            known.retain(|_, (since, _)| since.elapsed() < FRESH);
        }
        if known.len() >= MOST {
            known.clear();
        }
        let place = Arc::new(place);
        known.insert(id, (Instant::now(), Arc::clone(&place)));
        place
    }

    /// Something has changed.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, (Instant, Arc<Place>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

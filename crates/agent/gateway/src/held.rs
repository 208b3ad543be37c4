//! A place for a sandbox that this gateway holds in the database, until somebody was told of the sandbox.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_gateway_store::{Place, Store, StoreError};
use gloveport_provider::{Sandbox, SandboxId};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};
use tokio_util::task::AbortOnDropHandle;

/// How long a reservation holds that nobody renews: so long a gateway that has died keeps its places.
pub(crate) const HOLD: Duration = Duration::from_secs(30);
/// Pause between two renewals.
const RENEW: Duration = Duration::from_secs(10);
/// How long after the last renewal nobody else has the place, whatever clocks say.
const CERTAIN: Duration = Duration::from_secs(20);

/// A sandbox of which nobody was told.
#[derive(Debug)]
pub(crate) struct Untold {
    pub(crate) sandbox: Sandbox,
    /// Its place, where a database keeps places.
    pub(crate) held: Option<Held>,
}

/// A place that is held, and released when nothing comes of it.
#[derive(Debug)]
pub(crate) struct Held {
    store: Store,
    place: Option<Place>,
    /// Why nothing came of it.
    pub(crate) reason: String,
    renewed: Arc<Mutex<Instant>>,
    _renewing: AbortOnDropHandle<()>,
}

impl Held {
    pub(crate) fn new(store: Store, place: Place) -> Self {
        let renewed = Arc::new(Mutex::new(Instant::now()));
        let renewing = tokio::spawn({
            let (store, place, renewed) = (store.clone(), place.clone(), Arc::clone(&renewed));
            async move {
                loop {
                    sleep(RENEW).await;
                    // What is asked for later holds longer.
                    let now = Instant::now();
                    match store.renew(&place, HOLD).await {
                        Ok(true) => *renewed.lock().unwrap_or_else(PoisonError::into_inner) = now,
                        Ok(false) => return,
                        Err(error) => tracing::warn!(%error, "a reservation was not renewed"),
                    }
                }
            }
        });
        let reason = "the request was given up".to_owned();
        Self { store, place: Some(place), reason, renewed, _renewing: AbortOnDropHandle::new(renewing) }
    }

    /// The sandbox is there; the place is held on. `false` if it was taken from this gateway.
    pub(crate) async fn made(&self, id: &SandboxId) -> Result<bool, StoreError> {
        match &self.place {
            Some(place) => self.store.made(place, id.as_str()).await,
            None => Ok(false),
        }
    }

    /// Somebody knows of the sandbox; `false` if the place was taken from this gateway. Should that not be written, the sandbox
    /// is noted when its reservation is over.
    pub(crate) async fn told(mut self, id: &SandboxId) -> Result<bool, StoreError> {
        match self.place.take() {
            Some(place) => self.store.started(&place, id.as_str()).await,
            None => Ok(false),
        }
    }

    /// The sandbox is to be deleted, and the place is held until it is. `false` if somebody may know of it.
    pub(crate) async fn withdrawn(&self, id: &SandboxId) -> bool {
        let Some(place) = &self.place else { return false };
        match self.store.withdrawn(place, id.as_str(), HOLD).await {
            Ok(is_its) => is_its,
            Err(error) => {
                tracing::warn!(%id, %error, "the database does not know that a sandbox is being deleted");
                self.renewed.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < CERTAIN
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        // Without a runtime the whole program ends, and the reservation after its time.
        let Ok(runtime) = Handle::try_current() else { return };
        let (store, reason) = (self.store.clone(), mem::take(&mut self.reason));
        // It ends with the limit of the call.
        drop(runtime.spawn(async move {
            if let Err(error) = store.released(&place, &reason).await {
                tracing::warn!(%error, "a reservation is left to its time");
            }
        }));
    }
}

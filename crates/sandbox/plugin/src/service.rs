//! A program that serves: started when it is used, watched, started again when it ends, stopped when nobody uses it.
//!
//! One task owns the program and all that belongs to it; a [`Service`] sends requests to that task.

mod attempt;
mod failure;
mod health;
mod listener;
mod log;
mod pauses;
mod place;
mod program;
mod set_up;
mod socket;
mod spec;
mod standing;
mod supervisor;
mod words;

use std::{sync::Arc, time::Instant};

use tokio::sync::{mpsc, oneshot, watch};

use self::supervisor::{Grant, Request, Supervisor, Use};
pub use self::{
    log::ProgramLog,
    program::ended,
    socket::connect_socket,
    spec::{Endpoint, Health, Listens, ServiceSpec},
};
pub(crate) use self::{set_up::SetUp, standing::Standing, words::Values};
use crate::plugin::{PluginError, PluginHost, PluginState};

/// Requests on their way to the task of a service; more wait.
const REQUESTS: usize = 64;

/// A supervised program that serves: started when it is used, watched, started again when it ends, stopped when nobody
/// uses it. When it is dropped its program is ended in the background.
#[derive(Debug)]
pub struct Service {
    name: String,
    listens: Listens,
    requests: mpsc::Sender<Request>,
    state: watch::Receiver<PluginState>,
    since: watch::Receiver<Instant>,
    log: Arc<ProgramLog>,
}

/// A use of a service. While it is held the service is not stopped for want of use.
#[derive(Debug)]
pub struct Lease {
    endpoint: Endpoint,
    _use: Use,
}

impl Lease {
    /// Where the service is reached.
    ///
    /// A service that ends while it is leased is started again at the same place, if that is still free then.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Service {
    /// A service that is not started, or begins to start if it is eager. Must be called within a tokio runtime.
    pub fn new(spec: ServiceSpec, host: PluginHost) -> Arc<Self> {
        Self::with_standing(spec, host, Standing::new())
    }

    /// A service that tells by `standing` how it stands.
    pub(crate) fn with_standing(spec: ServiceSpec, host: PluginHost, standing: Standing) -> Arc<Self> {
        let (requests, receiver) = mpsc::channel(REQUESTS);
        let log = Arc::new(ProgramLog::new(spec.name.clone()));
        let service = Self {
            name: spec.name.clone(),
            listens: spec.listens.clone(),
            requests,
            state: standing.state(),
            since: standing.since(),
            log: Arc::clone(&log),
        };
        tokio::spawn(Supervisor::new(spec, host, standing, log, receiver).run());
        Arc::new(service)
    }

    /// Starts the service if it does not run, waits until it is healthy, and counts as a use until it is dropped.
    ///
    /// Many at once start it once, and one that is given up ends the start for nobody. After five failed starts in a
    /// row all that wait get the error, and the next one tries again.
    pub async fn lease(&self) -> Result<Lease, PluginError> {
        if self.listens == Listens::Nowhere {
            let reason = format!("the service {} listens nowhere, so nothing can be asked of it", self.name);
            return Err(PluginError::new(reason, "let it listen on a port or at a socket"));
        }
        let Grant { endpoint, used } = self.grant().await?;
        let endpoint = endpoint.ok_or_else(|| self.stopped())?;
        Ok(Lease { endpoint, _use: used })
    }

    /// Starts the service if it does not run, and waits until it is healthy. This is no use of it.
    pub async fn start(&self) -> Result<(), PluginError> {
        self.grant().await.map(drop)
    }

    async fn grant(&self) -> Result<Grant, PluginError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::Lease(reply)).await.map_err(|_| self.stopped())?;
        answer.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    fn stopped(&self) -> PluginError {
        PluginError::new(format!("the service {} is stopped", self.name), "start the sandbox again")
    }

    /// How it stands, and every change of that.
    pub fn state(&self) -> watch::Receiver<PluginState> {
        self.state.clone()
    }

    /// Since when it stands so.
    pub fn since(&self) -> Instant {
        *self.since.borrow()
    }

    /// The last bytes that it printed (256 KiB), those of its set-up and of earlier starts among them.
    pub fn logs(&self) -> Vec<u8> {
        self.log.bytes()
    }

    /// Ends it for good, and returns when nothing of it is left.
    pub async fn stop(&self) {
        let (reply, done) = oneshot::channel();
        if self.requests.send(Request::Stop(reply)).await.is_ok() {
            // The answer, or the end of the task: either way nothing is left.
            let _ended = done.await;
        }
    }
}

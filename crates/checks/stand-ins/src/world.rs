//! What a service has, and what a face says of it.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{body::Bytes, http::request::Parts, response::Response};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use crate::{Kind, Machine, fault::Wire};

/// A service that several tasks use.
pub type Shared<F> = Arc<Mutex<World<F>>>;

/// A request for a face.
pub struct Asked {
    /// Method, path and headers.
    pub parts: Parts,
    /// The whole body.
    pub body: Bytes,
}

/// Where a request goes.
pub enum Route {
    /// To the face.
    Face,
    /// To a port of a sandbox.
    Port {
        /// The sandbox.
        id: String,
        /// The port in it.
        port: u16,
        /// Path and query there.
        path: String,
    },
    /// Nowhere.
    Refused(Response),
}

/// What one service says.
pub trait Face: Default + Send + Sized + 'static {
    /// What a sandbox has beside what the core knows.
    type More: Send + 'static;
    /// Its name, for the command line and for messages.
    const NAME: &'static str;
    /// The key that it takes.
    const KEY: &'static str;

    /// The variables with which the service's own SDK comes here.
    fn variables(url: &str) -> Vec<(&'static str, String)>;
    /// Where a request goes: to the face, but for requests to ports of sandboxes.
    fn route(world: &mut World<Self>, parts: &Parts) -> Route;
    /// What time does to sandboxes. It is called before each request.
    fn turn(world: &mut World<Self>);
    /// The answer to a request.
    fn answer(world: Shared<Self>, asked: Asked) -> BoxFuture<'static, Response>;
    /// A refusal that a test wants, with this status and message.
    fn refusal(status: u16, message: &str) -> Response {
        crate::answers::refusal(status, message)
    }
    /// What a sandbox was made from, and what has become of it beside its state: for programs that compare what clients leave.
    fn more(more: &Self::More) -> Value;
    /// What the service keeps beside sandboxes, likewise.
    fn kept(&self) -> Value;
    /// What is remembered of the body of a request.
    fn read(_parts: &Parts, body: &Bytes) -> Value {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

/// A sandbox: files and processes, labels, a state, and what the face knows of it.
pub struct Sandbox<M> {
    /// None once it has ended for good.
    pub machine: Option<Arc<Machine>>,
    /// What the client has said of it.
    pub labels: BTreeMap<String, String>,
    /// In the words of the service.
    pub state: String,
    /// When it was made, by the clock of the service.
    pub created: SystemTime,
    /// What the face knows of it.
    pub more: M,
}

/// What a service has.
pub struct World<F: Face> {
    /// Its own address, without a slash at the end.
    pub url: String,
    /// Directory of all its files.
    pub root: PathBuf,
    /// How far sandboxes are apart.
    pub kind: Kind,
    /// Sandboxes by id.
    pub sandboxes: BTreeMap<String, Sandbox<F::More>>,
    /// What the face has beside sandboxes.
    pub face: F,
    /// How long a change of state takes.
    pub slow: Duration,
    /// Most members of a page of a list.
    pub page: usize,
    pub(crate) wire: Wire,
    /// By how much its clock is ahead.
    pub(crate) ahead: Duration,
    changes: watch::Sender<u64>,
}

/// What a service has, for this task alone. It is not held while anything is waited for.
pub fn lock<F: Face>(world: &Shared<F>) -> MutexGuard<'_, World<F>> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F: Face> World<F> {
    pub(crate) fn new(url: String, root: PathBuf, kind: Kind) -> Self {
        Self {
            url,
            root,
            kind,
            sandboxes: BTreeMap::new(),
            face: F::default(),
            slow: Duration::ZERO,
            page: 100,
            wire: Wire::default(),
            ahead: Duration::ZERO,
            changes: watch::Sender::new(0),
        }
    }

    /// The time by the clock of the service.
    pub fn now(&self) -> SystemTime {
        SystemTime::now() + self.ahead
    }

    /// A new name with this beginning, also beside other services of this program.
    pub fn next(beginning: &str) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        format!("{beginning}{:012}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// Says that a state has changed to those who wait for one.
    pub fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Hears of changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// A time as many services write it.
pub fn milliseconds(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

//! Watches whose events are kept until somebody asks. They are this gateway's, and end when nobody asks for long.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use gloveport_provider::SandboxId;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use crate::connect::{Code, ConnectError, Events};

/// Watches of one sandbox.
const OF_ONE: usize = 64;
/// Watches in all.
const IN_ALL: usize = 4096;
/// Events that are kept.
const EVENTS: usize = 4096;
/// How long nobody may ask.
const PATIENCE: Duration = Duration::from_mins(10);

/// Watches whose events are kept.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    all: Mutex<HashMap<String, Watcher>>,
}

#[derive(Debug)]
struct Watcher {
    sandbox: SandboxId,
    kept: Arc<Mutex<Kept>>,
    asked: Instant,
    _task: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Value>,
    /// Why there are no more.
    end: Option<ConnectError>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    /// Keeps what happens in a directory; answers with an id that nobody can guess.
    pub(crate) fn add(&self, sandbox: &SandboxId, events: Events) -> Result<String, ConnectError> {
        let id = gloveport_ids::random::<16>().map_err(|error| {
            ConnectError::new(Code::Internal, format!("the system gives no random numbers: {error}"))
        })?;
        self.prune();
        let mut all = locked(&self.all);
        let of_one = all.values().filter(|watcher| watcher.sandbox == *sandbox).count();
        if of_one >= OF_ONE || all.len() >= IN_ALL {
            let message =
                format!("{OF_ONE} directories of a sandbox can be watched at a time; stop one of the watches");
            return Err(ConnectError::new(Code::ResourceExhausted, message));
        }
        let kept = Arc::new(Mutex::new(Kept::default()));
        let task = tokio::spawn(keep(events, Arc::clone(&kept)));
        let watcher =
            Watcher { sandbox: sandbox.clone(), kept, asked: Instant::now(), _task: AbortOnDropHandle::new(task) };
        all.insert(id.clone(), watcher);
        Ok(id)
    }

    /// Ends those that nobody has asked about for long.
    pub(crate) fn prune(&self) {
        locked(&self.all).retain(|_, watcher| watcher.asked.elapsed() < PATIENCE);
    }

    /// What has happened since the last call.
    pub(crate) fn take(&self, sandbox: &SandboxId, id: &str) -> Result<Vec<Value>, ConnectError> {
        let mut all = locked(&self.all);
        let watcher = all.get_mut(id).filter(|watcher| watcher.sandbox == *sandbox).ok_or_else(|| unknown(id))?;
        watcher.asked = Instant::now();
        let mut kept = locked(&watcher.kept);
        if kept.events.is_empty()
            && let Some(end) = &kept.end
        {
            return Err(end.clone());
        }
        Ok(kept.events.drain(..).collect())
    }

    /// Ends a watch.
    pub(crate) fn remove(&self, sandbox: &SandboxId, id: &str) -> Result<(), ConnectError> {
        let mut all = locked(&self.all);
        if all.get(id).is_none_or(|watcher| watcher.sandbox != *sandbox) {
            return Err(unknown(id));
        }
        all.remove(id);
        Ok(())
    }
}

fn unknown(id: &str) -> ConnectError {
    ConnectError::new(Code::NotFound, format!("watcher with id {id} not found"))
}

async fn keep(mut events: Events, kept: Arc<Mutex<Kept>>) {
    let end = loop {
        match events.next().await {
            Some(Ok(event)) => {
                let mut kept = locked(&kept);
                if kept.events.len() >= EVENTS {
                    let message = format!("more than {EVENTS} events have come that nobody asked for; watch again");
                    break ConnectError::new(Code::DataLoss, message);
                }
                kept.events.push_back(event);
            }
            None => break ConnectError::new(Code::Unavailable, "the watch has ended; watch again"),
            Some(Err(error)) => break error,
        }
    };
    locked(&kept).end = Some(end);
}

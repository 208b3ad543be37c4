//! Commands: started, stopped, waited for, ended with the sandbox.

use std::{
    collections::HashMap,
    ffi::OsString,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_sys::Surroundings;
use tokio::{sync::watch, task::spawn_blocking, time::interval};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use crate::{
    event::{self, Command, Event},
    log::Log,
    run,
};

/// Commands that may run at the same time.
pub const RUNNING: usize = 256;
/// Most bytes of a command.
pub const LONGEST: usize = 1024 * 1024;
/// Seconds that a command may take if nothing is said.
pub const TIMEOUT: i64 = 300;
/// Least time between two looks for events that are too old.
const LEAST_LOOK: u64 = 60;

/// How commands run, and where their events are kept.
#[derive(Debug, Clone)]
pub struct BashOptions {
    /// Directory, user and environment of commands.
    pub surroundings: Surroundings,
    /// The program that gets a command, with the arguments before it.
    pub shell: Vec<OsString>,
    /// Where events are kept.
    pub events: PathBuf,
    /// How long; for ever if absent.
    pub retention: Option<Duration>,
}

/// What somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What the shell is given.
    pub command: String,
    /// Directory; a relative one begins where the server does.
    pub cwd: Option<String>,
    /// Seconds that it may take.
    pub timeout: i64,
}

/// Why a command is not started.
#[derive(Debug, thiserror::Error)]
pub enum BashError {
    /// Too many run.
    #[error("{RUNNING} commands run already; wait for one, or stop one")]
    TooMany,
    /// It is too long for a program's arguments.
    #[error("the command has {0} bytes, and {LONGEST} are possible; put it into a file")]
    TooLong(usize),
    /// The server stops.
    #[error("the server stops")]
    Closed,
    /// It cannot be kept.
    #[error("the command cannot be kept: {0}")]
    Log(#[from] io::Error),
}

/// All commands of a sandbox.
#[derive(Debug)]
pub struct Bash {
    options: BashOptions,
    log: Arc<Log>,
    running: Mutex<HashMap<Uuid, Running>>,
    tasks: TaskTracker,
    close: CancellationToken,
}

/// A command that runs.
#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    done: watch::Receiver<bool>,
}

impl Bash {
    /// Reads what earlier servers kept. It must be called where tasks can be started.
    pub fn new(options: BashOptions) -> Arc<Self> {
        let log = Arc::new(Log::open(options.events.clone()));
        let bash = Arc::new(Self {
            options,
            log,
            running: Mutex::default(),
            tasks: TaskTracker::new(),
            close: CancellationToken::new(),
        });
        if let Some(retention) = bash.options.retention {
            bash.tasks.spawn(forget(Arc::clone(&bash.log), retention, bash.close.clone()));
        }
        bash
    }

    /// The events.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Starts a command. Answers with its id and the JSON of its event; the process may not exist yet.
    ///
    /// # Errors
    ///
    /// [`BashError`]; then nothing was started.
    pub async fn start(self: &Arc<Self>, request: Request) -> Result<(Uuid, Vec<u8>), BashError> {
        if request.command.len() > LONGEST {
            return Err(BashError::TooLong(request.command.len()));
        }
        let id = event::new_id()?;
        let (stop, (told, done)) = (self.close.child_token(), watch::channel(false));
        {
            let mut running = self.running();
            if self.close.is_cancelled() {
                return Err(BashError::Closed);
            }
            if running.len() >= RUNNING {
                return Err(BashError::TooMany);
            }
            running.insert(id, Running { stop: stop.clone(), done });
        }
        let place = Place { bash: Arc::clone(self), id, told };
        let Request { command, cwd, timeout } = request.clone();
        let event = Event::Command(Command { command, cwd, timeout });
        let log = Arc::clone(&self.log);
        let added = spawn_blocking(move || log.add(id, &event)).await;
        let (_, json) = added.unwrap_or_else(|error| Err(io::Error::other(error)))?;
        let (log, surroundings) = (Arc::clone(&self.log), self.options.surroundings.clone());
        let task = run::Task { id, request, surroundings, shell: self.options.shell.clone(), log, stop };
        let close = self.close.clone();
        self.tasks.spawn(async move {
            let left = task.run().await;
            drop(place);
            // Programs in the background live on, as they do when a shell ends.
            if let Some(left) = left {
                left.watch(&close).await;
            }
        });
        Ok((id, json))
    }

    /// Whether a command runs.
    pub fn is_running(&self, id: Uuid) -> bool {
        self.running().contains_key(&id)
    }

    /// Returns when a command has ended and all of its events are there.
    pub async fn wait(&self, id: Uuid) {
        let done = self.running().get(&id).map(|running| running.done.clone());
        if let Some(mut done) = done {
            // Its sender goes with it.
            let _gone = done.wait_for(|done| *done).await;
        }
    }

    /// Ends a command, if it runs. Says whether it is known.
    pub fn stop(&self, id: Uuid) -> bool {
        if let Some(running) = self.running().get(&id) {
            running.stop.cancel();
            return true;
        }
        self.log.knows(id)
    }

    /// Ends all commands, and all that they left, and returns when nothing is left of them.
    pub async fn close(&self) {
        {
            let _no_start = self.running();
            self.close.cancel();
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Uuid, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a command among those that run. Dropping it says that it has ended.
struct Place {
    bash: Arc<Bash>,
    id: Uuid,
    told: watch::Sender<bool>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.bash.running().remove(&self.id);
        self.told.send_replace(true);
    }
}

/// Removes events that are too old.
async fn forget(log: Arc<Log>, retention: Duration, close: CancellationToken) {
    let mut looks = interval(Duration::from_secs((retention.as_secs() / 2).max(LEAST_LOOK)));
    while close.run_until_cancelled(looks.tick()).await.is_some() {
        let kept = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
        let (log, before) = (Arc::clone(&log), event::now().saturating_sub(kept));
        match spawn_blocking(move || log.remove_before(before)).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "events of commands were old enough to go"),
            Err(error) => tracing::error!(%error, "old events could not be removed"),
        }
    }
}

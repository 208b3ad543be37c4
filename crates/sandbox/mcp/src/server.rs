//! One server: started when it is used, watched, started again by the next use, ended with all that it started.
//!
//! ```text
//!            use                   answered `initialize`
//!   Idle ──────────► Starting ───────────────────────────► Up
//!    ▲                  │ no, or not in time                │ ended, broke off, or is not wanted any more
//!    │  a pause is over ▼                                   │
//!    └────────────── Failed ◄───────────────────────────────┘ (Idle, if it had answered before)
//! ```

mod run;
mod start;

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gloveport_plugin::ProgramLog;
use gloveport_protocol::McpServerEntry;
use gloveport_sys::Surroundings;
use tokio::{sync::watch, time::timeout};
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::run::{Gone, Live};
use crate::{audience::Audience, proxy::Waits};

/// Pause after a start that failed; each further one in a row doubles it.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) entry: McpServerEntry,
    surroundings: Surroundings,
    standing: watch::Sender<Standing>,
    keeper: Mutex<Option<AbortOnDropHandle<()>>>,
    /// Nobody uses it again.
    retired: watch::Sender<bool>,
    /// Names of its tools when they were listed last.
    tools: Mutex<HashSet<String>>,
    log: Arc<ProgramLog>,
    audience: Audience,
    waits: Waits,
    has_failed: AtomicBool,
}

/// How a server stands.
#[derive(Debug, Clone)]
enum Standing {
    Idle,
    Starting { since: Instant },
    Up { since: Instant, live: Arc<Live> },
    Failed { since: Instant, reason: String, tries: u32 },
}

/// How a server stands, for people and programs.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: ServerState,
    /// Since when; `None` for one that was not used yet.
    pub since: Option<Instant>,
}

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Started by its next use.
    Idle,
    /// On its way.
    Starting,
    /// It answers.
    Ready,
    /// It cannot be started; the next use after a pause tries again.
    Failed {
        /// Why, with the last that it printed.
        reason: String,
    },
}

impl Server {
    /// A server that is not started yet.
    pub(crate) fn new(
        entry: McpServerEntry,
        surroundings: &Surroundings,
        audience: Audience,
        waits: Waits,
    ) -> Arc<Self> {
        let log = Arc::new(ProgramLog::new(entry.name.clone()));
        Arc::new(Self {
            surroundings: start::surroundings(surroundings, &entry),
            entry,
            standing: watch::Sender::new(Standing::Idle),
            keeper: Mutex::default(),
            retired: watch::Sender::new(false),
            tools: Mutex::default(),
            log,
            audience,
            waits,
            has_failed: AtomicBool::new(false),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.entry.name
    }

    /// The server, started if it does not run, for at most `limit`. A start goes on when nobody waits for it any more.
    pub(crate) async fn live(self: &Arc<Self>, limit: Duration) -> Result<Arc<Live>, Gone> {
        if *self.retired.borrow() && self.running().is_none() {
            return Err(Gone(format!("{} is not configured any more", self.name())));
        }
        let mut standing = self.standing.subscribe();
        self.start_if_needed();
        let settled = standing.wait_for(|standing| !matches!(standing, Standing::Idle | Standing::Starting { .. }));
        match timeout(limit, settled).await {
            Ok(Ok(standing)) => match &*standing {
                Standing::Up { live, .. } => Ok(Arc::clone(live)),
                Standing::Failed { since, reason, tries } => Err(self.failed(*since, reason, *tries)),
                Standing::Idle | Standing::Starting { .. } => Err(Gone(format!("{} does not run", self.name()))),
            },
            Ok(Err(_)) => Err(Gone(format!("{} is not configured any more", self.name()))),
            Err(_) => {
                let seconds = limit.as_secs();
                let text = format!("{} is still starting after {seconds} s; ask again later", self.name());
                Err(Gone(text))
            }
        }
    }

    fn failed(&self, since: Instant, reason: &str, tries: u32) -> Gone {
        let left = pause(tries).saturating_sub(since.elapsed()).as_secs_f64().ceil().max(1.0);
        Gone(format!("{} cannot be used: {reason}; it can be tried again in {left} s", self.name()))
    }

    fn start_if_needed(self: &Arc<Self>) {
        let mut tries = 0;
        let begins = self.standing.send_if_modified(|standing| {
            let begins = match &*standing {
                Standing::Idle => true,
                Standing::Failed { since, tries: before, .. } => {
                    tries = *before;
                    since.elapsed() >= pause(*before)
                }
                Standing::Up { live, .. } => live.has_ended(),
                Standing::Starting { .. } => false,
            } && !*self.retired.borrow();
            if begins {
                *standing = Standing::Starting { since: Instant::now() };
            }
            begins
        });
        if begins {
            // It owns nothing of the server that would keep it alive when the server is dropped.
            let keeper = AbortOnDropHandle::new(tokio::spawn(run::keep(Arc::downgrade(self), tries)));
            // The one before has put the server to `Idle` or `Failed`, or is about to end its program.
            let before = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).replace(keeper);
            if let Some(before) = before {
                before.detach();
            }
        }
    }

    /// Keeps which tools there are.
    pub(crate) fn know_tools(&self, names: HashSet<String>) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Whether a tool was in the last list.
    pub(crate) fn knows_tool(&self, name: &str) -> bool {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// The server, if it runs.
    pub(crate) fn running(&self) -> Option<Arc<Live>> {
        match &*self.standing.borrow() {
            Standing::Up { live, .. } if !live.has_ended() => Some(Arc::clone(live)),
            _ => None,
        }
    }

    /// Ends it when the calls that are on their way are answered, within a time limit. Nobody may use it any more.
    pub(crate) fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Ends it, and returns when nothing of it is left.
    pub(crate) async fn stop(&self) {
        self.retire();
        if let Some(live) = self.running() {
            live.end();
        }
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            let _ended = timeout(run::END, keeper).await;
        }
    }

    /// Whether it ever failed; what a list leaves out is told in the log once.
    pub(crate) fn fails_first_time(&self) -> bool {
        !self.has_failed.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let (state, since) = match &*self.standing.borrow() {
            Standing::Idle => (ServerState::Idle, None),
            Standing::Starting { since } => (ServerState::Starting, Some(*since)),
            Standing::Up { since, .. } => (ServerState::Ready, Some(*since)),
            Standing::Failed { since, reason, .. } => (ServerState::Failed { reason: reason.clone() }, Some(*since)),
        };
        ServerStatus { name: self.name().to_owned(), state, since }
    }
}

/// Pause after so many starts in a row that failed.
fn pause(tries: u32) -> Duration {
    (PAUSE * 2u32.saturating_pow(tries.saturating_sub(1).min(10))).min(LONGEST_PAUSE)
}

//! Terminals for people: each is a program on a pseudo-terminal of its own, known by an id, that lives on when nobody is
//! attached to it.
//!
//! They get the environment that the tools were started with (what somebody exported in a shell is known to that shell
//! only), and begin where the persistent shell is.

mod attachment;
mod start;

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_protocol::terminals::{TerminalExit, TerminalRequest, TerminalState, TerminalStatus};
use gloveport_terminal::{Shell, ShellOptions, Terminal, TerminalState as State, WindowSize};
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::error::TerminalsError;
pub(crate) use attachment::ATTACHED;
pub use attachment::Attachment;
use attachment::Attachments;

/// Terminals whose program may run at the same time.
pub const RUNNING: usize = 64;
/// Ended ones that can still be asked for.
pub const KEPT: usize = 32;
/// Bytes of output that each keeps readable, if a shell keeps more.
const SPOOL: u64 = 64 * 1024 * 1024;
/// Time that programs have to end by themselves when their terminal is removed: an editor may have to save something.
const REMOVE_GRACE: Duration = Duration::from_millis(500);
/// The same when the sandbox ends.
const CLOSE_GRACE: Duration = Duration::from_millis(20);

/// Signals that a client can send.
const SIGNALS: [(&str, Signal); 10] = [
    ("INT", Signal::INT),
    ("TERM", Signal::TERM),
    ("HUP", Signal::HUP),
    ("QUIT", Signal::QUIT),
    ("TSTP", Signal::TSTP),
    ("CONT", Signal::CONT),
    ("KILL", Signal::KILL),
    ("WINCH", Signal::WINCH),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];

/// The signal of this name without `SIG`, if a client can send it.
pub(crate) fn signal_named(name: &str) -> Option<Signal> {
    SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, signal)| *signal)
}

/// Names of the signals that a client can send.
pub fn signal_names() -> impl Iterator<Item = &'static str> {
    SIGNALS.iter().map(|(name, _)| *name)
}

/// A terminal and its name.
#[derive(Debug)]
pub struct NamedTerminal {
    id: String,
    request: TerminalRequest,
    argv: Vec<String>,
    directory: PathBuf,
    terminal: Terminal,
    attachments: Attachments,
}

impl NamedTerminal {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The terminal itself.
    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    /// How it stands.
    pub fn status(&self) -> TerminalStatus {
        let (size, log) = (self.terminal.size(), self.terminal.output());
        TerminalStatus {
            id: self.id.clone(),
            argv: self.argv.clone(),
            cwd: self.directory.clone(),
            columns: size.columns,
            rows: size.rows,
            attached: self.attachments.count(),
            start: log.start(),
            end: log.end(),
            state: self.state(),
        }
    }

    /// Whether its program runs.
    pub fn state(&self) -> TerminalState {
        match self.terminal.state() {
            State::Starting => TerminalState::Starting,
            State::Running { pid } => TerminalState::Running { pid },
            State::Ended { exit, .. } => {
                TerminalState::Ended(TerminalExit { exit_code: exit.shell_status(), signal: exit.signal })
            }
            State::Failed { .. } => TerminalState::Ended(TerminalExit { exit_code: -1, signal: None }),
        }
    }

    /// Attaches a client. A client that gives itself a name can come again over another connection, which then takes
    /// the place of the one before, and is told how much of its input arrived.
    pub async fn attach(self: &Arc<Self>, client: Option<&str>) -> Result<Attachment, TerminalsError> {
        Attachment::new(Arc::clone(self), client).await
    }

    /// Sets its size.
    pub fn resize(&self, size: WindowSize) -> Result<(), TerminalsError> {
        Ok(self.terminal.resize(size)?)
    }

    /// Sends a signal to the programs in the foreground, by its name without `SIG`.
    pub fn signal(&self, name: &str) -> Result<(), TerminalsError> {
        let signal = signal_named(name).ok_or_else(|| {
            let known = signal_names().collect::<Vec<_>>().join(", ");
            TerminalsError::Invalid(format!("no signal `{name}` can be sent; there are {known}"))
        })?;
        Ok(self.terminal.signal(signal)?)
    }

    /// Whether its program has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.terminal.state(), State::Ended { .. } | State::Failed { .. })
    }

    fn has_failed(&self) -> bool {
        matches!(self.terminal.state(), State::Failed { .. })
    }
}

/// All terminals of a sandbox.
#[derive(Debug)]
pub struct Terminals {
    shell: Shell,
    options: ShellOptions,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    all: HashMap<String, Arc<NamedTerminal>>,
    /// Ids in the order of their start.
    order: VecDeque<String>,
    /// The sandbox ends.
    closed: bool,
}

impl Terminals {
    /// No terminal yet; they are to begin where the shell is, with the identity, limits and environment of the options.
    pub(crate) fn new(shell: Shell, options: ShellOptions) -> Self {
        Self { shell, options, table: Mutex::default() }
    }

    /// Starts a terminal, or finds the one that was started by a request of this id before; the second value says
    /// whether it was started by this call. A request that asks for something else under the same id is refused; its
    /// size and `TERM` do not count, because they are those of whoever looks at it.
    pub async fn start(&self, request: TerminalRequest) -> Result<(Arc<NamedTerminal>, bool), TerminalsError> {
        start::check(&request)?;
        let (named, added) = self.claim(request)?;
        if let Err(error) = named.terminal.started().await {
            self.forget(&named);
            return Err(error.into());
        }
        Ok((named, added))
    }

    /// The terminal of this id.
    pub fn find(&self, id: &str) -> Result<Arc<NamedTerminal>, TerminalsError> {
        let found = self.table().all.get(id).filter(|named| !named.has_failed()).cloned();
        found.ok_or_else(|| TerminalsError::Unknown(id.to_owned()))
    }

    /// All terminals that are known, in the order of their start.
    pub fn list(&self) -> Vec<TerminalStatus> {
        let table = self.table();
        let known = table.order.iter().filter_map(|id| table.all.get(id)).filter(|named| !named.has_failed());
        known.map(|named| named.status()).collect()
    }

    /// Ends a terminal with everything that it started, and forgets it. Answers with how it ended.
    pub async fn remove(&self, id: &str) -> Result<TerminalStatus, TerminalsError> {
        let named = self.find(id)?;
        named.terminal.close(REMOVE_GRACE).await;
        self.forget(&named);
        Ok(named.status())
    }

    /// Ends all of them, and returns when nothing that they started is left. No new one can be started.
    pub(crate) async fn close(&self) {
        let mut closing = JoinSet::new();
        {
            let mut table = self.table();
            table.closed = true;
            for named in table.all.values() {
                let terminal = named.terminal.clone();
                closing.spawn(async move { terminal.close(CLOSE_GRACE).await });
            }
        }
        closing.join_all().await;
    }

    /// Takes the id, and begins to start the program, in one step: the program of an id is never started twice.
    fn claim(&self, request: TerminalRequest) -> Result<(Arc<NamedTerminal>, bool), TerminalsError> {
        let id = start::id_of(&request)?;
        let mut table = self.table();
        if table.closed {
            return Err(TerminalsError::Closed);
        }
        if let Some(known) = table.all.get(&id).filter(|named| !named.has_failed()) {
            let same = start::is_same(&known.request, &request);
            return if same { Ok((Arc::clone(known), false)) } else { Err(TerminalsError::Conflict(id)) };
        }
        table.make_room()?;
        let directory = request.cwd.clone().unwrap_or_else(|| self.shell.facts().directory.into());
        let (options, argv) = start::options(&self.options, &request, &directory)?;
        let terminal = Terminal::start(options)?;
        let attachments = Attachments::default();
        let named = Arc::new(NamedTerminal { id: id.clone(), request, argv, directory, terminal, attachments });
        table.order.retain(|known| *known != id);
        table.order.push_back(id.clone());
        table.all.insert(id, Arc::clone(&named));
        Ok((named, true))
    }

    fn forget(&self, named: &Arc<NamedTerminal>) {
        let mut table = self.table();
        if table.all.get(&named.id).is_some_and(|known| Arc::ptr_eq(known, named)) {
            table.all.remove(&named.id);
            table.order.retain(|id| *id != named.id);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Forgets the oldest ended terminals beyond the bound.
    fn make_room(&mut self) -> Result<(), TerminalsError> {
        let ended = self.all.values().filter(|named| named.has_ended()).count();
        if self.all.len() - ended >= RUNNING {
            return Err(TerminalsError::TooMany);
        }
        let oldest = || self.order.iter().position(|id| self.all.get(id).is_some_and(|named| named.has_ended()));
        if ended >= KEPT
            && let Some(id) = oldest().and_then(|at| self.order.remove(at))
        {
            self.all.remove(&id);
        }
        Ok(())
    }
}

//! A raw terminal: one program on a pseudo-terminal of its own, for a person who types.
//!
//! Nothing is read into the bytes: what the program writes goes into a numbered [`OutputLog`] as it is, and what is
//! typed reaches the program as it is. Readers take from the log at their own pace, so a slow one holds up nobody.

mod line;
mod task;

use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_sys::{
    Exit, Identity, Spawner,
    pty::{self, Pty},
};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;

use crate::{error::TerminalError, log::OutputLog, probe};
use line::Line;

/// How a raw terminal is started.
#[derive(Debug, Clone)]
pub struct TerminalOptions {
    /// Who starts and owns the processes.
    pub spawner: Spawner,
    /// Identity of the program; `None` keeps this process's.
    pub identity: Option<Identity>,
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments, the program's own name first.
    pub arguments: Vec<OsString>,
    /// The whole environment of the program.
    pub environment: Vec<(OsString, OsString)>,
    /// Directory to start in; where it can not be entered the program starts in this process's own.
    pub directory: PathBuf,
    /// Size of the terminal.
    pub size: WindowSize,
    /// Most private memory of one process, in bytes.
    pub memory_limit: Option<u64>,
    /// Bytes of output that stay readable by offset.
    pub spool_size: u64,
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    /// Width.
    pub columns: u16,
    /// Height.
    pub rows: u16,
}

/// How a raw terminal stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalState {
    /// The program is being started.
    Starting,
    /// The program runs.
    Running {
        /// Its process id.
        pid: u32,
    },
    /// The program ended, and everything that it started with it. Nothing is written any more.
    Ended {
        /// How the program ended.
        exit: Exit,
        /// Offset behind the last byte of output.
        end: u64,
    },
    /// The program could not be started.
    Failed {
        /// Why, for people.
        reason: String,
    },
}

/// A raw terminal. Clones are handles to the same one; it ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Terminal {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    log: OutputLog,
    state: watch::Receiver<TerminalState>,
    size: watch::Sender<WindowSize>,
    /// Our end of the terminal; taken away at the end.
    line: Arc<Mutex<Option<Arc<Line>>>>,
    /// Held while one piece of input is typed, so that pieces of two people do not mix.
    turn: tokio::sync::Mutex<()>,
    /// The time that processes get to end by themselves, once the end is asked for.
    close: watch::Sender<Option<Duration>>,
}

impl Terminal {
    /// Opens a terminal and begins to start the program; [`started`](Self::started) tells when it runs. Must be called
    /// within a tokio runtime.
    pub fn start(options: TerminalOptions) -> Result<Self, TerminalError> {
        let refused = |source: io::Error| TerminalError::Pty { source };
        let size = options.size;
        let Pty { master, slave } = pty::open(size.columns, size.rows).map_err(refused)?;
        pty::sane(&master).map_err(refused)?;
        give(&slave, options.identity.as_ref()).map_err(refused)?;
        let line = Arc::new(Line::new(pty::watch(master).map_err(refused)?));
        let log = OutputLog::new(options.spool_size);
        let (state_sender, state) = watch::channel(TerminalState::Starting);
        let (close, order) = watch::channel(None);
        let held = Arc::new(Mutex::new(Some(Arc::clone(&line))));
        let task = task::Task { options, line, held: Arc::clone(&held), log: log.clone(), state: state_sender, order };
        tokio::spawn(task.run(slave));
        let turn = tokio::sync::Mutex::new(());
        let shared = Shared { log, state, size: watch::Sender::new(size), line: held, turn, close };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns when the program runs, with its process id, or when it is known that it could not be started.
    pub async fn started(&self) -> Result<u32, TerminalError> {
        let mut state = self.watch();
        // The task tells an end in any case; an error means that it was lost by a defect.
        match state.wait_for(|state| *state != TerminalState::Starting).await.as_deref() {
            Ok(TerminalState::Running { pid }) => Ok(*pid),
            Ok(TerminalState::Failed { reason }) => Err(TerminalError::NotStarted(reason.clone())),
            // It ended before anybody looked.
            Ok(TerminalState::Ended { .. }) => Ok(0),
            Ok(TerminalState::Starting) | Err(_) => Err(TerminalError::Closed),
        }
    }

    /// How it stands.
    pub fn state(&self) -> TerminalState {
        self.shared.state.borrow().clone()
    }

    /// Changes of how it stands.
    pub fn watch(&self) -> watch::Receiver<TerminalState> {
        self.shared.state.clone()
    }

    /// Everything that was written to the terminal, echoed input included.
    pub fn output(&self) -> &OutputLog {
        &self.shared.log
    }

    /// Size of the terminal.
    pub fn size(&self) -> WindowSize {
        *self.shared.size.borrow()
    }

    /// Changes of its size.
    pub fn watch_size(&self) -> watch::Receiver<WindowSize> {
        self.shared.size.subscribe()
    }

    /// Sets the size; programs are told by a signal if it is another one.
    pub fn resize(&self, size: WindowSize) -> Result<(), TerminalError> {
        pty::resize(self.line()?.master(), size.columns, size.rows).map_err(|source| TerminalError::Pty { source })?;
        self.shared.size.send_replace(size);
        Ok(())
    }

    /// Types bytes. Waits while programs read nothing; `typed` is told of each part at the moment when the terminal has
    /// it, so a caller that drops the future knows how far it came.
    pub async fn write(&self, bytes: &[u8], mut typed: impl FnMut(usize)) -> Result<(), TerminalError> {
        let line = self.line()?;
        let _turn = self.shared.turn.lock().await;
        let mut state = self.watch();
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = tokio::select! {
                written = line.write(rest) => written.map_err(|source| TerminalError::Pty { source })?,
                _over = state.wait_for(|state| matches!(state, TerminalState::Ended { .. })) => {
                    return Err(TerminalError::Closed);
                }
            };
            typed(written);
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Sends a signal to the programs in the foreground, or to the program itself while there are none.
    pub fn signal(&self, number: Signal) -> Result<(), TerminalError> {
        let TerminalState::Running { pid } = self.state() else { return Err(TerminalError::Closed) };
        let group = probe::foreground(pid, self.line()?.master()).filter(|group| *group > 1).unwrap_or(pid);
        let group = i32::try_from(group).ok().and_then(Pid::from_raw).ok_or(TerminalError::Closed)?;
        kill_process_group(group, number).map_err(|error| TerminalError::Signal { source: error.into() })
    }

    /// Ends the program and everything that it started, and returns when nothing of it is left. They are asked to end
    /// first, as at the end of a telephone line, and killed after `grace`.
    pub async fn close(&self, grace: Duration) {
        // The first order stands.
        self.shared.close.send_if_modified(|order| order.is_none() && order.replace(grace).is_none());
        let mut state = self.watch();
        let over = |state: &TerminalState| matches!(state, TerminalState::Ended { .. } | TerminalState::Failed { .. });
        // An error means that the task is gone, and everything with it.
        let _over = state.wait_for(over).await;
    }

    fn line(&self) -> Result<Arc<Line>, TerminalError> {
        let line = self.shared.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.clone().ok_or(TerminalError::Closed)
    }
}

/// Programs reopen `/dev/tty` and the like, so the terminal belongs to its user.
fn give(slave: &OwnedFd, identity: Option<&Identity>) -> io::Result<()> {
    match identity {
        Some(identity) => Ok(rustix::fs::fchown(slave.as_fd(), Some(rustix::fs::Uid::from_raw(identity.uid)), None)?),
        None => Ok(()),
    }
}

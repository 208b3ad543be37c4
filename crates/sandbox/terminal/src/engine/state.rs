//! What the task that owns a shell knows.

use std::time::Duration;

use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::{command::Phase, known::Known, shells::Shells, shown::Shown, typing::Typing};
use crate::{
    error::TerminalError,
    log::OutputLog,
    options::ShellOptions,
    request::{Facts, Job, Progress, RunReport, WhenWaiting},
};

/// Most bytes taken from the terminal before other events get their turn.
const READ_SIZE: usize = 64 * 1024;

/// The task that owns a shell.
#[derive(Debug)]
pub(crate) struct Engine {
    // Dropped before the options: these may hold the last handle to the guard, which waits for the end of all sessions.
    pub(super) shells: Shells,
    pub(super) options: ShellOptions,
    pub(super) phase: Phase,
    pub(super) waiter: Option<Waiter>,
    /// A request that came when the shell had just ended: it is for the next one, or taken at this time.
    pub(super) deferred: Option<(Job, Instant)>,
    pub(super) typing: Typing,
    pub(super) shown: Shown,
    pub(super) known: Known,
    pub(super) buffer: Vec<u8>,
}

/// A request that is being waited for.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) reply: oneshot::Sender<Result<RunReport, TerminalError>>,
    pub(super) no_change: Option<Duration>,
    pub(super) deadline: Option<Instant>,
    pub(super) last_change: Instant,
    pub(super) revision: u64,
    pub(super) progress: Option<watch::Sender<Progress>>,
    pub(super) waiting: WhenWaiting,
    /// Since when the program in the foreground is seen to wait for input, with nothing new.
    pub(super) waits_since: Option<Instant>,
    /// What was typed and may be echoed.
    pub(super) echo: Option<String>,
}

impl Waiter {
    /// When the soft time limit passes; `None` for a limit that no time is beyond.
    pub(super) fn quiet_until(&self) -> Option<Instant> {
        self.last_change.checked_add(self.no_change?)
    }
}

impl Engine {
    /// An engine whose shell is still to be started.
    pub(super) fn new(options: ShellOptions, log: OutputLog, facts: watch::Sender<Facts>) -> Self {
        Self {
            shells: Shells::default(),
            phase: Phase::Idle,
            waiter: None,
            deferred: None,
            typing: Typing::default(),
            shown: Shown::new(&options, log),
            known: Known::new(facts),
            buffer: vec![0; READ_SIZE],
            options,
        }
    }

    /// Types what is to be typed, as far as the terminal takes it.
    pub(super) fn write_terminal(&mut self) {
        if let Some(instance) = &self.shells.instance {
            self.typing.write(instance);
        }
    }

    /// Hands commands to a shell that reads them from a pipe, as far as it takes them.
    pub(super) fn write_queue(&mut self) {
        if let Some(queue) = self.shells.instance.as_ref().and_then(|instance| instance.queue()) {
            self.typing.write_commands(queue);
        }
    }

    /// Puts a command into the pipe of a shell that reads from one.
    pub(super) fn queue(&mut self, text: &str) {
        self.typing.add_commands(text);
        self.write_queue();
    }
}

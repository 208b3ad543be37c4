//! The shells of a session: its own, those inside of it, and those that ended.

use std::path::PathBuf;

use gloveport_sys::{Exit, SessionProcess, process};
use rustix::fs::{Gid, Uid};
use tokio::time::Instant;

use crate::{instance::Instance, probe::Prompting, request::ShellLoss};

/// The shells of a session.
#[derive(Debug, Default)]
pub(super) struct Shells {
    /// The session's own; `None` until the next one is started.
    pub(super) instance: Option<Instance>,
    /// Its last output is awaited: it ended.
    pub(super) ending: Option<Ending>,
    /// A shell was lost, and nobody was told so far.
    pub(super) loss: Option<ShellLoss>,
    /// The shell that ended last was one that prints a word when it is told to exit.
    pub(super) says_exit: bool,
    /// Shells that ended and whose background jobs may live.
    pub(super) retired: Vec<SessionProcess>,
    /// Shells inside of the session's shell that were taught to report. The first one is source 1 of reports.
    pub(super) nested: Vec<Nested>,
    /// The source whose shell reads what is typed.
    pub(super) current: usize,
    /// A nested shell was told to read this.
    pub(super) lesson: Option<Lesson>,
    /// A prompt was reported whose display was not seen yet.
    pub(super) display_due: bool,
}

/// A shell that ended and whose last output is awaited.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) exit: Exit,
    pub(super) quiet_at: Instant,
    pub(super) limit: Instant,
}

/// A shell inside of the session's.
#[derive(Debug, Clone)]
pub(super) struct Nested {
    pub(super) shell: Prompting,
    pub(super) nonce: String,
    pub(super) owner: Owner,
}

impl Nested {
    pub(super) fn lives(&self) -> bool {
        process::stat(self.shell.pid).is_some_and(|stat| stat.start_ticks == self.shell.start_ticks)
    }
}

/// Who may read a file that is meant for a shell.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) uid: Uid,
    pub(super) gid: Gid,
    pub(super) name: String,
}

/// A lesson that a nested shell was told to read.
#[derive(Debug)]
pub(super) struct Lesson {
    pub(super) source: usize,
    /// When it is given up.
    pub(super) until: Instant,
    /// What the command showed before the shell's prompt.
    pub(super) kept: String,
    /// What came since then.
    pub(super) held: Vec<u8>,
}

impl Shells {
    /// The process that reads commands: the session's shell, or one inside of it.
    pub(super) fn reader(&self) -> Option<u32> {
        match self.nested_reader() {
            Some(nested) => Some(nested.shell.pid),
            None => self.instance.as_ref().map(|instance| instance.process.pid()),
        }
    }

    /// The nested shell that reads commands.
    pub(super) fn nested_reader(&self) -> Option<&Nested> {
        self.nested.get(self.current.checked_sub(1)?)
    }

    /// The process that makes the reports of a source.
    pub(super) fn source(&self, source: usize) -> Option<u32> {
        match source.checked_sub(1) {
            None => self.instance.as_ref().map(|instance| instance.process.pid()),
            Some(place) => self.nested.get(place).map(|nested| nested.shell.pid),
        }
    }

    /// Whether a program in between passes on what is typed: then the modes of the terminal are that program's.
    pub(super) fn is_relayed(&self) -> bool {
        self.nested_reader().is_some_and(|nested| nested.shell.relayed)
    }

    /// Who may read what is meant for the shell that reads commands; `None` for the session's own.
    pub(super) fn reader_owner(&self) -> Option<Owner> {
        self.nested_reader().map(|nested| nested.owner.clone())
    }

    /// The nonce and the terminal of the shell that reads commands.
    pub(super) fn reader_lesson(&self) -> Option<(String, String)> {
        match self.nested_reader() {
            Some(nested) => Some((nested.nonce.clone(), nested.shell.terminal.to_string_lossy().into_owned())),
            None => self.instance.as_ref().map(Instance::bash_lesson),
        }
    }

    /// Where the shell that reads commands is, if it does not say so itself.
    pub(super) fn reader_directory(&self) -> Option<PathBuf> {
        process::working_directory(self.reader()?)
    }

    /// The session's shell reads its commands from a pipe.
    pub(super) fn has_queue(&self) -> bool {
        self.instance.as_ref().and_then(Instance::queue).is_some()
    }

    /// Puts a nested shell into the place of a dead one, or behind all others.
    pub(super) fn place(&mut self, place: usize, nested: Nested) {
        match self.nested.get_mut(place) {
            Some(dead) => *dead = nested,
            None => self.nested.push(nested),
        }
    }

    /// Forgets all nested shells, with the one that they were inside of.
    pub(super) fn forget_nested(&mut self) {
        self.nested.clear();
        self.current = 0;
        self.lesson = None;
    }
}

//! Shells inside of the session's shell (`bash`, `su`, `script`), which are taught to report like it (`bash-session` 5.2).
//!
//! The command that starts one is complete when that shell reports for the first time, and its commands are commands of
//! the session. Which shell makes a report is known by its nonce, so a report is believed only of the shell that reads
//! what is typed: the one that reported last, or another one that has the terminal by now.

use std::{os::unix::fs::MetadataExt as _, path::PathBuf, time::Duration};

use gloveport_sys::{process, users::UserDatabase};
use rustix::fs::{Gid, Uid};
use tokio::time::Instant;

use super::{Engine, Phase};
use crate::{
    instance::{bash_hook, new_nonce},
    probe::{self, Prompting},
};

/// A shell that was told to read its lesson reports within this time, or never.
const LESSON_LIMIT: Duration = Duration::from_secs(8);
/// Most output that is held back meanwhile: the lesson, as an editor of lines shows it.
const MAX_HELD: usize = 64 * 1024;
/// Shells that are known at the same time.
const MAX_NESTED: usize = 32;

/// A shell inside of the session's.
#[derive(Debug, Clone)]
pub(super) struct Nested {
    shell: Prompting,
    nonce: String,
    owner: Owner,
}

/// Who may read a file that is meant for a shell.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) uid: Uid,
    pub(super) gid: Gid,
    name: String,
}

/// A lesson that a nested shell was told to read.
#[derive(Debug)]
pub(super) struct Lesson {
    source: usize,
    until: Instant,
    /// What the command showed before the shell's prompt.
    kept: String,
    /// What came since then.
    held: Vec<u8>,
}

impl Lesson {
    pub(super) fn until(&self) -> Instant {
        self.until
    }
}

impl Engine {
    /// The process that reads commands: the session's shell, or one inside of it.
    pub(super) fn reader(&self) -> Option<u32> {
        match self.nested_shell() {
            Some(nested) => Some(nested.shell.pid),
            None => self.instance.as_ref().map(|instance| instance.process.pid()),
        }
    }

    /// The nested shell that reads commands.
    fn nested_shell(&self) -> Option<&Nested> {
        self.nested.get(self.current.checked_sub(1)?)
    }

    /// Whether a program in between passes on what is typed: then the modes of the terminal are that program's.
    pub(super) fn is_relayed(&self) -> bool {
        self.nested_shell().is_some_and(|nested| nested.shell.relayed)
    }

    /// Who may read what is meant for the shell that reads commands; `None` for the session's own.
    pub(super) fn reader_owner(&self) -> Option<Owner> {
        self.nested_shell().map(|nested| nested.owner.clone())
    }

    /// The nonce and the terminal of the nested shell that reads commands.
    pub(super) fn reader_lesson(&self) -> Option<(String, String)> {
        let nested = self.nested_shell()?;
        Some((nested.nonce.clone(), nested.shell.terminal.to_string_lossy().into_owned()))
    }

    /// The name of that shell's user, for the facts.
    pub(super) fn reader_user(&self) -> String {
        self.nested_shell().map_or_else(|| self.options.user_name.clone(), |nested| nested.owner.name.clone())
    }

    /// Forgets all nested shells, with the one that they were inside of.
    pub(super) fn forget_nested(&mut self) {
        self.nested.clear();
        self.current = 0;
        self.lesson = None;
    }

    /// Looks for a shell that waits at its prompt inside of the one that runs the command, and teaches it.
    pub(super) fn look_for_nested(&mut self) {
        let Some(instance) = &self.instance else { return };
        if self.lesson.is_some() || !self.outgoing.is_empty() || instance.queue().is_some() {
            return;
        }
        if self.renderer.in_alternate_screen() {
            return;
        }
        let Some(found) = probe::prompting_shell(instance.process.pid(), &instance.master, &instance.slave) else {
            return;
        };
        if self.nested.iter().any(|nested| nested.shell.is(&found)) {
            return;
        }
        let lives = |nested: &Nested| {
            process::stat(nested.shell.pid).is_some_and(|stat| stat.start_ticks == nested.shell.start_ticks)
        };
        let place = self.nested.iter().position(|nested| !lives(nested)).unwrap_or(self.nested.len());
        if place >= MAX_NESTED {
            return;
        }
        let (Some(owner), Ok(nonce)) = (owner(found.pid), new_nonce()) else { return };
        let nested = Nested { shell: found, nonce, owner };
        self.give_lesson(place, nested);
    }

    fn give_lesson(&mut self, place: usize, nested: Nested) {
        let Nested { shell, nonce, owner } = &nested;
        // A terminal of its own shows what is typed.
        let quiet = if shell.relayed { "\\command stty -echo\n" } else { "" };
        let lesson = quiet.to_owned() + &super::requests::lesson(nonce, &shell.terminal.to_string_lossy());
        let before = if shell.edits { "set +o emacs +o vi; " } else { "" };
        let enter = if shell.edits || shell.relayed { '\r' } else { '\n' };
        let file = match self.private_file(lesson.as_bytes(), Some(owner)) {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(%error, "a shell inside of the session's can not be taught to report");
                // It is known now, and not tried again.
                self.place(place, nested);
                return;
            }
        };
        if let Some(scanner) = self.instance.as_mut().and_then(|instance| instance.scanner.as_mut()) {
            scanner.listen_to(place + 1, nonce, &bash_hook(nonce));
        }
        // The prompt stands behind the last end of a line.
        let shown = self.renderer.text();
        let kept = shown.rfind('\n').and_then(|at| shown.get(..at)).unwrap_or_default().to_owned();
        let until = Instant::now() + LESSON_LIMIT;
        self.lesson = Some(Lesson { source: place + 1, until, kept, held: Vec::new() });
        let line = super::requests::lesson_line(&file, before, enter);
        self.command.reads(file);
        self.place(place, nested);
        self.outgoing.extend_from_slice(line.as_bytes());
        self.write_terminal();
    }

    fn place(&mut self, place: usize, nested: Nested) {
        match self.nested.get_mut(place) {
            Some(dead) => *dead = nested,
            None => self.nested.push(nested),
        }
    }

    /// Keeps output back that is the lesson's; answers whether it did.
    pub(super) fn hold_back(&mut self, bytes: &[u8]) -> bool {
        let Some(lesson) = &mut self.lesson else { return false };
        lesson.held.extend_from_slice(bytes);
        if lesson.held.len() > MAX_HELD {
            self.give_up_lesson();
        }
        true
    }

    /// The shell did not follow its lesson: what was held back is output like any other.
    pub(super) fn give_up_lesson(&mut self) {
        if let Some(lesson) = self.lesson.take() {
            self.take_output(&lesson.held);
        }
    }

    /// Whether a report is believed, and if it is the first one of a nested shell. The shell that made it reads what is
    /// typed from here on.
    pub(super) fn believe(&mut self, source: usize) -> Option<First> {
        if let Some(lesson) = self.lesson.take_if(|lesson| lesson.source == source) {
            self.current = source;
            self.renderer.clear();
            if !lesson.kept.is_empty() {
                self.renderer.feed(lesson.kept.as_bytes());
                self.renderer.feed(b"\n");
            }
            self.open_line = false;
            self.command.taught_inside();
            return Some(First::Yes);
        }
        if source == self.current {
            return Some(First::No);
        }
        let pid = match source.checked_sub(1) {
            None => self.instance.as_ref()?.process.pid(),
            Some(place) => self.nested.get(place)?.shell.pid,
        };
        if !probe::is_in_foreground(pid) {
            return None;
        }
        self.current = source;
        self.give_up_lesson();
        Some(First::No)
    }

    /// Where the shell that reads commands is, if it does not say so itself.
    pub(super) fn reader_directory(&self) -> Option<PathBuf> {
        process::working_directory(self.reader()?)
    }

    /// Whether a command runs.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }
}

/// Whether a report is the first one of its shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Yes,
    No,
}

/// The user of a process.
fn owner(pid: u32) -> Option<Owner> {
    let metadata = std::fs::metadata(format!("/proc/{pid}")).ok()?;
    let (uid, gid) = (metadata.uid(), metadata.gid());
    let users = UserDatabase::load().ok();
    let name = users.and_then(|users| users.by_uid(uid).map(|user| user.name.clone()));
    Some(Owner { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), name: name.unwrap_or_else(|| uid.to_string()) })
}

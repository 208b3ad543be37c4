//! Shells inside of the session's shell (`bash`, `su`, `script`), which are taught to report like it (`bash-session` 5.2).
//!
//! The command that starts one is complete when that shell reports for the first time, and its commands are commands of
//! the session. Which shell makes a report is known by its nonce, so a report is believed only of the shell that reads
//! what is typed: the one that reported last, or another one that has the terminal by now.

use std::{os::unix::fs::MetadataExt as _, time::Duration};

use gloveport_sys::users::UserDatabase;
use rustix::fs::{Gid, Uid};
use tokio::time::Instant;

use super::{
    lessons::{lesson, lesson_line},
    shells::{Lesson, Nested, Owner},
    state::Engine,
};
use crate::{
    instance::{bash_hook, new_nonce},
    probe,
};

/// A shell that was told to read its lesson reports within this time, or never.
const LESSON_LIMIT: Duration = Duration::from_secs(8);
/// Most output that is held back meanwhile: the lesson, as an editor of lines shows it.
const MAX_HELD: usize = 64 * 1024;
/// Shells that are known at the same time.
const MAX_NESTED: usize = 32;

impl Engine {
    /// Looks for a shell that waits at its prompt inside of the one that runs the command, and teaches it.
    pub(super) fn look_for_nested(&mut self) {
        let Some(instance) = &self.shells.instance else { return };
        if self.shells.lesson.is_some() || !self.typing.is_typed() || instance.queue().is_some() {
            return;
        }
        if self.shown.renderer.in_alternate_screen() {
            return;
        }
        let Some(found) = probe::prompting_shell(instance.process.pid(), &instance.master, &instance.slave) else {
            return;
        };
        if self.shells.nested.iter().any(|nested| nested.shell.is(&found)) {
            return;
        }
        let place = self.shells.nested.iter().position(|nested| !nested.lives()).unwrap_or(self.shells.nested.len());
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
        let text = quiet.to_owned() + &lesson(nonce, &shell.terminal.to_string_lossy());
        let before = if shell.edits { "set +o emacs +o vi; " } else { "" };
        let enter = if shell.edits || shell.relayed { '\r' } else { '\n' };
        let file = match self.private_file(text.as_bytes(), Some(owner)) {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(%error, "a shell inside of the session's can not be taught to report");
                // It is known now, and not tried again.
                self.shells.place(place, nested);
                return;
            }
        };
        if let Some(scanner) = self.shells.instance.as_mut().and_then(|instance| instance.scanner.as_mut()) {
            scanner.listen_to(place + 1, nonce, &bash_hook(nonce));
        }
        // The prompt stands behind the last end of a line.
        let shown = self.shown.renderer.text();
        let kept = shown.rfind('\n').and_then(|at| shown.get(..at)).unwrap_or_default().to_owned();
        let until = Instant::now() + LESSON_LIMIT;
        self.shells.lesson = Some(Lesson { source: place + 1, until, kept, held: Vec::new() });
        let line = lesson_line(&file, before, enter);
        if let Some(command) = self.phase.running() {
            command.reads(file);
        }
        self.shells.place(place, nested);
        self.typing.add(line.into_bytes());
        self.write_terminal();
    }

    /// Keeps output back that is the lesson's; answers whether it did.
    pub(super) fn hold_back(&mut self, bytes: &[u8]) -> bool {
        let Some(lesson) = &mut self.shells.lesson else { return false };
        lesson.held.extend_from_slice(bytes);
        if lesson.held.len() > MAX_HELD {
            self.give_up_lesson();
        }
        true
    }

    /// The shell did not follow its lesson: what was held back is output like any other.
    pub(super) fn give_up_lesson(&mut self) {
        if let Some(lesson) = self.shells.lesson.take() {
            self.take_output(&lesson.held);
        }
    }

    /// Whether a report is believed, and if it is the first one of a nested shell. The shell that made it reads what is
    /// typed from here on.
    pub(super) fn believe(&mut self, source: usize) -> Option<First> {
        if let Some(lesson) = self.shells.lesson.take_if(|lesson| lesson.source == source) {
            self.shells.current = source;
            self.shown.show_only(&lesson.kept);
            if let Some(command) = self.phase.running() {
                command.settled_inside();
            }
            return Some(First::Yes);
        }
        if source == self.shells.current {
            return Some(First::No);
        }
        if !probe::is_in_foreground(self.shells.source(source)?) {
            return None;
        }
        self.shells.current = source;
        self.give_up_lesson();
        Some(First::No)
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

//! What a request does in each state (`bash-session` 3.1, 3.5).

use std::{io::Write as _, path::Path};

use gloveport_sys::{process, pty};
use rustix::fs::{Gid, Uid};
use tokio::time::Instant;

use super::{
    Engine, Phase, Waiter,
    command::{Command, Extent},
    nested::Owner,
};
use crate::{
    error::TerminalError,
    instance::{Dialect, Instance, bash_lesson, posix, quoted},
    keys::{self, ControlKey, END_OF_INPUT, Effect, NamedKey},
    probe::{self, Meter},
    session::{Job, Mode, Progress, RunEnd, RunRequest, WhenWaiting},
    split::{self, Script},
};

/// Commands beyond this are left out of the shell's history list.
const MAX_HISTORY: usize = 64 * 1024;

/// A request that the engine cannot bear, for tests.
#[cfg(test)]
pub(super) const DEFECT: &str = "a defect of the engine";

impl Engine {
    /// Takes a request, or keeps it for the next shell if this one has ended and its exit is still on its way.
    pub(super) fn admit(&mut self, job: Job) {
        let gone = self.instance.as_ref().is_some_and(|instance| pty::foreground(&instance.master).is_none());
        if gone && !matches!(self.phase, Phase::Running) {
            self.deferred = Some((job, Instant::now() + super::EXIT_LIMIT));
        } else {
            self.take(job);
        }
    }

    pub(super) fn take(&mut self, job: Job) {
        let Job { request, reply } = job;
        if reply.is_closed() {
            // Its caller left while it waited for its turn: it never ran, so nothing is lost.
            return;
        }
        let text = request.text.trim().to_owned();
        #[cfg(test)]
        assert_ne!(text, DEFECT);
        if let Some(at) = text.find('\0') {
            let _caller_gone = reply.send(Err(TerminalError::Nul(at)));
            return;
        }
        let now = Instant::now();
        self.waiter = Some(Waiter {
            reply,
            no_change: request.no_change,
            deadline: request.limit.and_then(|limit| now.checked_add(limit)),
            last_change: now,
            revision: self.renderer.revision(),
            progress: request.progress.clone(),
            waiting: request.waiting,
            waits_since: None,
            echo: None,
        });
        let script = match (split::classify(&text), request.mode) {
            (Script::Several(_), Mode::Script) => Script::Block,
            (script, _) => script,
        };
        match (&self.phase, request.mode, text.is_empty()) {
            (Phase::Idle, _, true) => self.answer(RunEnd::NothingToFetch),
            (Phase::Idle, Mode::Input, false) => self.answer(RunEnd::NothingToType),
            (_, _, false) if matches!(script, Script::Several(_)) => {
                if let Script::Several(pieces) = script {
                    self.answer(RunEnd::Several(pieces));
                }
            }
            (Phase::Running, Mode::Command | Mode::Script, false) => self.answer(RunEnd::Refused),
            (Phase::Running, _, true) => self.watch_running(&request),
            (Phase::Running, Mode::Input, false) => {
                self.type_input(&text);
                self.watch_running(&request);
            }
            (Phase::Finished(status), _, true) => {
                let status = *status;
                self.complete(status);
            }
            (Phase::Idle | Phase::Finished(_), _, false) => self.send(&text, &script, &request),
        }
    }

    /// Tells the waiting caller where the running command stands.
    fn watch_running(&mut self, request: &RunRequest) {
        if let Some(progress) = &request.progress {
            progress.send_replace(Progress { start: Some(self.reported_to), ..Progress::default() });
        }
        if request.progress.is_some() || request.waiting == WhenWaiting::Answer {
            self.command.watch(None);
        }
    }

    /// Sends a command to the shell at its prompt.
    fn send(&mut self, text: &str, script: &Script, request: &RunRequest) {
        if self.open_line && self.log.end() > self.reported_to {
            self.renderer.feed(b"\n");
        }
        if let Some(key) = ControlKey::parse(text) {
            self.send_key_to_shell(text, key, request);
            return;
        }
        let Some(instance) = &self.instance else { return };
        // A part of a line that was typed for a program, and that it did not read, must not become a part of the
        // command.
        if !self.is_relayed()
            && let Err(error) = pty::reset(&instance.master).and_then(|()| pty::discard_input(&instance.slave))
        {
            tracing::warn!(%error, "the terminal can not be prepared for a command");
        }
        if let Some(queue) = instance.queue() {
            queue.discard();
            self.send_through_queue(text, script, request);
            return;
        }
        // What is handed over would be shown with the line that does it.
        let shows_lines = self.letters.contains('v');
        let typed = match script {
            Script::One | Script::Block if shows_lines => keys::can_be_typed(text),
            Script::One => keys::can_be_typed(text),
            Script::Incomplete => text.split('\n').all(|line| line.len() <= keys::MAX_LINE),
            Script::Block | Script::Several(_) => false,
        };
        if typed {
            let extent = if matches!(script, Script::One | Script::Block) { Extent::Whole } else { Extent::Open };
            self.begin(Command::typed(text, text.matches('\n').count() + 1, extent, None), request);
            self.outgoing.extend_from_slice(text.as_bytes());
            self.outgoing.push(b'\n');
        } else {
            match self.handover(text) {
                Ok((line, file)) => {
                    self.begin(Command::typed(text, 1, Extent::Whole, Some(file)), request);
                    self.outgoing.extend_from_slice(line.as_bytes());
                }
                Err(error) => self.fail(TerminalError::Handover(error)),
            }
        }
        self.write_terminal();
    }

    /// Sends a command to a POSIX shell.
    fn send_through_queue(&mut self, text: &str, script: &Script, request: &RunRequest) {
        let (line, lines, extent) = match script {
            Script::One if posix::is_line(text) => (format!("{text}\n"), 1, Extent::Whole),
            Script::Incomplete => (format!("{text}\n"), text.matches('\n').count() + 1, Extent::Open),
            _ => (posix::line(text, &self.letters, self.facts.borrow().status), 1, Extent::Whole),
        };
        self.begin(Command::typed(text, lines, extent, None), request);
        self.queue(&line);
    }

    fn queue(&mut self, text: &str) {
        self.queued.extend_from_slice(text.as_bytes());
        self.write_queue();
    }

    /// The shell reads its commands from a pipe.
    fn has_queue(&self) -> bool {
        self.instance.as_ref().and_then(Instance::queue).is_some()
    }

    fn begin(&mut self, command: Command, request: &RunRequest) {
        self.command = command;
        self.phase = Phase::Running;
        if let Some(progress) = &request.progress {
            progress.send_replace(Progress { start: Some(self.log.end()), ..Progress::default() });
            let shell = self.instance.as_ref().map(|instance| instance.process.pid());
            self.command.watch(shell.map(Meter::start));
        } else if request.waiting == WhenWaiting::Answer {
            self.command.watch(None);
        }
    }

    /// Puts a text into a file that the shell's user may read, and makes the line that evaluates it at top level.
    fn handover(&self, text: &str) -> std::io::Result<(String, tempfile::TempPath)> {
        let path = self.private_file(text.as_bytes(), self.reader_owner().as_ref())?;
        let name = quoted(&path.to_string_lossy());
        let entry = if text.len() <= MAX_HISTORY { String::new() } else { format!(" '# {} bytes'", text.len()) };
        let status = self.facts.borrow().status;
        // As a condition the status that is set for the command ends no shell and springs no trap.
        let run = r#"\builtin eval -- "$__gp_c""#;
        let line = format!(" if {{ __gp_h {name} {status}{entry}; }} >/dev/null 2>&1; then {run}; else {run}; fi\n");
        Ok((line, path))
    }

    /// A file that nobody may read but the session's user, or the user of a shell inside of it.
    pub(super) fn private_file(&self, bytes: &[u8], owner: Option<&Owner>) -> std::io::Result<tempfile::TempPath> {
        let mut file = tempfile::Builder::new().prefix(".gloveport-").tempfile()?;
        file.write_all(bytes)?;
        file.flush()?;
        let own = self.options.identity.as_ref();
        let own = own.map(|identity| (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid)));
        if let Some((uid, gid)) = owner.map(|owner| (owner.uid, owner.gid)).or(own) {
            // Root reads it anyway, and to be told so needs no right.
            let is_own = uid == rustix::process::geteuid() || uid.is_root();
            match rustix::fs::fchown(file.as_file(), Some(uid), Some(gid)) {
                Err(error) if !is_own => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(file.into_temp_path())
    }

    fn send_key_to_shell(&mut self, text: &str, key: ControlKey, request: &RunRequest) {
        if let Some(instance) = self.instance.as_ref().filter(|instance| instance.queue().is_some())
            && let Err(error) = pty::reset(&instance.master)
        {
            tracing::warn!(%error, "the terminal can not be prepared for a key");
        }
        let effect = key.shown_as().map(|(_, effect)| effect);
        let ends_input = key.byte() == Some(4);
        if effect == Some(Effect::Interrupt) || ends_input {
            self.begin(Command::typed(text, 1, Extent::Open, None), request);
            if ends_input && self.has_queue() {
                // The pipe has no end; this is the word for it.
                self.queue("exit\n");
            } else {
                self.type_key(key);
            }
        } else {
            // At a prompt the other keys edit a line or do nothing; typed here they would become part of the next
            // command.
            self.command = Command::typed(text, 1, Extent::Open, None);
            let status = self.facts.borrow().status;
            self.complete(status);
        }
    }

    /// Types what came beside the requests.
    pub(super) fn type_ahead(&mut self, text: &str) {
        if matches!(self.phase, Phase::Running) {
            self.type_input(text.trim());
        }
    }

    /// Types text or a key for the running program. A key that has a name is followed by Enter like a text
    /// (`bash-session` 5.2).
    pub(super) fn type_input(&mut self, text: &str) {
        if let Some(key) = self.command.take_held_key() {
            self.type_key(key);
        }
        let continued = self.has_queue() && self.command.at_continuation();
        // A line of an unfinished command is its text, whatever it says.
        let named = NamedKey::parse(text).filter(|_| !self.command.at_continuation());
        if let Some(key) = ControlKey::parse(text).or_else(|| named?.as_signal()) {
            // Where the pipe has no end the unfinished command is given up.
            let given_up = continued && key.byte() == Some(END_OF_INPUT);
            self.press_key(if given_up { ControlKey::INTERRUPT } else { key });
            return;
        }
        if continued {
            self.command.input_typed(text.matches('\n').count() + 1);
            self.queue(&format!("{text}\n"));
            return;
        }
        let modes = self.instance.as_ref().and_then(|instance| pty::modes(&instance.master).ok());
        let canonical = modes.is_none_or(|modes| modes.canonical);
        let echoed = modes.is_some_and(|modes| modes.echo) || !canonical;
        let key = named.map(|key| key.bytes(self.renderer.application_cursor()));
        if let Some(waiter) = self.waiter.as_mut().filter(|_| echoed) {
            waiter.echo = match &key {
                Some(bytes) => canonical.then(|| keys::echo(bytes)),
                None => Some(text.to_owned()),
            };
        }
        if !echoed && self.open_line {
            // On a real terminal the echo of Enter ends the line of the question.
            self.renderer.feed(b"\n");
            self.open_line = false;
        }
        if !self.has_queue() {
            // What a program leaves of it is read by a shell that reads from the terminal.
            self.command.input_typed(text.matches('\n').count() + 1);
        }
        if self.command.take_enter() {
            self.outgoing.push(b'\r');
        }
        match &key {
            Some(bytes) => self.outgoing.extend_from_slice(bytes),
            None if canonical => self.outgoing.extend(keys::in_parts(text)),
            None => self.outgoing.extend_from_slice(text.as_bytes()),
        }
        if canonical {
            self.outgoing.push(b'\n');
        } else {
            self.command.enter_later();
        }
        self.write_terminal();
    }

    /// Presses Enter behind a text for a program that reads single keys, once it has read the text and reads on. A
    /// program that wanted no more than the text gets none: what it leaves would be read by the shell.
    pub(super) fn press_enter(&mut self, now: Instant) {
        let Some(instance) = &self.instance else { return };
        let single_keys = pty::modes(&instance.master).is_ok_and(|modes| !modes.canonical);
        let shell = instance.process.pid();
        let reads_on = self.outgoing.is_empty() && probe::waits_for_input(shell, &instance.master, &instance.slave);
        if single_keys && !reads_on && !self.command.enter_overdue(now) {
            return;
        }
        if self.command.take_enter() && single_keys {
            self.outgoing.push(b'\r');
            self.write_terminal();
        }
    }

    /// Types a key for the running program. A signal that comes when the shell has made a process, and that process has
    /// not taken the terminal, would go to the shell, which waits for the program and passes over it: so the key waits
    /// for this moment to pass.
    fn press_key(&mut self, key: ControlKey) {
        if key.shown_as().is_some() && self.is_between_programs() {
            self.command.key_later(key);
        } else {
            self.type_key(key);
        }
    }

    /// Whether the shell in the foreground may be starting a program.
    fn is_between_programs(&self) -> bool {
        self.instance
            .as_ref()
            .is_some_and(|instance| probe::is_between_programs(instance.process.pid(), &instance.master))
    }

    pub(super) fn type_key(&mut self, key: ControlKey) {
        self.command.take_enter();
        let Some(byte) = key.byte() else { return };
        let signals = self
            .instance
            .as_ref()
            .and_then(|instance| pty::modes(&instance.master).ok())
            .is_none_or(|modes| modes.signals);
        if let Some((shown, effect)) = key.shown_as().filter(|_| signals) {
            self.renderer.feed(shown.as_bytes());
            if effect == Effect::Stop && self.has_queue() {
                // bash does it itself.
                self.renderer.feed(b"\n");
            }
            self.open_line = true;
            self.command.interrupted();
            // What was not typed yet is thrown away like what was not read yet.
            self.outgoing.clear();
            self.queued.clear();
            if let Some(queue) = self.instance.as_ref().and_then(Instance::queue) {
                queue.discard();
            }
        }
        self.outgoing.push(byte);
        self.write_terminal();
    }

    /// Examines a shell that is quiet: one that lost its hook without a trace gets it again, and a bash that took the
    /// place of ours (`exec bash`) is taught to report. Another program is left alone.
    ///
    /// A pipe of commands is read by nobody else, so there nothing has to be found out: the lesson is put behind the
    /// command.
    pub(super) fn examine_quiet_shell(&mut self) {
        let reader = self.reader();
        let Some(instance) = &mut self.instance else { return };
        let shell = instance.process.pid();
        let now = process::command_line(shell);
        if now == instance.command_line {
            if let Some(queue) = instance.queue() {
                if self.queued.is_empty() && queue.is_empty() {
                    self.command.pipe_is_empty();
                }
                if self.command.wants_lesson() {
                    let line = instance.posix_lesson();
                    self.queue(&line);
                    self.command.lesson_queued();
                }
                return;
            }
            let lost = self.command.must_be_over()
                && reader.is_some_and(|reader| probe::shell_reads_commands(reader, &instance.slave) == Some(true));
            if lost {
                self.command.silent_shell();
            }
            return;
        }
        let is_bash = process::stat(shell).is_some_and(|stat| stat.name == "bash");
        if is_bash && probe::shell_waits(shell, &instance.slave) {
            instance.command_line = now;
            instance.dialect = Dialect::Bash;
            // Where it edits lines it shows them, and takes a return for their end.
            if self.teach("set +o emacs +o vi; ", '\r') {
                self.command.taught();
            }
        }
    }

    /// The shell showed a prompt without the hook's report: it gets the hook again, which then reports. If that is of no
    /// use the prompt itself is believed.
    pub(super) fn restore_hook(&mut self, status: i32) {
        if !self.command.may_rearm() {
            self.facts.send_modify(|facts| facts.status = status);
            self.complete(status);
        } else if !self.teach("", '\n') {
            self.complete(status);
        }
    }

    /// Makes the shell read how it has to report. Nothing of that is seen, and `$?` stays what it is.
    fn teach(&mut self, before: &str, enter: char) -> bool {
        let Some(instance) = &self.instance else { return false };
        let (nonce, terminal) = self.reader_lesson().unwrap_or_else(|| instance.bash_lesson());
        match self.private_file(lesson(&nonce, &terminal).as_bytes(), self.reader_owner().as_ref()) {
            Ok(file) => {
                let line = lesson_line(&file, before, enter);
                if let Some(scanner) = self.instance.as_mut().and_then(|instance| instance.scanner.as_mut()) {
                    scanner.typed(&line);
                }
                self.outgoing.extend_from_slice(line.as_bytes());
                self.command.reads(file);
                self.write_terminal();
                true
            }
            Err(error) => {
                tracing::warn!(%error, "a shell that does not report can not be taught to");
                false
            }
        }
    }
}

/// The text of the file from which bash reads how it has to report. It is told the last status.
pub(super) fn lesson(nonce: &str, terminal: &str) -> String {
    format!("{}__gp_arm \"$1\"\n__gp_f \"$1\"\n", bash_lesson(nonce, terminal))
}

/// The line that makes bash read its lesson.
pub(super) fn lesson_line(file: &Path, before: &str, enter: char) -> String {
    format!(" {before}{{ . {} \"$?\"; }} >/dev/null 2>&1{enter}", quoted(&file.to_string_lossy()))
}

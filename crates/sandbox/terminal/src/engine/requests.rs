//! What a request does in each state (`bash-session` 3.1, 3.5).

use std::time::Duration;

use gloveport_audit as audit;
use gloveport_sys::pty;
use tokio::time::Instant;

use super::{
    command::{Command, Extent, Phase},
    state::{Engine, Waiter},
};
use crate::{
    error::TerminalError,
    instance::{Instance, posix, quoted},
    keys::{self, ControlKey, Effect},
    probe::{self, Meter},
    request::{Job, Mode, Progress, RunEnd, RunRequest, WhenWaiting},
    split::{self, Script},
};

/// A shell whose terminal is nobody's has ended; its exit is told within this time.
const EXIT_LIMIT: Duration = Duration::from_secs(1);
/// Commands beyond this are left out of the shell's history list.
const MAX_HISTORY: usize = 64 * 1024;

/// A request that the engine cannot bear, for tests.
#[cfg(test)]
pub(super) const DEFECT: &str = "a defect of the engine";

impl Engine {
    /// Takes a request, or keeps it for the next shell if this one has ended and its exit is still on its way.
    pub(super) fn admit(&mut self, job: Job) {
        let is_gone = |instance: &Instance| probe::foreground(instance.process.pid(), &instance.master).is_none();
        let gone = self.shells.instance.as_ref().is_some_and(is_gone);
        if gone && !self.phase.is_running() {
            self.deferred = Some((job, Instant::now() + EXIT_LIMIT));
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
            revision: self.shown.renderer.revision(),
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
            (Phase::Running(_), Mode::Command | Mode::Script, false) => self.answer(RunEnd::Refused),
            (Phase::Running(_), _, true) => self.watch_running(&request),
            (Phase::Running(_), Mode::Input, false) => {
                self.type_input(&text);
                self.watch_running(&request);
            }
            (Phase::Finished { status, .. }, _, true) => {
                let status = *status;
                self.complete(status);
            }
            (Phase::Idle | Phase::Finished { .. }, _, false) => self.send(&text, &script, &request),
        }
    }

    /// Tells the waiting caller where the running command stands.
    fn watch_running(&mut self, request: &RunRequest) {
        if let Some(progress) = &request.progress {
            progress.send_replace(Progress { start: Some(self.shown.reported_to), ..Progress::default() });
        }
        if request.progress.is_some() || request.waiting == WhenWaiting::Answer {
            self.watch_closely(None);
        }
    }

    /// Sends a command to the shell at its prompt.
    fn send(&mut self, text: &str, script: &Script, request: &RunRequest) {
        self.shown.begin_command();
        if let Some(key) = ControlKey::parse(text) {
            self.send_key_to_shell(text, key, request);
            return;
        }
        let Some(instance) = &self.shells.instance else { return };
        // A part of a line that was typed for a program, and that it did not read, must not become a part of the
        // command.
        if !self.shells.is_relayed()
            && let Err(error) =
                pty::reset(&instance.master, self.options.line_feeds).and_then(|()| pty::discard_input(&instance.slave))
        {
            tracing::warn!(%error, "the terminal can not be prepared for a command");
        }
        if let Some(queue) = instance.queue() {
            queue.discard();
            self.send_through_queue(text, script, request);
            return;
        }
        // What is handed over would be shown with the line that does it.
        let shows_lines = self.known.letters.contains('v');
        let typed = match script {
            Script::One | Script::Block if shows_lines => keys::can_be_typed(text),
            Script::One => keys::can_be_typed(text),
            Script::Incomplete => text.split('\n').all(|line| line.len() <= keys::MAX_LINE),
            Script::Block | Script::Several(_) => false,
        };
        if typed {
            let extent = if matches!(script, Script::One | Script::Block) { Extent::Whole } else { Extent::Open };
            self.begin(Command::typed(text, text.matches('\n').count() + 1, extent, None), request);
            self.typing.add(text.bytes().chain([b'\n']));
        } else {
            match self.handover(text) {
                Ok((line, file)) => {
                    self.begin(Command::typed(text, 1, Extent::Whole, Some(file)), request);
                    self.typing.add(line.into_bytes());
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
            _ => (posix::line(text, &self.known.letters, self.known.status()), 1, Extent::Whole),
        };
        self.begin(Command::typed(text, lines, extent, None), request);
        self.queue(&line);
    }

    fn begin(&mut self, command: Box<Command>, request: &RunRequest) {
        audit::record(|| audit::Event::Command { command: command.number, text: audit::Text::new(command.text()) });
        self.phase = Phase::Running(command);
        if let Some(progress) = &request.progress {
            progress.send_replace(Progress { start: Some(self.shown.log.end()), ..Progress::default() });
            let shell = self.shells.instance.as_ref().map(|instance| instance.process.pid());
            self.watch_closely(shell.map(Meter::start));
        } else if request.waiting == WhenWaiting::Answer {
            self.watch_closely(None);
        }
    }

    fn watch_closely(&mut self, meter: Option<Meter>) {
        if let Some(command) = self.phase.running() {
            command.watch.closely(meter);
        }
    }

    /// Puts a text into a file that the shell's user may read, and makes the line that evaluates it at top level.
    fn handover(&self, text: &str) -> std::io::Result<(String, tempfile::TempPath)> {
        let path = self.private_file(text.as_bytes(), self.shells.reader_owner().as_ref())?;
        let name = quoted(&path.to_string_lossy());
        let entry = if text.len() <= MAX_HISTORY { String::new() } else { format!(" '# {} bytes'", text.len()) };
        let status = self.known.status();
        // As a condition the status that is set for the command ends no shell and springs no trap.
        let run = r#"\builtin eval -- "$__gp_c""#;
        let line = format!(" if {{ __gp_h {name} {status}{entry}; }} >/dev/null 2>&1; then {run}; else {run}; fi\n");
        Ok((line, path))
    }

    fn send_key_to_shell(&mut self, text: &str, key: ControlKey, request: &RunRequest) {
        if let Some(instance) = self.shells.instance.as_ref().filter(|instance| instance.queue().is_some())
            && let Err(error) = pty::reset(&instance.master, self.options.line_feeds)
        {
            tracing::warn!(%error, "the terminal can not be prepared for a key");
        }
        let effect = key.shown_as().map(|(_, effect)| effect);
        let ends_input = key.byte() == Some(4);
        if effect == Some(Effect::Interrupt) || ends_input {
            self.begin(Command::typed(text, 1, Extent::Open, None), request);
            if ends_input && self.shells.has_queue() {
                // The pipe has no end; this is the word for it.
                self.queue("exit\n");
            } else {
                self.type_key(key);
            }
        } else {
            // At a prompt the other keys edit a line or do nothing; typed here they would become part of the next
            // command.
            self.phase = Phase::Running(Command::typed(text, 1, Extent::Open, None));
            self.complete(self.known.status());
        }
    }
}

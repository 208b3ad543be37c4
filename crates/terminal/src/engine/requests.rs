//! What a request does in each state (`bash-session` 3.1, 3.5).

use std::io::Write as _;

use gloveport_sys::{process, pty};
use tokio::time::Instant;

use super::{Command, Engine, Phase, Waiter};
use crate::{
    error::TerminalError,
    keys::{self, ControlKey, Effect},
    probe::Meter,
    session::{Job, Mode, Progress, RunEnd, RunRequest},
    split::{self, Script},
};

/// Commands beyond this are left out of the shell's history list.
const MAX_HISTORY: usize = 64 * 1024;

impl Engine {
    pub(super) fn take(&mut self, job: Job) {
        let Job { request, reply } = job;
        if reply.is_closed() {
            // Its caller left while it waited for its turn: it never ran, so nothing is lost.
            return;
        }
        let text = request.text.trim().to_owned();
        if let Some(at) = text.find('\0') {
            let _caller_gone = reply.send(Err(TerminalError::Nul(at)));
            return;
        }
        let now = Instant::now();
        self.waiter = Some(Waiter {
            reply,
            no_change: request.no_change,
            deadline: request.limit.map(|limit| now + limit),
            last_change: now,
            revision: self.renderer.revision(),
            progress: request.progress.clone(),
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
            progress.send_replace(Progress { start: Some(self.reported_to), waiting_for_input: false });
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
        if let Err(error) = pty::reset(&instance.master) {
            tracing::warn!(%error, "the terminal's modes can not be set");
        }
        let typed = match script {
            Script::One => keys::can_be_typed(text),
            Script::Incomplete => text.split('\n').all(|line| line.len() <= keys::MAX_LINE),
            Script::Block | Script::Several(_) => false,
        };
        if typed {
            self.begin(Command::typed(text, text.matches('\n').count() + 1, *script == Script::One, None), request);
            self.outgoing.extend_from_slice(text.as_bytes());
            self.outgoing.push(b'\n');
        } else {
            match self.handover(text) {
                Ok((line, file)) => {
                    self.begin(Command::typed(text, 1, true, Some(file)), request);
                    self.outgoing.extend_from_slice(line.as_bytes());
                }
                Err(error) => self.fail(TerminalError::Handover(error)),
            }
        }
        self.write_terminal();
    }

    fn begin(&mut self, command: Command, request: &RunRequest) {
        self.command = command;
        self.content.next_command();
        self.phase = Phase::Running;
        if let Some(progress) = &request.progress {
            progress.send_replace(Progress { start: Some(self.log.end()), waiting_for_input: false });
            let shell = self.instance.as_ref().map(|instance| instance.process.pid());
            self.command.watch(shell.map(Meter::start));
        }
    }

    /// Puts a text into a file that the shell's user may read, and makes the line that evaluates it at top level.
    fn handover(&self, text: &str) -> std::io::Result<(String, tempfile::TempPath)> {
        let path = self.private_file(text.as_bytes())?;
        let name = path.to_string_lossy().replace('\'', r"'\''");
        let history = if text.len() <= MAX_HISTORY { "builtin history -s -- \"$__gp_c\"; " } else { "" };
        let status = self.facts.borrow().status;
        let line = format!(" __gp_c=$(<'{name}'); {history}__gp_s {status}; builtin eval -- \"$__gp_c\"\n");
        Ok((line, path))
    }

    fn private_file(&self, bytes: &[u8]) -> std::io::Result<tempfile::TempPath> {
        let mut file = tempfile::Builder::new().prefix(".gloveport-").tempfile()?;
        file.write_all(bytes)?;
        file.flush()?;
        if let Some(identity) = &self.options.identity {
            rustix::fs::fchown(
                file.as_file(),
                Some(rustix::fs::Uid::from_raw(identity.uid)),
                Some(rustix::fs::Gid::from_raw(identity.gid)),
            )?;
        }
        Ok(file.into_temp_path())
    }

    fn send_key_to_shell(&mut self, text: &str, key: ControlKey, request: &RunRequest) {
        let effect = key.shown_as().map(|(_, effect)| effect);
        let ends_input = key.byte() == Some(4);
        if effect == Some(Effect::Interrupt) || ends_input {
            self.begin(Command::typed(text, 1, false, None), request);
            self.type_key(key);
        } else {
            // At a prompt the other keys edit a line or do nothing; typed here they would become part of the next
            // command.
            self.command = Command::typed(text, 1, false, None);
            let status = self.facts.borrow().status;
            self.complete(status);
        }
    }

    /// Types text or a key for the running program.
    pub(super) fn type_input(&mut self, text: &str) {
        if let Some(key) = ControlKey::parse(text) {
            self.type_key(key);
            return;
        }
        let modes = self.instance.as_ref().and_then(|instance| pty::modes(&instance.master).ok());
        let canonical = modes.is_none_or(|modes| modes.canonical);
        let echoed = modes.is_some_and(|modes| modes.echo) || !canonical;
        if let Some(waiter) = self.waiter.as_mut().filter(|_| echoed) {
            waiter.echo = Some(text.to_owned());
        }
        if !echoed && self.open_line {
            // On a real terminal the echo of Enter ends the line of the question.
            self.renderer.feed(b"\n");
            self.open_line = false;
        }
        self.command.input_typed(text.matches('\n').count() + 1);
        if canonical && text.split('\n').any(|line| line.len() > keys::MAX_LINE) {
            // The kernel cuts longer lines in line-by-line mode.
            self.long_input = true;
            self.set_canonical(false);
        }
        self.outgoing.extend_from_slice(text.as_bytes());
        let enter = if canonical && modes.is_some_and(|modes| !modes.return_is_newline) || self.long_input {
            b'\n'
        } else {
            b'\r'
        };
        self.outgoing.push(enter);
        self.write_terminal();
    }

    fn type_key(&mut self, key: ControlKey) {
        let Some(byte) = key.byte() else { return };
        let signals = self
            .instance
            .as_ref()
            .and_then(|instance| pty::modes(&instance.master).ok())
            .is_none_or(|modes| modes.signals);
        if let Some((shown, _)) = key.shown_as().filter(|_| signals) {
            self.renderer.feed(shown.as_bytes());
            self.open_line = true;
            self.command.interrupted();
            // What was not typed yet is thrown away like what was not read yet.
            self.outgoing.clear();
        }
        self.outgoing.push(byte);
        self.write_terminal();
    }

    pub(super) fn set_canonical(&self, canonical: bool) {
        if let Some(instance) = &self.instance {
            if let Err(error) = pty::set_canonical(&instance.master, canonical) {
                tracing::warn!(%error, canonical, "the terminal's input mode can not be set");
            }
        }
    }

    /// Examines a shell that is quiet: one that lost its hook without a trace gets it again, and a bash that took the
    /// place of ours (`exec bash`) is taught to report. Another program is left alone.
    pub(super) fn examine_quiet_shell(&mut self) {
        let Some(instance) = &mut self.instance else { return };
        let shell = instance.process.pid();
        let now = process::command_line(shell);
        if now == instance.command_line {
            let lost = self.command.must_be_over()
                && crate::probe::shell_reads_commands(shell, &instance.master, &instance.slave);
            if lost && self.command.may_rearm() {
                self.outgoing.extend_from_slice(b" __gp_arm \"$?\"\n");
                self.write_terminal();
            }
            return;
        }
        let is_bash = process::stat(shell).is_some_and(|stat| stat.name == "bash");
        if !is_bash || !crate::probe::shell_waits(shell, &instance.master, &instance.slave) {
            return;
        }
        instance.command_line = now;
        let lesson = format!("{}__gp_arm \"$?\"\n", instance.lesson);
        match self.private_file(lesson.as_bytes()) {
            Ok(file) => {
                let name = file.to_string_lossy().replace('\'', r"'\''");
                self.outgoing.extend_from_slice(format!(" set +o emacs +o vi; . '{name}'\r").as_bytes());
                self.command.taught(file);
                self.write_terminal();
            }
            Err(error) => tracing::warn!(%error, "a shell that replaced ours can not be taught to report"),
        }
    }
}

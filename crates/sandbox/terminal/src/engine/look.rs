//! What is found out by a look at the processes in the foreground, where no event tells it.

use std::{os::fd::OwnedFd, time::Duration};

use gloveport_sys::{process, pty};
use tokio::time::Instant;

use super::{
    command::Command,
    course::{Event, Found, ShellSeen},
    state::Engine,
};
use crate::{
    instance::Dialect,
    probe,
    request::{RunEnd, WhenWaiting},
};

/// A request that wants to be answered when a program waits for input is, when that holds for this long.
const WAITING_PAUSE: Duration = Duration::from_millis(30);

/// The shell that reads commands.
struct Reader<'a> {
    pid: u32,
    terminal: &'a OwnedFd,
    all_typed: bool,
}

impl ShellSeen for Reader<'_> {
    fn has_terminal(&self) -> bool {
        probe::is_in_foreground(self.pid)
    }

    fn waits(&self) -> bool {
        self.all_typed && probe::shell_waits(self.pid, self.terminal)
    }

    fn reads_commands(&self) -> Option<bool> {
        probe::shell_reads_commands(self.pid, self.terminal)
    }
}

impl Engine {
    /// Looks at the running command and its processes.
    pub(super) fn look(&mut self, now: Instant) {
        let (Some(instance), Some(command)) = (&self.shells.instance, self.phase.running()) else { return };
        let shell = instance.process.pid();
        let pid = self.shells.reader().unwrap_or(shell);
        let reader = Reader { pid, terminal: &instance.slave, all_typed: self.typing.is_typed() };
        match command.look(now, &reader) {
            Found::Nothing => {}
            Found::Over => return self.complete(self.known.status()),
            Found::OverWithStatus(status) => {
                self.known.set_status(status);
                return self.complete(status);
            }
            Found::HookLost(status) => return self.restore_hook(status),
        }
        if let Some(key) = command.held.ready_key(now, || probe::is_between_programs(shell, &instance.master)) {
            self.type_key(key);
            return;
        }
        if command.watch.probe_due(now) && self.waiter.is_some() && self.tell_whether_it_waits(now) {
            // A shell at its prompt waits, too; it is taught, and then it takes commands.
            self.look_for_nested();
            if self.shells.lesson.is_none() {
                self.answer(RunEnd::Waiting);
            }
            return;
        }
        self.look_by_time(now);
    }

    /// The looks that are due by time, and change nothing for those that follow.
    fn look_by_time(&mut self, now: Instant) {
        if self.phase.running().is_some_and(|command| command.held.enter_due(now)) {
            self.press_enter(now);
        }
        if self.phase.running().is_some_and(|command| command.watch.replacement_due(now)) {
            self.examine_quiet_shell();
        }
        if self.phase.running().is_some_and(|command| command.watch.nested_due(now)) {
            self.look_for_nested();
        }
        if let Some(command) = self.phase.running() {
            command.watch.sample(now);
        }
    }

    /// Looks whether the program in the foreground waits for input, and tells those who want to know. Answers whether
    /// that is the end of the request.
    fn tell_whether_it_waits(&mut self, now: Instant) -> bool {
        let (Some(instance), Some(command)) = (&self.shells.instance, self.phase.running()) else { return false };
        let idle = self.typing.is_typed() && self.shells.lesson.is_none() && !command.held.is_any();
        let waits = idle
            && (command.is_asking()
                || probe::waits_for_input(instance.process.pid(), &instance.master, &instance.slave));
        let hides = waits && pty::modes(&instance.master).is_ok_and(|modes| modes.hide_line());
        let Some(waiter) = &mut self.waiter else { return false };
        if let Some(progress) = &waiter.progress {
            progress.send_if_modified(|progress| {
                let before = (progress.waiting_for_input, progress.hides_input);
                (progress.waiting_for_input, progress.hides_input) = (waits, hides);
                before != (waits, hides)
            });
        }
        if waiter.waiting == WhenWaiting::GoOn {
            return false;
        }
        let since = waits.then(|| *waiter.waits_since.get_or_insert(now));
        waiter.waits_since = since;
        if waits {
            command.watch.probe_at(now + WAITING_PAUSE);
        }
        since.is_some_and(|since| now.duration_since(since) >= WAITING_PAUSE)
    }

    /// Examines a shell that is quiet: one that lost its hook without a trace gets it again, and a bash that took the
    /// place of ours (`exec bash`) is taught to report. Another program is left alone.
    ///
    /// A pipe of commands is read by nobody else, so there nothing has to be found out: the lesson is put behind the
    /// command.
    fn examine_quiet_shell(&mut self) {
        let reader = self.shells.reader();
        let (Some(instance), Some(command)) = (&mut self.shells.instance, self.phase.running()) else { return };
        let shell = instance.process.pid();
        let now = process::command_line(shell);
        if now == instance.command_line {
            if let Some(queue) = instance.queue() {
                if self.typing.is_queued() && queue.is_empty() {
                    command.on(Event::PipeEmptied);
                }
                if command.wants_lesson() {
                    command.on(Event::LessonQueued);
                    let line = instance.posix_lesson();
                    self.queue(&line);
                }
                return;
            }
            let lost = command.must_be_over()
                && reader.is_some_and(|reader| probe::shell_reads_commands(reader, &instance.slave) == Some(true));
            if lost {
                command.on(Event::Silent);
            }
            return;
        }
        let is_bash = process::stat(shell).is_some_and(|stat| stat.name == "bash");
        if is_bash && probe::shell_waits(shell, &instance.slave) {
            instance.command_line = now;
            instance.dialect = Dialect::Bash;
            // Where it edits lines it shows them, and takes a return for their end.
            if self.teach("set +o emacs +o vi; ", '\r')
                && let Some(command) = self.phase.running()
            {
                command.replaced();
            }
        }
    }

    /// The shell showed a prompt without the hook's report: it gets the hook again, which then reports. If that is of no
    /// use the prompt itself is believed.
    fn restore_hook(&mut self, status: i32) {
        if !self.phase.running().is_some_and(Command::may_rearm) {
            self.known.set_status(status);
            self.complete(status);
        } else if !self.teach("", '\n') {
            self.complete(status);
        }
    }
}

//! The task that owns a shell: reads what its programs write, types what is asked for, and decides when a request is
//! answered (`bash-session` §3). `docs/architecture.md` draws how a command goes on ("A command in the shell").
//!
//! | part | idea |
//! |---|---|
//! | this file | the loop: one `select` over terminal, requests, exit and time |
//! | `state` | what the task knows: [`Engine`], made of `shells`, `shown`, `known` and `typing` |
//! | `command` | one command: `course` is the state machine, `held` and `watch` what else it waits for |
//! | `requests`, `input` | what a request does in each state; what is typed for a running program |
//! | `reports`, `look` | what the shell tells; what is found out where no event tells it |
//! | `answers` | what is reported at each end |
//! | `lessons`, `nested` | how a shell is taught to report; shells inside of the session's |
//! | `lifecycle`, `supervise` | the life of a shell, and that of the task, also behind a defect of it |

mod answers;
mod command;
mod course;
mod doubt;
mod held;
mod input;
mod known;
mod lessons;
mod lifecycle;
mod look;
mod nested;
mod reports;
mod requests;
mod shells;
mod shown;
mod state;
mod supervise;
mod typing;
mod watch;

use std::time::Duration;

use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

pub(crate) use self::state::Engine;
pub(crate) use self::supervise::supervise;
use self::{shells::Ending, state::Waiter};
use crate::{
    instance::Queue,
    request::{Job, Typed},
    scanner::Part,
};

/// After the shell's end its last output is on its way for a moment; this long without any means that it is complete.
const DRAIN_QUIET: Duration = Duration::from_millis(3);
/// Background jobs of a dead shell may write for ever; they do not hold back its report longer than this.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);

impl Engine {
    /// Serves requests until the session is closed or all its handles are dropped.
    async fn serve(
        &mut self,
        jobs: &mut mpsc::Receiver<Job>,
        typing: &mut mpsc::Receiver<Typed>,
        close: &CancellationToken,
    ) {
        loop {
            if self.shells.instance.is_none() {
                tokio::select! {
                    () = close.cancelled() => break,
                    started = self.start_shell() => if let Err(error) = started {
                        tracing::error!(%error, "the shell can not be started again");
                        // The next request tries again and is told.
                        let deferred = self.deferred.take().map(|(job, _)| job);
                        let Some(job) = (match deferred {
                            Some(job) => Some(job),
                            None => close.run_until_cancelled(jobs.recv()).await.flatten(),
                        }) else { break };
                        let _caller_gone = job.reply.send(Err(error));
                        continue;
                    },
                }
                if let Some((job, _)) = self.deferred.take() {
                    self.take(job);
                }
            }
            let wake = self.next_wake();
            let Some(instance) = self.shells.instance.as_mut() else { continue };
            let ending = self.shells.ending.is_some();
            tokio::select! {
                readable = instance.master.readable() => if let Ok(guard) = readable {
                    drop(guard);
                    self.read_terminal();
                },
                writable = instance.master.writable(), if !self.typing.is_typed() => if let Ok(guard) = writable {
                    drop(guard);
                    self.write_terminal();
                },
                () = writable(instance.dialect.queue()), if !self.typing.is_queued() => self.write_queue(),
                job = jobs.recv(), if self.waiter.is_none() && !ending && self.deferred.is_none() => match job {
                    Some(job) => {
                        // What was typed before the request must not reach the request's command.
                        while let Ok(typed) = typing.try_recv() {
                            self.type_ahead(&typed);
                        }
                        self.admit(job);
                    }
                    None => break,
                },
                Some(typed) = typing.recv() => self.type_ahead(&typed),
                exit = instance.process.exited(), if !ending => {
                    let now = Instant::now();
                    self.shells.ending = Some(Ending { exit, quiet_at: now + DRAIN_QUIET, limit: now + DRAIN_LIMIT });
                },
                () = gone(self.waiter.as_mut()) => self.waiter = None,
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.wake().await,
                () = close.cancelled() => break,
            }
        }
    }

    /// Reads what programs wrote, if they did.
    fn read_terminal(&mut self) {
        let Some(instance) = &mut self.shells.instance else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        let result =
            instance.master.try_io(tokio::io::Interest::READABLE, |master| Ok(rustix::io::read(master, &mut buffer)?));
        if let (Ok(count), Some(mut scanner)) = (&result, instance.scanner.take_if(|_| result.is_ok())) {
            scanner.feed(buffer.get(..*count).unwrap_or_default(), &mut |part| match part {
                Part::Output(bytes) => self.take_output(bytes),
                Part::Report(source, report) => self.take_report(source, report),
            });
            if let Some(instance) = &mut self.shells.instance {
                instance.scanner = Some(scanner);
            }
        }
        self.buffer = buffer;
        self.note_change();
        if let (Ok(1..), Some(ending)) = (&result, &mut self.shells.ending) {
            ending.quiet_at = (Instant::now() + DRAIN_QUIET).min(ending.limit);
        }
    }

    /// Restarts the soft time limit when the screen changed.
    fn note_change(&mut self) {
        let revision = self.shown.renderer.revision();
        if let Some(waiter) = self.waiter.as_mut().filter(|waiter| waiter.revision != revision) {
            waiter.revision = revision;
            waiter.last_change = Instant::now();
            waiter.waits_since = None;
            if let Some(command) = self.phase.running() {
                command.output_seen();
            }
            if let Some(progress) = &waiter.progress {
                progress.send_if_modified(|progress| {
                    progress.hides_input = false;
                    std::mem::take(&mut progress.waiting_for_input)
                });
            }
        }
    }

    /// The earliest moment at which something is due without an event.
    fn next_wake(&mut self) -> Option<Instant> {
        let ending = self.shells.ending.as_ref().map(|ending| ending.quiet_at);
        let lesson = self.shells.lesson.as_ref().map(|lesson| lesson.until);
        let waiter = self.waiter.as_ref();
        let no_change = waiter.and_then(Waiter::quiet_until);
        let deadline = waiter.and_then(|waiter| waiter.deadline);
        let look = self.phase.running().map(|command| command.next_look());
        let deferred = self.deferred.as_ref().map(|(_, at)| *at);
        [ending, lesson, no_change, deadline, look, deferred].into_iter().flatten().min()
    }

    async fn wake(&mut self) {
        let now = Instant::now();
        // What the shell has told by now comes before what its processes look like, and before its end.
        self.read_terminal();
        if let Some(ending) = self.shells.ending.take_if(|ending| ending.quiet_at <= now) {
            self.shell_ended(ending.exit).await;
            return;
        }
        if self.shells.lesson.as_ref().is_some_and(|lesson| lesson.until <= now) {
            self.give_up_lesson();
        }
        if let Some((job, _)) = self.deferred.take_if(|(_, at)| *at <= now) {
            self.take(job);
        }
        if self.phase.is_running() {
            self.look(now);
        }
        self.check_limits(now);
    }
}

async fn writable(queue: Option<&Queue>) {
    match queue {
        // An error shows itself when something is written.
        Some(queue) => drop(queue.pipe().writable().await),
        None => std::future::pending().await,
    }
}

async fn gone(waiter: Option<&mut Waiter>) {
    match waiter {
        Some(waiter) => waiter.reply.closed().await,
        None => std::future::pending().await,
    }
}

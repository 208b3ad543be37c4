//! The life of a shell: how it is started, what follows its end, and how everything ends.

use std::time::Duration;

use gloveport_sys::{Exit, process};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::state::Engine;
use crate::{
    error::TerminalError,
    instance::{Instance, StartupFiles},
    log::OutputLog,
    options::ShellOptions,
    request::{Facts, ShellLoss},
    scanner::{Part, PromptReport, Report},
};

/// A shell that only waits for a processor may take this many times as long to its first prompt: on a machine that starts
/// hundreds of them at once it is the machine that is slow.
const SLOWNESS: u32 = 6;
/// Time until such a shell is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Time that the processes of a closed session have to end by themselves.
const CLOSE_GRACE: Duration = Duration::from_millis(20);
/// Shells that ended and whose background jobs still live; the oldest are ended beyond this number.
const MAX_RETIRED: usize = 16;

impl Engine {
    pub(crate) async fn start(
        options: ShellOptions,
        log: OutputLog,
        facts: watch::Sender<Facts>,
    ) -> Result<Self, TerminalError> {
        let mut engine = Self::new(options, log, facts);
        engine.start_shell().await?;
        Ok(engine)
    }

    /// Starts a shell in the last known directory. A start-up file that ends or blocks the shell is left out in a
    /// second try.
    pub(super) async fn start_shell(&mut self) -> Result<(), TerminalError> {
        let directory = self.known.directory();
        let mut result = Ok(());
        for files in [StartupFiles::User, StartupFiles::None] {
            let instance = Instance::start(&self.options, &directory, files).await?;
            result = self.first_prompt(instance).await;
            match &result {
                Ok(()) => return Ok(()),
                Err(reason) => tracing::warn!(%reason, ?files, "the shell did not come to its first prompt"),
            }
        }
        result.map_err(TerminalError::NotReady)
    }

    async fn first_prompt(&mut self, mut instance: Instance) -> Result<(), String> {
        let begin = Instant::now();
        let mut deadline = begin + self.options.startup_limit;
        loop {
            let readable = tokio::select! {
                readable = timeout_at(deadline, instance.master.readable()) => readable,
                exit = instance.process.exited() => {
                    return Err(format!("it ended with status {} while it read its start-up files", exit.shell_status()));
                }
            };
            let may_take_longer = begin.elapsed() < self.options.startup_limit * SLOWNESS;
            if readable.is_err() && may_take_longer && process::wants_to_run(instance.process.pid()) {
                deadline = Instant::now() + LOOK_AGAIN;
                continue;
            }
            let Ok(Ok(mut guard)) = readable else {
                let seconds = begin.elapsed().as_secs();
                instance.process.end(Duration::ZERO).await;
                return Err(format!("none within {seconds} s; does ~/.bashrc wait for something?"));
            };
            let read = guard.try_io(|master| Ok(rustix::io::read(master.get_ref(), &mut self.buffer)?));
            let Ok(Ok(count)) = read else { continue };
            let mut prompt = None;
            let Some(scanner) = &mut instance.scanner else { continue };
            scanner.feed(self.buffer.get(..count).unwrap_or_default(), &mut |part| {
                if let Part::Report(_, Report::Prompt(report)) = part {
                    prompt = Some(report);
                }
            });
            if let Some(report) = prompt {
                self.shells.display_due = true;
                self.note_facts(&PromptReport { status: 0, ..report });
                instance.is_ready();
                self.shells.instance = Some(instance);
                return Ok(());
            }
        }
    }

    /// The shell ended by itself, and all of its output was read.
    pub(super) async fn shell_ended(&mut self, exit: Exit) {
        let Some(instance) = self.shells.instance.take() else { return };
        let status = exit.shell_status();
        self.typing.clear();
        self.give_up_lesson();
        self.shells.forget_nested();
        self.shells.display_due = false;
        if exit.code.is_some() {
            tracing::info!(status, "the shell ended and is replaced");
        } else {
            tracing::warn!(status, "the shell was killed and is replaced");
        }
        let running = self.phase.is_running();
        self.shells.says_exit = instance.queue().is_none();
        if self.phase.is_idle() && self.shells.says_exit {
            self.shown.pass_over_exit_word();
        }
        self.shells.loss = Some(ShellLoss { exit, before_command: !running });
        // Its background jobs live on until the session is closed.
        self.shells.retired.retain(|process| !process.is_gone());
        self.shells.retired.push(instance.process);
        if self.shells.retired.len() > MAX_RETIRED {
            self.shells.retired.remove(0).end(CLOSE_GRACE).await;
        }
        if running {
            self.known.set_status(status);
            self.complete(status);
        }
    }

    /// Ends everything.
    pub(super) async fn end(mut self) {
        // The terminal is closed last: its end is a signal that takes parents away before their children are found.
        let instance = self.shells.instance.take();
        let (current, terminal) = instance.map(|instance| (instance.process, instance.master)).unzip();
        let retired = std::mem::take(&mut self.shells.retired);
        let ends = retired.into_iter().chain(current).map(|process| tokio::spawn(process.end(CLOSE_GRACE)));
        for end in ends.collect::<Vec<_>>() {
            // A panic in there was reported already; nothing else can fail.
            let _ended = end.await;
        }
        drop(terminal);
    }
}

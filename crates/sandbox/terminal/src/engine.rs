//! The task that owns a shell: reads what its programs write, types what is asked for, and decides when a request is
//! answered (`bash-session` §3).
//!
//! | part | idea |
//! |---|---|
//! | this file | the loop: one `select` over terminal, requests, exit and time |
//! | [`command`] | one command: what was sent for it, and when it is complete |
//! | `requests` | what a request does in each state |
//! | `nested` | shells inside of the session's, which report like it |
//! | `answers` | what is reported at each end |
//! | `supervise` | the life of the task, also behind a defect of it |

mod answers;
mod command;
mod nested;
mod requests;
mod supervise;

use std::{io, path::PathBuf, time::Duration};

use gloveport_screen::{Renderer, Size};
use gloveport_sys::{Exit, SessionProcess, host::find_program, process, pty};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::command::{Command, Verdict};
use self::nested::{Lesson, Nested};
pub(crate) use self::supervise::supervise;
use crate::{
    content::Content,
    error::TerminalError,
    instance::{Instance, Queue, StartupFiles},
    log::OutputLog,
    probe,
    scanner::{Part, PromptReport, Report},
    session::{Facts, Job, Progress, RunEnd, RunReport, ShellLoss, ShellOptions, WhenWaiting},
};

/// Most bytes taken from the terminal before other events get their turn.
const READ_SIZE: usize = 64 * 1024;
/// A shell that only waits for a processor may take this many times as long to its first prompt: on a machine that starts
/// hundreds of them at once it is the machine that is slow.
const SLOWNESS: u32 = 6;
/// Time until such a shell is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// A shell whose terminal is nobody's has ended; its exit is told within this time.
const EXIT_LIMIT: Duration = Duration::from_secs(1);
/// After the shell's end its last output is on its way for a moment; this long without any means that it is complete.
const DRAIN_QUIET: Duration = Duration::from_millis(3);
/// Background jobs of a dead shell may write for ever; they do not hold back its report longer than this.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);
/// Time that the processes of a closed session have to end by themselves.
const CLOSE_GRACE: Duration = Duration::from_millis(20);
/// Shells that ended and whose background jobs still live; the oldest are ended beyond this number.
const MAX_RETIRED: usize = 16;
/// Pause between looks at a quiet foreground program when somebody wants to know whether it waits for input.
const PROBE_PAUSE: Duration = Duration::from_millis(40);
/// A request that wants to be answered when a program waits for input is, when that holds for this long.
const WAITING_PAUSE: Duration = Duration::from_millis(30);
/// Pause before a quiet shell is examined for having replaced itself by another program.
const REPLACED_PAUSE: Duration = Duration::from_millis(200);
/// Pause before the processes of a quiet command are searched for a shell at its prompt.
const NESTED_PAUSE: Duration = Duration::from_millis(80);
/// Pause between samples of memory.
const SAMPLE_PAUSE: Duration = Duration::from_millis(50);

/// What the shell is doing.
#[derive(Debug)]
enum Phase {
    /// At its prompt, and everything is reported but what background jobs write.
    Idle,
    /// A command runs.
    Running,
    /// A command ended while nobody waited for it.
    Finished(i32),
}

/// A request that is being waited for.
#[derive(Debug)]
struct Waiter {
    reply: oneshot::Sender<Result<RunReport, TerminalError>>,
    no_change: Option<Duration>,
    deadline: Option<Instant>,
    last_change: Instant,
    revision: u64,
    progress: Option<watch::Sender<Progress>>,
    waiting: WhenWaiting,
    /// Since when the program in the foreground is seen to wait for input, with nothing new.
    waits_since: Option<Instant>,
    /// What was typed and may be echoed.
    echo: Option<String>,
}

impl Waiter {
    /// When the soft time limit passes; `None` for a limit that no time is beyond.
    fn quiet_until(&self) -> Option<Instant> {
        self.last_change.checked_add(self.no_change?)
    }
}

#[derive(Debug)]
pub(crate) struct Engine {
    // Dropped before the options: these may hold the last handle to the guard, which waits for the end of all sessions.
    instance: Option<Instance>,
    retired: Vec<SessionProcess>,
    options: ShellOptions,
    log: OutputLog,
    facts: watch::Sender<Facts>,
    path: String,
    /// Option letters of the shell (`$-`) at its latest prompt.
    letters: String,
    phase: Phase,
    command: Command,
    waiter: Option<Waiter>,
    renderer: Renderer,
    content: Content,
    /// Offset up to which the log was reported.
    reported_to: u64,
    /// The last byte written was not the end of a line.
    open_line: bool,
    /// Bytes to type.
    outgoing: Vec<u8>,
    /// Bytes of commands for a shell that reads them from a pipe.
    queued: Vec<u8>,
    /// A prompt was reported whose display was not seen yet.
    display_due: bool,
    /// Shells inside of the session's shell that were taught to report. The first one is source 1 of reports.
    nested: Vec<Nested>,
    /// The source whose shell reads what is typed.
    current: usize,
    /// A nested shell was told to read this.
    lesson: Option<Lesson>,
    loss: Option<ShellLoss>,
    /// The shell that ended last was one that prints a word when it is told to exit.
    says_exit: bool,
    exit: Option<Ending>,
    /// A request that came when the shell had just ended: it is for the next one, or taken at this time.
    deferred: Option<(Job, Instant)>,
    buffer: Vec<u8>,
}

/// A shell that ended and whose last output is awaited.
#[derive(Debug)]
struct Ending {
    exit: Exit,
    quiet_at: Instant,
    limit: Instant,
}

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

    /// An engine whose shell is still to be started.
    fn new(options: ShellOptions, log: OutputLog, facts: watch::Sender<Facts>) -> Self {
        let size = Size { columns: options.columns, rows: options.rows, history: options.history };
        Self {
            reported_to: log.end(),
            options,
            log,
            facts,
            path: String::new(),
            letters: String::new(),
            instance: None,
            retired: Vec::new(),
            phase: Phase::Idle,
            command: Command::default(),
            waiter: None,
            renderer: Renderer::new(size),
            content: Content::default(),
            open_line: false,
            outgoing: Vec::new(),
            queued: Vec::new(),
            display_due: false,
            nested: Vec::new(),
            current: 0,
            lesson: None,
            loss: None,
            says_exit: false,
            exit: None,
            deferred: None,
            buffer: vec![0; READ_SIZE],
        }
    }

    /// Starts a shell in the last known directory. A start-up file that ends or blocks the shell is left out in a
    /// second try.
    async fn start_shell(&mut self) -> Result<(), TerminalError> {
        let directory = PathBuf::from(self.facts.borrow().directory.clone());
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
                self.display_due = true;
                self.note_facts(&PromptReport { status: 0, ..report });
                instance.is_ready();
                self.instance = Some(instance);
                return Ok(());
            }
        }
    }

    /// Serves requests until the session is closed or all its handles are dropped.
    async fn serve(
        &mut self,
        jobs: &mut mpsc::Receiver<Job>,
        typing: &mut mpsc::Receiver<String>,
        close: &CancellationToken,
    ) {
        loop {
            if self.instance.is_none() {
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
            let Some(instance) = self.instance.as_mut() else { continue };
            tokio::select! {
                readable = instance.master.readable() => if let Ok(guard) = readable {
                    drop(guard);
                    self.read_terminal();
                },
                writable = instance.master.writable(), if !self.outgoing.is_empty() => if let Ok(guard) = writable {
                    drop(guard);
                    self.write_terminal();
                },
                () = writable(instance.dialect.queue()), if !self.queued.is_empty() => self.write_queue(),
                job = jobs.recv(), if self.waiter.is_none() && self.exit.is_none() && self.deferred.is_none() => match job {
                    Some(job) => {
                        // What was typed before the request must not reach the request's command.
                        while let Ok(text) = typing.try_recv() {
                            self.type_ahead(&text);
                        }
                        self.admit(job);
                    }
                    None => break,
                },
                Some(text) = typing.recv() => self.type_ahead(&text),
                exit = instance.process.exited(), if self.exit.is_none() => {
                    let now = Instant::now();
                    self.exit = Some(Ending { exit, quiet_at: now + DRAIN_QUIET, limit: now + DRAIN_LIMIT });
                },
                () = gone(self.waiter.as_mut()) => self.waiter = None,
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.wake().await,
                () = close.cancelled() => break,
            }
        }
    }

    /// Ends everything.
    async fn end(mut self) {
        // The terminal is closed last: its end is a signal that takes parents away before their children are found.
        let (current, terminal) = self.instance.take().map(|instance| (instance.process, instance.master)).unzip();
        let ends = self.retired.into_iter().chain(current).map(|process| tokio::spawn(process.end(CLOSE_GRACE)));
        for end in ends.collect::<Vec<_>>() {
            // A panic in there was reported already; nothing else can fail.
            let _ended = end.await;
        }
        drop(terminal);
    }

    fn read_terminal(&mut self) {
        let Some(instance) = &mut self.instance else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        let result =
            instance.master.try_io(tokio::io::Interest::READABLE, |master| Ok(rustix::io::read(master, &mut buffer)?));
        if let (Ok(count), Some(mut scanner)) = (&result, instance.scanner.take_if(|_| result.is_ok())) {
            scanner.feed(buffer.get(..*count).unwrap_or_default(), &mut |part| match part {
                Part::Output(bytes) => self.take_output(bytes),
                Part::Report(source, report) => self.take_report(source, report),
            });
            if let Some(instance) = &mut self.instance {
                instance.scanner = Some(scanner);
            }
        }
        self.buffer = buffer;
        self.note_change();
        if let Some(ending) = &mut self.exit {
            ending.quiet_at = (Instant::now() + DRAIN_QUIET).min(ending.limit);
        }
    }

    fn take_output(&mut self, bytes: &[u8]) {
        if self.hold_back(bytes) {
            return;
        }
        self.log.append(bytes);
        self.renderer.feed(bytes);
        self.open_line = bytes.last() != Some(&b'\n');
    }

    fn write_terminal(&mut self) {
        let Some(instance) = &self.instance else { return };
        let written = instance
            .master
            .try_io(tokio::io::Interest::WRITABLE, |master| Ok(rustix::io::write(master, &self.outgoing)?));
        match written {
            Ok(count) => {
                self.outgoing.drain(..count.min(self.outgoing.len()));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!(%error, "typing failed");
                self.outgoing.clear();
            }
        }
    }

    fn write_queue(&mut self) {
        let Some(queue) = self.instance.as_ref().and_then(Instance::queue) else { return };
        match queue.write(&self.queued) {
            Ok(count) => {
                self.queued.drain(..count.min(self.queued.len()));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!(%error, "a command can not be handed to the shell");
                self.queued.clear();
            }
        }
    }

    /// Restarts the soft time limit when the screen changed.
    fn note_change(&mut self) {
        let revision = self.renderer.revision();
        if let Some(waiter) = self.waiter.as_mut().filter(|waiter| waiter.revision != revision) {
            waiter.revision = revision;
            waiter.last_change = Instant::now();
            waiter.waits_since = None;
            self.command.output_seen();
            if let Some(progress) = &waiter.progress {
                progress.send_if_modified(|progress| {
                    progress.hides_input = false;
                    std::mem::take(&mut progress.waiting_for_input)
                });
            }
        }
    }

    fn note_facts(&mut self, report: &PromptReport) {
        if let Some(path) = &report.path {
            self.path.clone_from(path);
        }
        self.letters.clone_from(&report.options);
        let directory = match (&report.directory, &self.instance) {
            (directory, Some(_)) if directory.is_empty() => {
                self.reader_directory().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
            }
            (directory, _) => directory.clone(),
        };
        let user_name = self.reader_user();
        let python = find_program("python", &self.path, directory.as_ref());
        self.facts.send_modify(|facts| {
            facts.status = report.status;
            facts.background_pid = report.background_pid;
            if !directory.is_empty() {
                facts.directory = directory;
            }
            facts.python = python;
            facts.user_name = user_name;
        });
    }

    /// The earliest moment at which something is due without an event.
    fn next_wake(&self) -> Option<Instant> {
        let ending = self.exit.as_ref().map(|ending| ending.quiet_at);
        let waiter = self.waiter.as_ref();
        let no_change = waiter.and_then(Waiter::quiet_until);
        let deadline = waiter.and_then(|waiter| waiter.deadline);
        let look = matches!(self.phase, Phase::Running).then(|| self.command.next_look()).flatten();
        let deferred = self.deferred.as_ref().map(|(_, at)| *at);
        let lesson = self.lesson.as_ref().map(Lesson::until);
        [ending, lesson, no_change, deadline, look, deferred].into_iter().flatten().min()
    }

    async fn wake(&mut self) {
        let now = Instant::now();
        if let Some(ending) = self.exit.take_if(|ending| ending.quiet_at <= now) {
            self.shell_ended(ending.exit).await;
            return;
        }
        // What the shell has told by now comes before what its processes look like.
        self.read_terminal();
        if self.lesson.as_ref().is_some_and(|lesson| lesson.until() <= now) {
            self.give_up_lesson();
        }
        if let Some((job, _)) = self.deferred.take_if(|(_, at)| *at <= now) {
            self.take(job);
        }
        if matches!(self.phase, Phase::Running) {
            self.look(now);
        }
        self.check_limits(now);
    }

    /// Looks at the processes in the foreground, for what no event tells.
    fn look(&mut self, now: Instant) {
        let Some(instance) = &self.instance else { return };
        let shell = instance.process.pid();
        let reader = self.reader().unwrap_or(shell);
        let shell_waits = || self.outgoing.is_empty() && probe::shell_waits(reader, &instance.slave);
        if self.command.verdict(now, shell_waits) == Verdict::Complete {
            let status = self.facts.borrow().status;
            self.complete(status);
            return;
        }
        if let Some(status) = self.command.lesson_failed(now) {
            self.facts.send_modify(|facts| facts.status = status);
            self.complete(status);
            return;
        }
        let reads_commands = || probe::shell_reads_commands(reader, &instance.slave);
        if let Some(status) = self.command.lost_hook(now, reads_commands) {
            self.restore_hook(status);
            return;
        }
        if let Some(key) = self.command.held_key(now, || probe::is_between_programs(shell, &instance.master)) {
            self.type_key(key);
            return;
        }
        if self.command.probe_due(now) && self.waiter.is_some() && self.tell_whether_it_waits(now) {
            // A shell at its prompt waits, too; it is taught, and then it takes commands.
            self.look_for_nested();
            if self.lesson.is_none() {
                self.answer(RunEnd::Waiting);
            }
            return;
        }
        if self.command.enter_due(now) {
            self.press_enter(now);
        }
        if self.command.replacement_due(now) {
            self.examine_quiet_shell();
        }
        if self.command.nested_due(now) {
            self.look_for_nested();
        }
        self.command.sample(now);
    }

    /// Looks whether the program in the foreground waits for input, and tells those who want to know. Answers whether
    /// that is the end of the request.
    fn tell_whether_it_waits(&mut self, now: Instant) -> bool {
        let Some(instance) = &self.instance else { return false };
        let idle = self.outgoing.is_empty() && self.lesson.is_none() && !self.command.holds_back_keys();
        let waits = idle
            && (self.command.at_continuation()
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
            self.command.probe_at(now + WAITING_PAUSE);
        }
        since.is_some_and(|since| now.duration_since(since) >= WAITING_PAUSE)
    }

    async fn shell_ended(&mut self, exit: Exit) {
        let Some(instance) = self.instance.take() else { return };
        let status = exit.shell_status();
        self.outgoing.clear();
        self.queued.clear();
        self.give_up_lesson();
        self.forget_nested();
        self.display_due = false;
        if exit.code.is_some() {
            tracing::info!(status, "the shell ended and is replaced");
        } else {
            tracing::warn!(status, "the shell was killed and is replaced");
        }
        let running = matches!(self.phase, Phase::Running);
        self.says_exit = instance.queue().is_none();
        if !running && self.says_exit {
            self.pass_over_exit_word();
        }
        self.loss = Some(ShellLoss { exit, before_command: !running });
        // Its background jobs live on until the session is closed.
        self.retired.retain(|process| !process.is_gone());
        self.retired.push(instance.process);
        if self.retired.len() > MAX_RETIRED {
            self.retired.remove(0).end(CLOSE_GRACE).await;
        }
        if running {
            self.facts.send_modify(|facts| facts.status = status);
            self.complete(status);
        }
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

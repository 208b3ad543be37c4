//! The handle to a shell session: what can be asked of it and what it answers.

use std::{ffi::OsString, ops::Range, path::PathBuf, time::Duration};

use gloveport_sys::{Exit, Identity, Spawner, host, users::UserDatabase};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{Engine, supervise},
    error::TerminalError,
    log::OutputLog,
};

/// How a session's shell is started.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    /// Who starts and owns the processes.
    pub spawner: Spawner,
    /// Identity of the shell; `None` keeps this process's.
    pub identity: Option<Identity>,
    /// Name of that user, as reports show it.
    pub user_name: String,
    /// The shell, by its absolute path: bash, if the file has that name, and otherwise a POSIX shell. `None` takes bash
    /// if there is one, and otherwise what serves as `sh`.
    pub shell: Option<PathBuf>,
    /// The whole environment of the shell. `TERM` and the prompt variables are set by the session.
    pub environment: Vec<(OsString, OsString)>,
    /// What programs are told of the terminal (`TERM`); `None` is a type that can do all that reports need.
    pub terminal_type: Option<String>,
    /// Directory to start in; where it can not be entered the shell starts in this process's own.
    pub directory: PathBuf,
    /// Width of the terminal.
    pub columns: u16,
    /// Height of the terminal.
    pub rows: u16,
    /// Lines of scroll-back that a report can show beside the screen.
    pub history: usize,
    /// Bytes of output that stay readable by offset.
    pub spool_size: u64,
    /// Most private memory of one process, in bytes.
    pub memory_limit: Option<u64>,
    /// How long the shell may take to its first prompt, the user's start-up file included.
    pub startup_limit: Duration,
}

/// The 10,000 lines of the reference, and the lines of its prompt, which stand on its screen before each command's
/// output: so at least the last 10,001 lines of an output are kept.
const HISTORY: usize = 10_013;

impl ShellOptions {
    /// A shell of this process's user, with its environment, in `directory`, with the sizes of `bash-session` §1.
    pub fn inherited(directory: PathBuf) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let user_name = UserDatabase::load()
            .ok()
            .and_then(|users| users.by_uid(uid).map(|user| user.name.clone()))
            .unwrap_or_else(|| uid.to_string());
        Self {
            spawner: Spawner::Direct,
            identity: None,
            user_name,
            shell: None,
            environment: std::env::vars_os().collect(),
            terminal_type: None,
            directory,
            columns: 1000,
            rows: 1000,
            history: HISTORY,
            spool_size: 256 * 1024 * 1024,
            memory_limit: None,
            startup_limit: Duration::from_secs(10),
        }
    }
}

/// What a text is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One command for the shell; several are refused (`bash-session` §4).
    Command,
    /// A script of any number of commands for the shell.
    Script,
    /// Text or a key for the program that runs.
    Input,
}

/// One request to a session (`bash-session` §3).
#[derive(Debug)]
pub struct RunRequest {
    /// The command, input or key; blank to fetch more output of the running command.
    pub text: String,
    /// What the text is meant for.
    pub mode: Mode,
    /// Answer when there was no new output for this long (the soft time limit).
    pub no_change: Option<Duration>,
    /// Answer after this long at the latest (the hard time limit).
    pub limit: Option<Duration>,
    /// Answer as soon as the program in the foreground waits for input, with nothing new meanwhile.
    pub waiting: WhenWaiting,
    /// Also when and how the command runs is of interest: told while it runs, and its use of resources at its end.
    pub progress: Option<watch::Sender<Progress>>,
}

impl RunRequest {
    /// A command without a time limit.
    pub fn command(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            mode: Mode::Command,
            no_change: None,
            limit: None,
            waiting: WhenWaiting::GoOn,
            progress: None,
        }
    }

    /// Input for the running program, without a time limit.
    pub fn input(text: impl Into<String>) -> Self {
        Self { mode: Mode::Input, ..Self::command(text) }
    }

    /// A script without a time limit.
    pub fn script(text: impl Into<String>) -> Self {
        Self { mode: Mode::Script, ..Self::command(text) }
    }

    /// Sets the soft time limit.
    #[must_use]
    pub fn no_change_after(self, limit: Duration) -> Self {
        Self { no_change: Some(limit), ..self }
    }

    /// Answers as soon as the program in the foreground waits for input.
    #[must_use]
    pub fn answer_when_waiting(self) -> Self {
        Self { waiting: WhenWaiting::Answer, ..self }
    }

    /// Sets the hard time limit.
    #[must_use]
    pub fn at_most(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// What a request does when the program in the foreground waits for input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenWaiting {
    /// It goes on until the command ends or a time limit passes.
    #[default]
    GoOn,
    /// It is answered with [`RunEnd::Waiting`].
    Answer,
}

/// What is known of a command while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Offset in the log where the output of the command begins; `None` while it waits for its turn.
    pub start: Option<u64>,
    /// The program in the foreground waits for input from the terminal.
    pub waiting_for_input: bool,
    /// It waits for a line that the terminal does not show, such as a password.
    pub hides_input: bool,
    /// Offset in the log behind its output; `None` while it runs.
    pub end: Option<u64>,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The command ended with this status.
    Completed {
        /// Exit status as the shell reports it.
        status: i32,
    },
    /// The soft time limit passed; the command goes on.
    NoChange,
    /// The hard time limit passed; the command goes on.
    TimedOut,
    /// The program in the foreground waits for input; the command goes on. Only for a request that asks for it
    /// ([`WhenWaiting::Answer`]).
    Waiting,
    /// A command runs, so the new one was not executed.
    Refused,
    /// Nothing runs that output could be fetched from.
    NothingToFetch,
    /// Nothing runs that input could be for.
    NothingToType,
    /// The text is several commands; nothing was executed.
    Several(Vec<String>),
}

/// What a session answers.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// How the request ended.
    pub end: RunEnd,
    /// Output that was not reported before, as a terminal shows it, without blank space at both ends.
    pub output: String,
    /// An earlier report told of the same command.
    pub continued: bool,
    /// Lines that `output` was cut down to, if its beginning was pushed out of the history or erased.
    pub lines_kept: Option<usize>,
    /// The shell at the latest prompt.
    pub facts: Facts,
    /// The shell ended and was replaced.
    pub loss: Option<ShellLoss>,
    /// Where the output stands in the log, as it was written.
    pub range: Range<u64>,
    /// What the command used, if progress was asked for and it is completed.
    pub usage: Option<Usage>,
}

/// The shell as its latest prompt saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Status of the last command.
    pub status: i32,
    /// Process id of the last background job (`$!`).
    pub background_pid: Option<u32>,
    /// Logical working directory.
    pub directory: String,
    /// First `python` in the shell's `PATH`.
    pub python: Option<PathBuf>,
    /// Name of the shell's user.
    pub user_name: String,
    /// Short host name.
    pub host_name: String,
}

/// A shell that ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellLoss {
    /// How it ended.
    pub exit: Exit,
    /// It ended before the command was sent, not because of it.
    pub before_command: bool,
}

/// What a command used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of the shell and of ended children, in steps of the kernel's clock tick (10 ms as a rule).
    pub cpu: Duration,
    /// Largest sum of resident private memory of the command's processes that a sample saw (every 50 ms); `None` for a
    /// command that ended before the first sample.
    pub peak_memory: Option<u64>,
    /// Bytes that the command's ended processes wrote to storage; `None` where the kernel does not tell.
    pub bytes_written: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: RunRequest,
    pub(crate) reply: oneshot::Sender<Result<RunReport, TerminalError>>,
}

/// A shell session. Clones are handles to the same session; it ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Shell {
    jobs: mpsc::Sender<Job>,
    typing: mpsc::Sender<String>,
    log: OutputLog,
    facts: watch::Receiver<Facts>,
    close: CancellationToken,
    closed: CancellationToken,
}

/// Requests that may wait for their turn.
const QUEUE: usize = 256;

impl Shell {
    /// Starts a shell and waits for its first prompt.
    pub async fn start(options: ShellOptions) -> Result<Self, TerminalError> {
        let log = OutputLog::new(options.spool_size);
        let facts = Facts {
            directory: options.directory.to_string_lossy().into_owned(),
            user_name: options.user_name.clone(),
            host_name: host::short_host_name(),
            ..Facts::default()
        };
        let (facts_sender, facts) = watch::channel(facts);
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (typing, typed) = mpsc::channel(QUEUE);
        let (close, closed) = (CancellationToken::new(), CancellationToken::new());
        let engine = Engine::start(options, log.clone(), facts_sender).await?;
        let (close_engine, report_closed) = (close.clone(), closed.clone());
        tokio::spawn(async move {
            Box::pin(supervise(engine, queue, typed, close_engine)).await;
            report_closed.cancel();
        });
        Ok(Self { jobs, typing, log, facts, close, closed })
    }

    /// What stands for the session where there is no shell: each request is answered with
    /// [`TerminalError::NoShell`], until it is closed.
    pub fn absent(options: &ShellOptions) -> Self {
        let facts = Facts {
            directory: options.directory.to_string_lossy().into_owned(),
            user_name: options.user_name.clone(),
            host_name: host::short_host_name(),
            ..Facts::default()
        };
        let (_, facts) = watch::channel(facts);
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let (typing, _) = mpsc::channel(QUEUE);
        let (close, closed) = (CancellationToken::new(), CancellationToken::new());
        let (close_queue, report_closed) = (close.clone(), closed.clone());
        tokio::spawn(async move {
            while let Some(Some(job)) = close_queue.run_until_cancelled(queue.recv()).await {
                let _caller_is_gone = job.reply.send(Err(TerminalError::NoShell));
            }
            report_closed.cancel();
        });
        Self { jobs, typing, log: OutputLog::new(options.spool_size), facts, close, closed }
    }

    /// Runs one request after those that came before it. Dropping the future while a command runs means that its
    /// caller is gone: the command goes on, and its output stays for the next request.
    pub async fn run(&self, request: RunRequest) -> Result<RunReport, TerminalError> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job { request, reply }).await.map_err(|_| TerminalError::Closed)?;
        answer.await.map_err(|_| {
            // Without a word of the session's end it was a panic that dropped the request.
            if self.close.is_cancelled() || self.closed.is_cancelled() {
                TerminalError::Closed
            } else {
                TerminalError::Defect
            }
        })?
    }

    /// Types text (with Enter) or a key into the program that runs, also while somebody waits for its end. Nothing
    /// happens when nothing runs.
    pub async fn type_in(&self, text: impl Into<String>) -> Result<(), TerminalError> {
        self.typing.send(text.into()).await.map_err(|_| TerminalError::Closed)
    }

    /// Everything that the session's programs wrote.
    pub fn output(&self) -> &OutputLog {
        &self.log
    }

    /// Whether both are handles to the same session.
    pub fn is_same_session(&self, other: &Self) -> bool {
        self.jobs.same_channel(&other.jobs)
    }

    /// The shell at its latest prompt.
    pub fn facts(&self) -> Facts {
        self.facts.borrow().clone()
    }

    /// Ends the shell and everything that it started, and returns when nothing of it is left.
    pub async fn close(&self) {
        self.close.cancel();
        self.closed.cancelled().await;
    }
}

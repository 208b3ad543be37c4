//! What can be asked of a shell session, and what it answers.

use std::{ops::Range, path::PathBuf, time::Duration};

use gloveport_sys::Exit;
use tokio::sync::{oneshot, watch};

use crate::error::TerminalError;

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

/// What is typed beside the requests.
#[derive(Debug)]
pub(crate) enum Typed {
    /// Text without blanks around it, or a key.
    Text(String),
    /// A line, whatever it says.
    Line(String),
}

/// A request, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: RunRequest,
    pub(crate) reply: oneshot::Sender<Result<RunReport, TerminalError>>,
}

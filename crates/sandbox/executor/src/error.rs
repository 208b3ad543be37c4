//! What can go wrong above the tools.

use std::{io, path::PathBuf};

use gloveport_plugin::PluginError;
use gloveport_terminal::{LogError, TerminalError};

/// Why an executor could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// The user database can not be read.
    #[error("cannot read the user database: {0}")]
    Users(io::Error),
    /// The user that the tools work as can not be made.
    #[error("Failed to create user `{name}` with UID {uid}. Output: [{reason}]")]
    User {
        /// Login name.
        name: String,
        /// User id that was asked for.
        uid: u32,
        /// What failed.
        reason: String,
    },
    /// The `sudo` rule can not be written.
    #[error("Failed to add sudoer: {0}")]
    Sudoers(io::Error),
    /// The server may not become the user.
    #[error(
        "cannot run the shell as `{name}`: only root can change to another user, and this process is not root; \
             start it as root, or give --username the name of its own user"
    )]
    NotRoot {
        /// Login name.
        name: String,
    },
    /// A tool can not be started.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    /// A plugin that was asked for cannot be initialised.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A start-up command failed.
    #[error("the start-up command `{command}` ended with status {status}: {output}")]
    Startup {
        /// The command.
        command: String,
        /// Its exit status.
        status: i32,
        /// What it wrote.
        output: String,
    },
}

/// Why the tools can not be paused.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// Nobody knows which processes are those of the tools.
    #[error("the tools of this server have no process guard, so their processes cannot be told from others")]
    NoGuard,
    /// They do not stop.
    #[error(transparent)]
    Freeze(#[from] gloveport_sys::freeze::FreezeError),
    /// The thread that was to stop them is gone.
    #[error("the processes were not stopped: {0}")]
    Lost(String),
}

/// Why a native command can not be run or followed.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The id was used for another command.
    #[error(
        "exec id `{0}` was used for a different request; choose another id, or repeat the same request to follow it"
    )]
    Conflict(String),
    /// No command has this id.
    #[error("no exec has the id `{0}`; ended ones are kept until {limit} newer ones have ended", limit = crate::exec::KEPT)]
    Unknown(String),
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// Too many commands run or wait.
    #[error("{limit} commands run or wait already; wait for one to end", limit = crate::exec::RUNNING)]
    TooMany,
    /// The directory does not exist.
    #[error("cwd `{}` is not a directory", .0.display())]
    Directory(PathBuf),
    /// Input for a command that has ended or has not begun.
    #[error("exec `{0}` does not run (any more), so nothing can be typed into it")]
    NotRunning(String),
    /// The output can not be read.
    #[error(transparent)]
    Output(#[from] LogError),
    /// The shell failed.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
}

/// Why a terminal can not be started or used.
#[derive(Debug, thiserror::Error)]
pub enum TerminalsError {
    /// The id was used for another terminal.
    #[error(
        "terminal id `{0}` belongs to a terminal with another argv, cwd or env; choose another id, or attach to it by \
         its id alone"
    )]
    Conflict(String),
    /// No terminal has this id.
    #[error("no terminal has the id `{0}`; ended ones are kept until {limit} newer ones have ended", limit = crate::terminals::KEPT)]
    Unknown(String),
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// Too many terminals run.
    #[error("{limit} terminals run already; end one of them first", limit = crate::terminals::RUNNING)]
    TooMany,
    /// Too many clients are attached.
    #[error("{limit} clients are attached to this terminal already", limit = crate::terminals::ATTACHED)]
    TooManyAttached,
    /// An earlier connection of the same client does not give up.
    #[error("an earlier connection of the same client is still being ended; try again")]
    NotReplaced,
    /// The directory does not exist.
    #[error("cwd `{}` is not a directory", .0.display())]
    Directory(PathBuf),
    /// The program does not exist.
    #[error("there is no program `{0}` in the sandbox")]
    NoProgram(String),
    /// The sandbox is ending.
    #[error("the sandbox is ending, so no terminal can be started")]
    Closed,
    /// The terminal failed.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
}

/// Why a process cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProcessesError {
    /// No process has this id.
    #[error("no process has the id `{0}`; ended ones are kept until {limit} newer ones have ended", limit = crate::processes::KEPT)]
    Unknown(String),
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// Too many processes run.
    #[error("{limit} processes run already; end one of them first", limit = crate::processes::RUNNING)]
    TooMany,
    /// Too many follow one.
    #[error("{limit} clients follow this process already", limit = crate::processes::FOLLOWERS)]
    TooManyFollow,
    /// It has ended.
    #[error("process `{0}` has ended")]
    NotRunning(String),
    /// It takes no input.
    #[error("process `{0}` takes no input: it was started without, has closed it, or it was closed")]
    NoInput(String),
    /// It does not take its input.
    #[error("process `{id}` has not taken its input within {} s", limit.as_secs())]
    Stalled {
        /// Its id.
        id: String,
        /// Time that it had.
        limit: std::time::Duration,
    },
    /// The directory does not exist.
    #[error("cwd `{}` is not a directory", .0.display())]
    Directory(PathBuf),
    /// The program does not exist.
    #[error("there is no program `{0}` in the sandbox")]
    NoProgram(String),
    /// The sandbox is ending.
    #[error("the sandbox is ending, so no process can be started")]
    Closed,
    /// It could not be started.
    #[error(transparent)]
    Start(gloveport_sys::surroundings::RunError),
}

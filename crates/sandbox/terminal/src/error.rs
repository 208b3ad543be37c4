//! What can go wrong with a shell session.

use std::io;

use gloveport_sys::SpawnError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// No shell is installed where the session runs.
    #[error(
        "no shell: neither bash nor sh was found in /bin, /usr/bin or PATH; install bash, or a POSIX shell such as \
         BusyBox's, in the image (files work without it)"
    )]
    NoShell,
    /// A pseudo-terminal can not be opened or used.
    #[error("cannot use a pseudo-terminal: {source}; is /dev/pts mounted?")]
    Pty {
        /// The system's error.
        source: io::Error,
    },
    /// The shell's start-up file can not be made.
    #[error("cannot write the shell's start-up file: {source}")]
    Startup {
        /// The system's error.
        source: io::Error,
    },
    /// The shell can not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The shell did not come to its first prompt.
    #[error("the shell did not come to its first prompt: {0}")]
    NotReady(String),
    /// A large command can not be handed over.
    #[error("cannot hand the command to the shell in a temporary file: {0}")]
    Handover(io::Error),
    /// The command holds a NUL byte, which no shell can take.
    #[error("the command contains a NUL byte at byte {0}, which a shell cannot take; nothing was executed")]
    Nul(usize),
    /// The program of a terminal can not be started.
    #[error("{0}")]
    NotStarted(String),
    /// The programs in the foreground can not be signalled.
    #[error("cannot signal the programs of the terminal: {source}")]
    Signal {
        /// The system's error.
        source: io::Error,
    },
    /// The task of the session failed.
    #[error(
        "the session failed by a defect of the server, and a new shell takes its place; what the command did is not known"
    )]
    Defect,
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
}

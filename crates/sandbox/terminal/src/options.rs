//! How a session's shell is started.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use gloveport_sys::{Identity, Spawner, pty::LineFeeds, users::UserDatabase};

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
    /// What becomes of line feeds on the terminal when a command starts.
    pub line_feeds: LineFeeds,
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
            line_feeds: LineFeeds::default(),
            history: HISTORY,
            spool_size: 256 * 1024 * 1024,
            memory_limit: None,
            startup_limit: Duration::from_secs(10),
        }
    }
}

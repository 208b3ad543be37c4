//! `git` as the user of the shells, bounded in time and output.
//!
//! It asks nobody, takes no locks that are not needed, and runs no program that a repository names for hooks, text
//! conversion or differences.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::{fd::AsFd as _, fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_sys::{SpawnError, SpawnSpec, host::find_program, spawn::Descriptors};
use gloveport_terminal::ShellOptions;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe::Receiver,
    time::{Instant, timeout_at},
};

/// Most bytes of an answer.
pub(super) const MAX_OUTPUT: usize = 16 * 1024 * 1024;
/// Most bytes of an error text that are kept.
const MAX_ERROR: usize = 4096;
/// Where programs are when the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Options that come before every command.
const OPTIONS: [&str; 11] = [
    "--no-optional-locks",
    "--no-pager",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
    "-c",
    "color.ui=false",
];

/// Variables that make `git` quiet, and its texts English.
const VARIABLES: [(&str, &str); 5] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("LC_ALL", "C"),
];

/// Variables of the user that would lead to another repository, or to another program.
const REMOVED: [&str; 7] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_PREFIX", "GIT_TRACE"];

/// Why a command of `git` gave nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    /// There is no such program.
    #[error("git is not installed in the sandbox; install it to see changes")]
    NotInstalled,
    /// It could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Its output could not be read.
    #[error("cannot read the output of git: {0}")]
    Pipe(#[from] io::Error),
    /// It took too long.
    #[error("git {command} did not end in time; the repository may be very large")]
    TimedOut {
        /// The command.
        command: String,
    },
    /// It wrote too much.
    #[error("git {command} wrote more than {MAX_OUTPUT} bytes")]
    TooMuch {
        /// The command.
        command: String,
    },
    /// It failed.
    #[error("git {command} failed with exit code {status}: {reason}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit status.
        status: i32,
        /// What it said.
        reason: String,
    },
}

/// Runs `git`.
#[derive(Debug)]
pub(super) struct Git<'a> {
    shells: &'a ShellOptions,
    program: Option<PathBuf>,
    deadline: Instant,
}

impl<'a> Git<'a> {
    /// All commands together end at the deadline.
    pub(super) fn new(shells: &'a ShellOptions, deadline: Instant) -> Self {
        let path = shells.environment.iter().find(|(key, _)| key == "PATH");
        let path = path.map_or_else(|| DEFAULT_PATH.into(), |(_, value)| value.to_string_lossy());
        Self { shells, program: find_program("git", &path, Path::new("/")), deadline }
    }

    /// The output of a command in a directory.
    pub(super) async fn output(&self, directory: &Path, arguments: &[&OsStr]) -> Result<Vec<u8>, GitError> {
        self.output_until(self.deadline, directory, arguments).await
    }

    /// The same with a limit of its own.
    pub(super) async fn output_within(
        &self,
        limit: Duration,
        directory: &Path,
        arguments: &[&OsStr],
    ) -> Result<Vec<u8>, GitError> {
        self.output_until(self.deadline.min(Instant::now() + limit), directory, arguments).await
    }

    /// The output as text without blanks around it, or nothing when the command says no.
    pub(super) async fn ask(&self, directory: &Path, arguments: &[&OsStr]) -> Result<Option<OsString>, GitError> {
        match self.output(directory, arguments).await {
            Ok(output) => {
                let text = output.trim_ascii();
                Ok((!text.is_empty()).then(|| OsStr::from_bytes(text).to_owned()))
            }
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn output_until(
        &self,
        deadline: Instant,
        directory: &Path,
        arguments: &[&OsStr],
    ) -> Result<Vec<u8>, GitError> {
        let command = || arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let run = self.run(directory, arguments, command());
        timeout_at(deadline, run).await.map_err(|_elapsed| GitError::TimedOut { command: command() })?
    }

    /// Dropping the future ends the command and all that it started.
    async fn run(&self, directory: &Path, arguments: &[&OsStr], command: String) -> Result<Vec<u8>, GitError> {
        let program = self.program.clone().ok_or(GitError::NotInstalled)?;
        let mut all: Vec<OsString> = vec!["git".into(), "-C".into(), directory.into()];
        all.extend(OPTIONS.map(OsString::from));
        all.extend(arguments.iter().map(OsString::from));
        let spec = SpawnSpec {
            program,
            arguments: all,
            environment: self.environment(),
            directory: Some(directory.to_owned()),
            identity: self.shells.identity.clone(),
            memory_limit: self.shells.memory_limit,
            descriptors: Descriptors::Plain,
        };
        let input = OwnedFd::from(fs::File::open("/dev/null")?);
        let (output, output_end) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let (errors, errors_end) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let mut process =
            self.shells.spawner.spawn(&spec, &[input.as_fd(), output_end.as_fd(), errors_end.as_fd()]).await?;
        drop((output_end, errors_end));
        let (output, errors) = tokio::try_join!(read(output, MAX_OUTPUT + 1), read_and_drain(errors))?;
        if output.len() > MAX_OUTPUT {
            return Err(GitError::TooMuch { command });
        }
        match process.exited().await.shell_status() {
            0 => Ok(output),
            status => {
                let reason = String::from_utf8_lossy(&errors).trim().to_owned();
                Err(GitError::Failed { command, status, reason })
            }
        }
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let ours =
            |key: &OsString| VARIABLES.iter().any(|(name, _)| key == name) || REMOVED.iter().any(|name| key == name);
        let mut environment: Vec<_> = self.shells.environment.iter().filter(|(key, _)| !ours(key)).cloned().collect();
        environment.extend(VARIABLES.map(|(key, value)| (key.into(), value.into())));
        environment
    }
}

/// Reads to the end, or until there are this many bytes.
async fn read(pipe: OwnedFd, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    Receiver::from_owned_fd(pipe)?.take(limit).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Reads to the end and keeps the first bytes.
async fn read_and_drain(pipe: OwnedFd) -> io::Result<Vec<u8>> {
    let mut pipe = Receiver::from_owned_fd(pipe)?;
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = pipe.read(&mut buffer).await?;
        if count == 0 {
            return Ok(kept);
        }
        let room = MAX_ERROR.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(buffer.get(..room).unwrap_or_default());
    }
}

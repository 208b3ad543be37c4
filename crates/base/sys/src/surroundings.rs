//! As whom, where and with what environment the programs of a sandbox are started.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::{io::AsyncReadExt as _, net::unix::pipe::Receiver, time::timeout};

use crate::{
    exit::Exit,
    host,
    session::{SessionProcess, Spawner},
    spawn::{Descriptors, Identity, SpawnError, SpawnSpec},
};

/// Where programs are looked for if there is no `PATH`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// As whom, where and with what environment the programs of a sandbox are started.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Who starts and owns them.
    pub spawner: Spawner,
    /// Identity that they take on; `None` keeps this process's.
    pub identity: Option<Identity>,
    /// Name of that user.
    pub user_name: String,
    /// Their whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Directory that they start in.
    pub directory: PathBuf,
    /// Most private memory of one process, in bytes.
    pub memory_limit: Option<u64>,
}

/// A program that was started, with its standard output and its standard error as one pipe. Its input is empty.
#[derive(Debug)]
pub struct StartedProgram {
    /// The program and all that it starts.
    pub process: SessionProcess,
    /// What they print.
    pub output: OwnedFd,
}

/// A program that was started, with a pipe for each of its three streams.
#[derive(Debug)]
pub struct TalkingProgram {
    /// The program and all that it starts.
    pub process: SessionProcess,
    /// What it reads.
    pub input: OwnedFd,
    /// What it writes.
    pub output: OwnedFd,
    /// What it writes on its standard error.
    pub errors: OwnedFd,
}

/// What a program that ended left.
#[derive(Debug, Clone)]
pub struct Ended {
    /// How it ended.
    pub exit: Exit,
    /// The last bytes of what it printed on both streams.
    pub output: Vec<u8>,
}

impl Ended {
    /// Whether the program itself says that all went well.
    pub fn succeeded(&self) -> bool {
        self.exit.code == Some(0)
    }

    /// What it printed, as text without blanks around it.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).trim().to_owned()
    }
}

/// Why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such program.
    #[error("`{0}` is not installed in the sandbox")]
    Missing(String),
    /// It could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Its output could not be read.
    #[error("cannot read the output of {program}: {source}")]
    Output {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It took too long, and was ended.
    #[error("{program} did not end within {} s", limit.as_secs_f64())]
    TimedOut {
        /// The program.
        program: String,
        /// Time that it had.
        limit: Duration,
    },
}

impl Surroundings {
    /// This process's user and environment, in `directory`.
    pub fn inherited(directory: PathBuf) -> Self {
        Self {
            spawner: Spawner::Direct,
            identity: None,
            user_name: std::env::var("USER").unwrap_or_default(),
            environment: std::env::vars_os().collect(),
            directory,
            memory_limit: None,
        }
    }

    /// Value of a variable of the environment, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let (_, value) = self.environment.iter().find(|(key, _)| key == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// Sets a variable of the environment.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.unset(name);
        self.environment.push((name.into(), value.into()));
    }

    /// Removes a variable from the environment.
    pub fn unset(&mut self, name: &str) {
        self.environment.retain(|(key, _)| key != name);
    }

    /// Home directory of the user.
    pub fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// The program that a shell would start for this word: from `PATH`, or, with a slash in it, from the directory.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if let Some((directory, name)) = program.rsplit_once('/') {
            let directory = if directory.is_empty() { Path::new("/") } else { Path::new(directory) };
            return host::find_program(name, &self.directory.join(directory).to_string_lossy(), &self.directory);
        }
        let path = self.variable("PATH").map_or(PATH.into(), OsStr::to_string_lossy);
        host::find_program(program, &path, &self.directory)
    }

    /// Starts `argv` as the first program of a new session.
    pub async fn start(&self, argv: &[OsString]) -> Result<StartedProgram, RunError> {
        self.start_with(argv, &[]).await
    }

    /// The same for a program that has descriptors beside its three streams: 3, 4 and so on.
    pub async fn start_with(&self, argv: &[OsString], more: &[BorrowedFd<'_>]) -> Result<StartedProgram, RunError> {
        let unreadable = |source: io::Error| RunError::Output { program: first_word(argv), source };
        let input = OwnedFd::from(fs::File::open("/dev/null").map_err(unreadable)?);
        let (output, end) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| unreadable(error.into()))?;
        let mut descriptors = vec![input.as_fd(), end.as_fd(), end.as_fd()];
        descriptors.extend_from_slice(more);
        let process = self.spawn(argv, &descriptors).await?;
        Ok(StartedProgram { process, output })
    }

    /// The same for a program that is talked to.
    pub async fn start_to_talk(&self, argv: &[OsString]) -> Result<TalkingProgram, RunError> {
        let pipe = || {
            let source =
                |error: rustix::io::Errno| RunError::Output { program: first_word(argv), source: error.into() };
            pipe_with(PipeFlags::CLOEXEC).map_err(source)
        };
        let ((its_input, input), (output, its_output), (errors, its_errors)) = (pipe()?, pipe()?, pipe()?);
        let process = self.spawn(argv, &[its_input.as_fd(), its_output.as_fd(), its_errors.as_fd()]).await?;
        Ok(TalkingProgram { process, input, output, errors })
    }

    async fn spawn(&self, argv: &[OsString], descriptors: &[BorrowedFd<'_>]) -> Result<SessionProcess, RunError> {
        let word = first_word(argv);
        let program = self.find(&word).ok_or(RunError::Missing(word))?;
        let spec = SpawnSpec {
            program,
            arguments: argv.to_vec(),
            environment: self.environment.clone(),
            directory: Some(self.directory.clone()),
            identity: self.identity.clone(),
            memory_limit: self.memory_limit,
            descriptors: Descriptors::Plain,
        };
        Ok(self.spawner.spawn(&spec, descriptors).await?)
    }

    /// Runs `argv` to its end, for at most `limit`, and keeps the last `most` bytes that it printed. What it leaves
    /// behind is ended.
    pub async fn run(&self, argv: &[OsString], limit: Duration, most: usize) -> Result<Ended, RunError> {
        let program = || first_word(argv);
        let run = async {
            let StartedProgram { mut process, output } = self.start(argv).await?;
            let output = tokio::spawn(keep_last(output, most));
            let exit = process.exited().await;
            // Whoever still holds the pipe is ended with it.
            process.end(Duration::ZERO).await;
            let output = output.await.unwrap_or_else(|error| Err(io::Error::other(error)));
            Ok(Ended { exit, output: output.map_err(|source| RunError::Output { program: program(), source })? })
        };
        timeout(limit, run).await.unwrap_or_else(|_| Err(RunError::TimedOut { program: program(), limit }))
    }
}

fn first_word(argv: &[OsString]) -> String {
    argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Reads to the end and keeps the last bytes.
async fn keep_last(pipe: OwnedFd, most: usize) -> io::Result<Vec<u8>> {
    let mut pipe = Receiver::from_owned_fd(pipe)?;
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let count = pipe.read(&mut buffer).await?;
        if count == 0 {
            kept.drain(..kept.len().saturating_sub(most));
            return Ok(kept);
        }
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if kept.len() > 2 * most.max(8192) {
            kept.drain(..kept.len() - most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[tokio::test]
    async fn a_program_runs_to_its_end_with_the_last_of_its_output() {
        let directory = tempfile::tempdir().unwrap();
        let mut surroundings = Surroundings::inherited(directory.path().to_owned());
        surroundings.set("GREETING", "hello");
        let script = "echo $GREETING; pwd >&2; seq 10000 | tail -c 6; exit 3";
        let ended = surroundings.run(&words(&["sh", "-c", script]), Duration::from_secs(20), 1000).await.unwrap();
        assert_eq!(ended.exit.code, Some(3));
        assert_eq!(ended.text(), format!("hello\n{}\n10000", directory.path().canonicalize().unwrap().display()));
        let ended = surroundings.run(&words(&["seq", "10000"]), Duration::from_secs(20), 6).await.unwrap();
        assert_eq!(ended.output, b"10000\n");
    }

    #[tokio::test]
    async fn one_that_is_missing_or_does_not_end_is_named() {
        let surroundings = Surroundings::inherited("/".into());
        for (argv, limit, expected) in [
            (vec!["no-such-program"], 20.0, "`no-such-program` is not installed in the sandbox"),
            (vec!["bin/no-such"], 20.0, "`bin/no-such` is not installed in the sandbox"),
            (vec!["sleep", "60"], 0.2, "sleep did not end within 0.2 s"),
            (vec!["sh", "-c", "sleep 60 & exit 0"], 20.0, ""),
        ] {
            let ended = surroundings.run(&words(&argv), Duration::from_secs_f64(limit), 100).await;
            assert_eq!(ended.map_or_else(|error| error.to_string(), |ended| ended.text()), expected);
        }
    }
}

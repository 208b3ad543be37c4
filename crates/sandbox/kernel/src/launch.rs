//! One start of a kernel: its directory, its program, its connections.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, chown},
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_sys::{SessionProcess, surroundings::StartedProgram};
use serde::Serialize;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    net::unix::pipe::Receiver,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    channels::Channels, find::Python, journal::Journal, options::KernelOptions, state::Facts, wire::ConnectionFile,
};

/// The program that the interpreter runs.
const LAUNCHER: &str = include_str!("launcher.py");
/// Time for the kernel to come up. A cold disk and a busy machine take many times the usual 0.3 s.
const TIME: Duration = Duration::from_mins(1);
/// Status by which the launcher says that `ipykernel` cannot be imported.
const NO_KERNEL: i32 = 97;
/// Longest path of a socket.
const LONGEST_PATH: usize = 107;
/// Most that is read of one line before the kernel is up, and that is kept for an error.
const LINE: u64 = 4096;

/// Why there is no kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    pub(crate) remedy: String,
    /// Another try may end otherwise.
    pub(crate) passing: bool,
    /// The interpreter's `ipykernel` cannot be imported.
    pub(crate) no_kernel: bool,
}

impl Failure {
    /// What will fail again until somebody does something.
    pub(crate) fn lasting(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into(), passing: false, no_kernel: false }
    }
}

/// A kernel that is up.
pub(crate) struct Launched {
    pub(crate) process: SessionProcess,
    pub(crate) channels: Channels,
    pub(crate) journal: Journal,
    pub(crate) facts: Facts,
    /// Reads what the kernel writes beside its channels.
    _log: AbortOnDropHandle<()>,
}

#[derive(Serialize)]
struct Settings<'a> {
    packages: Option<&'a Path>,
    token: &'a str,
    text_limit: usize,
    image_limit: usize,
}

/// Starts a kernel with this interpreter. Nothing is left of a start that fails or is cancelled.
pub(crate) async fn launch(
    options: &KernelOptions,
    python: &Python,
    generation: u64,
    cancelled: &CancellationToken,
) -> Result<Launched, Failure> {
    let token = random()?;
    let files = Files::create(options, &token).map_err(|error| {
        let directory = std::env::temp_dir();
        Failure::lasting(
            format!("its directory in {} cannot be made: {error}", directory.display()),
            "make room or set TMPDIR to a directory that can be written",
        )
    })?;
    let mut surroundings = options.surroundings.clone();
    let user = surroundings.user_name.clone();
    if !user.is_empty() {
        surroundings.set("USER", user);
    }
    // With it the kernel would watch a process that is not its owner.
    surroundings.unset("JPY_PARENT_PID");
    let argv = [python.program.clone(), files.launcher(), "-f".into(), files.connection()].map(PathBuf::into_os_string);
    let started = surroundings.start(&argv).await.map_err(|error| {
        Failure::lasting(format!("{} does not start: {error}", python.program.display()), "name another interpreter")
    })?;
    let StartedProgram { mut process, output } = started;
    let up = async {
        let mut output =
            BufReader::new(Receiver::from_owned_fd(output).map_err(|error| Reason::Io(error.to_string()))?);
        let interpreter = read_token(&mut output, &token).await?;
        let log = AbortOnDropHandle::new(tokio::spawn(read_log(output)));
        let channels =
            Channels::connect(&files.connections, &token).await.map_err(|error| Reason::Io(error.to_string()))?;
        Ok((interpreter, log, channels))
    };
    let result = tokio::select! {
        () = cancelled.cancelled() => Err(Reason::Io("the start was called off".into())),
        result = timeout(TIME, up) => result.unwrap_or(Err(Reason::Slow)),
    };
    match result {
        Ok((interpreter, log, channels)) => {
            let facts = Facts { interpreter, pid: process.pid(), generation };
            let Files { directory, mut journal, .. } = files;
            // What was printed until here belongs to no cell.
            let _nobodys = journal.missing();
            // All of it is open on both sides, and what has no name is not left behind, whoever is killed.
            if let Err(error) = directory.close() {
                tracing::warn!("the directory of a kernel cannot be removed: {error}");
            }
            Ok(Launched { process, channels, journal, facts, _log: log })
        }
        Err(reason) => {
            let exit = if matches!(reason, Reason::Ended(_)) { Some(process.exited().await) } else { process.exit() };
            process.end(Duration::ZERO).await;
            Err(reason.failure(&python.program, exit.map(|exit| exit.shell_status())))
        }
    }
}

enum Reason {
    /// It ended; its last words.
    Ended(String),
    Slow,
    Io(String),
}

impl Reason {
    fn failure(self, program: &Path, status: Option<i32>) -> Failure {
        let program = program.display();
        let no_kernel = status == Some(NO_KERNEL);
        let status = status.map_or(String::new(), |status| format!(" with status {status}"));
        let reason = match self {
            Self::Ended(words) => format!("{program} ended{status} before the kernel was up: {words}"),
            Self::Slow => format!("the kernel of {program} was not up within {} s", TIME.as_secs()),
            Self::Io(error) => format!("the kernel of {program} cannot be reached: {error}"),
        };
        let remedy = format!("see what `{program} -m ipykernel_launcher` says");
        Failure { reason, remedy, passing: true, no_kernel }
    }
}

/// What is in the directory of a kernel: sockets, key, launcher and journal. It is removed as soon as the connections
/// stand.
struct Files {
    directory: TempDir,
    journal: Journal,
    connections: ConnectionFile,
}

impl Files {
    fn create(options: &KernelOptions, token: &str) -> io::Result<Self> {
        let directory = short_directory()?;
        let path = directory.path();
        let key = random().map_err(|failure| io::Error::other(failure.reason))?;
        let connections = ConnectionFile::new(path, key);
        let settings = Settings {
            packages: options.packages.as_deref(),
            token,
            text_limit: options.output_limit,
            image_limit: options.image_limit,
        };
        let journal = Journal::create(&path.join("journal"))?;
        for (name, content) in [
            ("launcher.py", LAUNCHER.as_bytes().to_vec()),
            ("connection.json", serde_json::to_vec(&connections)?),
            ("settings.json", serde_json::to_vec(&settings)?),
        ] {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join(name))?;
            file.write_all(&content)?;
        }
        if let Some(identity) = &options.surroundings.identity {
            // The directory comes last: after that its owner may put anything there.
            for name in ["journal", "launcher.py", "connection.json", "settings.json", "."] {
                chown(path.join(name), Some(identity.uid), Some(identity.gid))?;
            }
        }
        Ok(Self { directory, journal, connections })
    }

    fn launcher(&self) -> PathBuf {
        self.directory.path().join("launcher.py")
    }

    fn connection(&self) -> PathBuf {
        self.directory.path().join("connection.json")
    }
}

/// A directory whose path leaves room for the names of sockets.
fn short_directory() -> io::Result<TempDir> {
    let make = |parent: &Path| tempfile::Builder::new().prefix("gloveport-").rand_bytes(8).tempdir_in(parent);
    let usual = std::env::temp_dir();
    let directory = make(if leaves_room(&usual) { &usual } else { Path::new("/tmp") })?;
    // Whatever the mask of this process is.
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(directory)
}

fn leaves_room(parent: &Path) -> bool {
    parent.as_os_str().len() + "/gloveport-12345678/s-1".len() <= LONGEST_PATH
}

/// 32 random bytes as hexadecimal digits.
fn random() -> Result<String, Failure> {
    gloveport_ids::random::<32>()
        .map_err(|error| Failure::lasting(format!("there are no random numbers: {error}"), "see the system's log"))
}

/// Reads up to the line by which the launcher says that its sockets are bound; answers the interpreter's own path.
async fn read_token(output: &mut BufReader<Receiver>, token: &str) -> Result<String, Reason> {
    let mut words = String::new();
    loop {
        let mut line = Vec::new();
        let count = output.take(LINE).read_until(b'\n', &mut line).await;
        if count.map_err(|error| Reason::Io(error.to_string()))? == 0 {
            return Err(Reason::Ended(words.trim().to_owned()));
        }
        let line = String::from_utf8_lossy(&line);
        if let Some(interpreter) = line.strip_prefix(token) {
            return Ok(interpreter.trim().to_owned());
        }
        words.push_str(&line);
        if words.len() as u64 > 2 * LINE {
            let mut cut = words.len() - 1024;
            while !words.is_char_boundary(cut) {
                cut += 1;
            }
            words.drain(..cut);
        }
    }
}

/// Keeps the pipe empty: what comes there is the log of `ipykernel`.
async fn read_log(mut output: BufReader<Receiver>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        let text = String::from_utf8_lossy(buffer.get(..count).unwrap_or_default());
        tracing::debug!(target: "gloveport_kernel::log", "{}", text.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nobody_else_reads_the_key_and_reaches_the_sockets() {
        let options = KernelOptions::new(gloveport_sys::Surroundings::inherited("/".into()));
        let files = Files::create(&options, "token").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(files.directory.path()), 0o700);
        for name in ["connection.json", "settings.json", "launcher.py", "journal"] {
            assert_eq!(mode(&files.directory.path().join(name)), 0o600, "{name}");
        }
        assert_ne!(files.connections.key(), Files::create(&options, "token").unwrap().connections.key());
        assert_eq!(files.connections.key().len(), 64);
    }

    #[test]
    fn a_temporary_directory_with_a_long_path_is_not_used() {
        assert!(leaves_room(Path::new("/tmp")));
        let long = "/x".repeat(42);
        assert!(leaves_room(Path::new(&long)));
        assert!(!leaves_room(Path::new(&(long + "x"))));
    }
}

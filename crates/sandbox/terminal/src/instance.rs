//! One shell on a pseudo-terminal: how it is found, started and taught to report.
//!
//! | module | idea |
//! |---|---|
//! | `bash` | what bash is taught |
//! | `posix` | where there is no bash: what the POSIX shell of an image is taught, and how commands reach it |

mod bash;
pub(crate) mod posix;

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use gloveport_sys::{
    SessionProcess, SpawnSpec,
    host::find_program,
    pty::{self, Pty},
    spawn::Descriptors,
};
use tokio::io::unix::AsyncFd;

pub(crate) use bash::{hook as bash_hook, lesson as bash_lesson};
pub(crate) use posix::Queue;

use crate::{error::TerminalError, options::ShellOptions, scanner::Scanner};

/// Name of the terminal type whose sequences [`gloveport_screen`] understands, found in every terminfo database.
const TERM: &str = "screen-256color";
/// The start-up file, as the shell sees it.
const STARTUP: &str = "/proc/self/fd/3";
/// What serves where there is no bash. A program that is called BusyBox is this shell under the name `sh`.
const POSIX_SHELLS: [&str; 4] = ["sh", "ash", "dash", "busybox"];

/// A running shell.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) process: SessionProcess,
    pub(crate) master: AsyncFd<OwnedFd>,
    pub(crate) slave: OwnedFd,
    /// Out of its place only while it hands over what was read.
    pub(crate) scanner: Option<Scanner>,
    /// Arguments as the kernel shows them since the first prompt (before it, the process may not have become the shell
    /// yet); they change when the shell replaces itself by another program.
    pub(crate) command_line: Option<String>,
    pub(crate) dialect: Dialect,
    nonce: String,
}

/// What the shell is, and so how it gets its commands.
#[derive(Debug)]
pub(crate) enum Dialect {
    /// bash: they are typed.
    Bash,
    /// A POSIX shell: they come through a pipe.
    Posix(Queue),
}

impl Dialect {
    pub(crate) fn queue(&self) -> Option<&Queue> {
        match self {
            Self::Bash => None,
            Self::Posix(queue) => Some(queue),
        }
    }
}

/// Which start-up files the shell reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartupFiles {
    User,
    None,
}

impl Instance {
    pub(crate) async fn start(
        options: &ShellOptions,
        directory: &Path,
        files: StartupFiles,
    ) -> Result<Self, TerminalError> {
        let found = Found::search(options)?;
        if !Path::new("/proc/self/fd").exists() {
            return Err(TerminalError::NotReady("/proc is not mounted; mount it in the sandbox".into()));
        }
        let Pty { master, slave } = pty::open(options.columns, options.rows)
            .and_then(|pty| pty::reset(&pty.master, options.line_feeds).map(|()| pty))
            .map_err(|source| TerminalError::Pty { source })?;
        if let Some(identity) = &options.identity {
            // Programs reopen `/dev/stdout` and the like, so the terminal belongs to its user.
            rustix::fs::fchown(&slave, Some(rustix::fs::Uid::from_raw(identity.uid)), None)
                .map_err(|error| TerminalError::Pty { source: error.into() })?;
        }
        let nonce = new_nonce()?;
        let terminal = name_of(&slave);
        let Launch { arguments, environment, directory, startup, dialect } = match &found {
            Found::Bash(_) => launch_bash(options, directory, files, &nonce, &terminal),
            Found::Posix(_) => launch_posix(options, directory, files, (&nonce, &terminal), &found)
                .map_err(|source| TerminalError::Startup { source })?,
        };
        let startup = in_memory(&startup).map_err(|source| TerminalError::Startup { source })?;
        let spec = SpawnSpec {
            program: found.program().to_owned(),
            arguments,
            environment,
            directory: Some(directory),
            identity: options.identity.clone(),
            memory_limit: options.memory_limit,
            descriptors: Descriptors::Terminal,
        };
        let process = options.spawner.spawn(&spec, &[slave.as_fd(), startup.as_fd()]).await?;
        let master = pty::watch(master).map_err(|source| TerminalError::Pty { source })?;
        Ok(Self {
            process,
            master,
            slave,
            scanner: Some(Scanner::new(&nonce, &bash::hook(&nonce))),
            command_line: None,
            dialect,
            nonce,
        })
    }

    /// The pipe of a shell that reads its commands from one.
    pub(crate) fn queue(&self) -> Option<&Queue> {
        self.dialect.queue()
    }

    /// What the text that teaches bash to report needs: the nonce, and the name of the terminal.
    pub(crate) fn bash_lesson(&self) -> (String, String) {
        (self.nonce.clone(), name_of(&self.slave))
    }

    /// The line that teaches a POSIX shell to report.
    pub(crate) fn posix_lesson(&self) -> String {
        posix::repetition(&self.nonce, &name_of(&self.slave))
    }

    /// The shell showed its first prompt.
    pub(crate) fn is_ready(&mut self) {
        self.command_line = gloveport_sys::process::command_line(self.process.pid());
        if let Dialect::Posix(queue) = &mut self.dialect {
            queue.forget_name();
        }
    }
}

/// What differs between shells at their start.
struct Launch {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
    startup: String,
    dialect: Dialect,
}

fn launch_bash(options: &ShellOptions, directory: &Path, files: StartupFiles, nonce: &str, terminal: &str) -> Launch {
    let mut arguments: Vec<OsString> = vec!["bash".into()];
    if files == StartupFiles::None {
        arguments.push("--noprofile".into());
    }
    arguments.extend(["--noediting", "--rcfile", STARTUP, "-i"].map(OsString::from));
    Launch {
        arguments,
        environment: environment(options),
        directory: directory.to_owned(),
        startup: bash::startup(nonce, files, terminal),
        dialect: Dialect::Bash,
    }
}

fn launch_posix(
    options: &ShellOptions,
    directory: &Path,
    files: StartupFiles,
    (nonce, terminal): (&str, &str),
    found: &Found,
) -> io::Result<Launch> {
    let queue = Queue::new(options.identity.as_ref())?;
    let mut environment = environment(options);
    // Where it is inherited, `dash` exports the last argument of each command under this name.
    environment.retain(|(key, _)| key != "_");
    let env = environment.iter().position(|(key, _)| key == "ENV").map(|at| environment.swap_remove(at).1);
    let env = env.as_ref().map(|value| value.to_string_lossy());
    let startup = posix::startup((nonce, terminal), files, &found.words(), directory, env.as_deref());
    environment.push(("ENV".into(), STARTUP.into()));
    Ok(Launch {
        arguments: ["sh", "-i", posix::NAME].map(OsString::from).into(),
        environment,
        directory: queue.directory().unwrap_or(directory).to_owned(),
        startup,
        dialect: Dialect::Posix(queue),
    })
}

/// The shell of the image.
enum Found {
    Bash(PathBuf),
    Posix(PathBuf),
}

impl Found {
    /// bash if there is one, and otherwise what serves as `sh`.
    fn search(options: &ShellOptions) -> Result<Self, TerminalError> {
        if let Some(shell) = &options.shell {
            let named = if shell.ends_with("bash") { Self::Bash } else { Self::Posix };
            return Ok(named(shell.clone()));
        }
        let path = options.environment.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
        let find = |name: &str| {
            let search = |value: &OsStr| find_program(name, &value.to_string_lossy(), Path::new("/"));
            ["/bin", "/usr/bin"]
                .map(|directory| Path::new(directory).join(name))
                .into_iter()
                .find(|candidate| candidate.is_file())
                .or_else(|| path.and_then(search))
                .or_else(|| search(OsStr::new("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")))
        };
        find("bash")
            .map(Self::Bash)
            .or_else(|| POSIX_SHELLS.iter().find_map(|name| find(name)).map(Self::Posix))
            .ok_or(TerminalError::NoShell)
    }

    fn program(&self) -> &Path {
        match self {
            Self::Bash(program) | Self::Posix(program) => program,
        }
    }

    /// The shell as words of a command.
    fn words(&self) -> String {
        let program = quoted(&self.program().to_string_lossy());
        if self.program().ends_with("busybox") { format!("{program} sh") } else { program }
    }
}

/// A text as one word of a command line.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn environment(options: &ShellOptions) -> Vec<(OsString, OsString)> {
    // What the shell sets itself must not reach its children as an inherited export.
    let own = ["TERM", "PS1", "PS2", "PROMPT_COMMAND", "COLUMNS", "LINES"];
    let mut environment: Vec<(OsString, OsString)> = options
        .environment
        .iter()
        .filter(|(key, _)| !own.iter().any(|name| key == name) && !key.is_empty())
        .cloned()
        .collect();
    environment.push(("TERM".into(), options.terminal_type.as_deref().unwrap_or(TERM).into()));
    environment
}

/// What tells the reports of one shell from all others, and from imitations.
pub(crate) fn new_nonce() -> Result<String, TerminalError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| TerminalError::Pty { source: io::Error::other(error.to_string()) })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Under which name a terminal is found; empty if that is not known.
fn name_of(terminal: &OwnedFd) -> String {
    std::fs::read_link(format!("/proc/self/fd/{}", terminal.as_raw_fd()))
        .map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// A text for a shell that writes to its terminal, which it names as it is named where the common name does not lead there.
fn by_its_name(text: String, terminal: &str) -> String {
    let number = terminal.strip_prefix("/dev/pts/");
    let is_plain = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    if pty::is_partial() && is_plain { text.replace(">/dev/tty", &format!(">{terminal}")) } else { text }
}

/// A file that stands in memory only.
fn in_memory(text: &str) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("startup", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(text.as_bytes())?;
    Ok(file.into())
}

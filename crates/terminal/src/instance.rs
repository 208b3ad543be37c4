//! One bash on a pseudo-terminal: how it is started and taught to report.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use gloveport_sys::{
    SessionProcess, SpawnSpec,
    host::find_program,
    pty::{self, Pty},
    spawn::Descriptors,
};
use tokio::io::unix::AsyncFd;

use crate::{error::TerminalError, scanner::Scanner, session::ShellOptions};

/// Name of the terminal type whose sequences [`crate::render`] understands, found in every terminfo database.
const TERM: &str = "screen-256color";

/// A running shell.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) process: SessionProcess,
    pub(crate) master: AsyncFd<OwnedFd>,
    pub(crate) slave: OwnedFd,
    /// Out of its place only while it hands over what was read.
    pub(crate) scanner: Option<Scanner>,
    /// Arguments as the kernel shows them; they change when the shell replaces itself by another program.
    pub(crate) command_line: Option<String>,
    /// The text that teaches a shell to report, for one that replaced the first.
    pub(crate) lesson: String,
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
        let bash = find_bash(options)?;
        if !Path::new("/proc/self/fd").exists() {
            return Err(TerminalError::NotReady("/proc is not mounted; mount it in the sandbox".into()));
        }
        let Pty { master, slave } =
            pty::open(options.columns, options.rows).map_err(|source| TerminalError::Pty { source })?;
        if let Some(identity) = &options.identity {
            // Programs reopen `/dev/stdout` and the like, so the terminal belongs to its user.
            rustix::fs::fchown(&slave, Some(rustix::fs::Uid::from_raw(identity.uid)), None)
                .map_err(|error| TerminalError::Pty { source: error.into() })?;
        }
        let nonce = nonce()?;
        let lesson = lesson(&nonce);
        let startup = startup_file(&lesson, files).map_err(|source| TerminalError::Startup { source })?;
        let mut arguments: Vec<OsString> = vec!["bash".into()];
        if files == StartupFiles::None {
            arguments.push("--noprofile".into());
        }
        arguments.extend(["--noediting", "--rcfile", "/proc/self/fd/3", "-i"].map(OsString::from));
        let spec = SpawnSpec {
            program: bash,
            arguments,
            environment: environment(options),
            directory: Some(directory.to_owned()),
            identity: options.identity.clone(),
            memory_limit: options.memory_limit,
            descriptors: Descriptors::Terminal,
        };
        let process = options.spawner.spawn(&spec, &[slave.as_fd(), startup.as_fd()]).await?;
        let master = pty::watch(master).map_err(|source| TerminalError::Pty { source })?;
        let command_line = gloveport_sys::process::command_line(process.pid());
        Ok(Self { process, master, slave, scanner: Some(Scanner::new(&nonce)), command_line, lesson })
    }
}

fn find_bash(options: &ShellOptions) -> Result<PathBuf, TerminalError> {
    let search = |value: &OsStr| find_program("bash", &value.to_string_lossy(), Path::new("/"));
    let path = options.environment.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
    ["/bin/bash", "/usr/bin/bash"]
        .map(PathBuf::from)
        .into_iter()
        .find(|candidate| candidate.is_file())
        .or_else(|| path.and_then(search))
        .or_else(|| search(OsStr::new("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")))
        .ok_or(TerminalError::NoShell)
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
    environment.push(("TERM".into(), TERM.into()));
    environment
}

fn nonce() -> Result<String, TerminalError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| TerminalError::Pty { source: io::Error::other(error.to_string()) })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// The start-up file: the lesson, then the user's own file, then the arming (so that the user's file can not undo it).
fn startup_file(lesson: &str, files: StartupFiles) -> io::Result<OwnedFd> {
    let user = match files {
        StartupFiles::User => "if [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n",
        StartupFiles::None => "",
    };
    let file = rustix::fs::memfd_create("startup", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = fs::File::from(file);
    write!(file, "exec 3<&-\n{lesson}{user}__gp_arm \"$?\"\n")?;
    Ok(file.into())
}

/// Functions that make bash report before each prompt.
///
/// * `__gp_p STATUS OPTIONS` writes the report to the terminal by name, so redirecting the shell's own output does not
///   lose it. The user's tracing, error and export options are off inside of it. It sets the prompts last: a user may
///   have made them read-only, which ends it there. A `PATH` that is too long for a report is left out.
/// * `__gp_arm STATUS` installs it. Since bash 5.1 `PROMPT_COMMAND` is a list: ours is a late element, so that a plain
///   assignment to the variable replaces the user's first element only. The prompt itself carries a second, shorter
///   report, from which a lost hook is noticed.
/// * `__gp_f STATUS` takes the line that taught a shell out of its history again.
/// * `__gp_s STATUS` sets `$?`.
/// * `__gp_h FILE STATUS [ENTRY]` makes a command that is handed over in a file ready in `__gp_c`, and puts it (or the
///   entry) into the history in place of the line that calls it. A shell that traces its commands stops that here and
///   goes on with it inside of the command.
fn lesson(nonce: &str) -> String {
    let quiet = "{ __gp_p \"$?\" \"$-\" || :; } >/dev/null 2>&1";
    format!(
        r#"__gp_s() {{ return "$1"; }}
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then
__gp_p() {{
  local -
  set +aeuxET
  local __gp_path=
  if [[ $PATH != "$__gp_last_path" && ${{#PATH}} -lt 65536 ]]; then __gp_last_path=$PATH __gp_path=$PATH; fi
  \builtin printf '\033]7777;{nonce};P\037%s\037%s\037%s\037%s\037%s\037{nonce}\a' "$1" "$!" "$2" "$__gp_path" "$PWD" >/dev/tty
  \builtin export -n PS1 PS2 PROMPT_COMMAND
  PS1=$__gp_ps1 PS2=$__gp_ps2
}}
else
__gp_p() {{
  \builtin printf '\033]7777;{nonce};P\037%s\037\037%s\037%s\037%s\037{nonce}\a' "$1" "$2" "${{PATH-}}" "${{PWD-}}" >/dev/tty
  \builtin export -n PS1 PS2 PROMPT_COMMAND
  PS1=$__gp_ps1 PS2=$__gp_ps2
}}
fi
__gp_h() {{
  __gp_c=$(<"$1")
  \builtin history -s -- "${{3-$__gp_c}}"
  if [[ $- == *x* ]]; then
    __gp_c="{{ set -x; __gp_s $2; }} 2>/dev/null"$'\n'"$__gp_c"
    set +x
  fi
  return "$2"
}}
__gp_arm() {{
  __gp_last_path=
  __gp_ps1='\[\e]7777;{nonce};D\037$?\037{nonce}\a\]' __gp_ps2='\[\e]7777;{nonce};C\037\037{nonce}\a\]'
  unset PROMPT_COMMAND
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
    PROMPT_COMMAND=([9]='{quiet}')
  else
    PROMPT_COMMAND='{quiet}'
  fi
  \builtin export -n PS1 PS2 PROMPT_COMMAND
  return "$1"
}}
__gp_f() {{
  local last
  last=$(HISTTIMEFORMAT= \builtin history 1)
  if [[ $last =~ ^\ *([0-9]+).*/\.gloveport- ]]; then \builtin history -d "${{BASH_REMATCH[1]}}"; fi
  return "$1"
}}
"#
    )
}

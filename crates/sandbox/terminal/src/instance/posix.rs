//! A POSIX shell (BusyBox `ash`, `dash`), for images without bash.
//!
//! It has no hook before its prompt, but it expands the prompt, and runs what stands in it. It shows the prompt in ways
//! of its own (to a standard error that may be redirected, or, when it does not read from a terminal, not at all), so
//! what stands in the prompt writes the report to the terminal by name and leaves nothing to show.
//!
//! It reads its commands from a pipe with a name ([`Queue`]) and not from the terminal. From a terminal `ash` reads with
//! an editor of lines that shows what is typed, and where that is switched off a background job that ends is the end of
//! its input. From a pipe it takes lines of any length, and its own standard input is free.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use gloveport_sys::{Identity, pty};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use tempfile::TempDir;
use tokio::io::{Interest, unix::AsyncFd};

use super::{StartupFiles, by_its_name, quoted};

/// The shell reads a file of this name, which becomes its `$0` and begins its messages.
pub(super) const NAME: &str = "sh";
/// Where the pipe may stand, behind the directory for temporary files.
const PLACES: [&str; 3] = ["/dev/shm", "/var/tmp", "/run"];

/// The pipe from which the shell reads its commands.
#[derive(Debug)]
pub(crate) struct Queue {
    pipe: AsyncFd<OwnedFd>,
    /// Where the pipe has its name, until the shell has opened it.
    directory: Option<TempDir>,
}

impl Queue {
    /// Makes a pipe that nobody but the shell's user may read.
    pub(super) fn new(identity: Option<&Identity>) -> io::Result<Self> {
        let mut refused = None;
        for place in std::iter::once(std::env::temp_dir()).chain(PLACES.map(PathBuf::from)) {
            match Self::below(&place, identity) {
                Ok(queue) => return Ok(queue),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    fn below(place: &Path, identity: Option<&Identity>) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(".gloveport-").tempdir_in(place)?;
        let name = directory.path().join(NAME);
        rustix::fs::mknodat(CWD, &name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // Open at both ends, so that the shell finds no end of its input and no opening waits for the other one.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let pipe = rustix::fs::open(&name, flags, Mode::empty())?;
        if let Some(identity) = identity {
            rustix::fs::fchown(&pipe, Some(rustix::fs::Uid::from_raw(identity.uid)), None)?;
            // The shell's user comes to the name, and can not change what stands there.
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711))?;
        }
        Ok(Self { pipe: pty::watch(pipe)?, directory: Some(directory) })
    }

    /// Where the shell starts, to find the pipe under its name.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(TempDir::path)
    }

    /// The shell has opened the pipe: the name is not needed any more.
    pub(crate) fn forget_name(&mut self) {
        self.directory = None;
    }

    /// Our end of it.
    pub(crate) fn pipe(&self) -> &AsyncFd<OwnedFd> {
        &self.pipe
    }

    /// Writes what fits.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.pipe.try_io(Interest::WRITABLE, |pipe| Ok(rustix::io::write(pipe, bytes)?))
    }

    /// Whether the shell has read all of it.
    pub(crate) fn is_empty(&self) -> bool {
        pty::unread_input(&self.pipe) == 0
    }

    /// Takes out what the shell has not read.
    pub(crate) fn discard(&self) {
        let mut buffer = [0; 4096];
        while rustix::io::read(self.pipe.get_ref(), &mut buffer).is_ok_and(|count| count > 0) {}
    }
}

/// The start-up file. The prompt is set twice, so that a file of the user's that is broken off does not keep the shell
/// from reporting, and one that goes on to its end does not undo it.
///
/// The user's file is the one that `ENV` names, as for every POSIX shell, and `~/.bashrc`, in which sessions keep their
/// variables, if the shell can read its grammar. Its history file is left alone: BusyBox has one unless it is told that
/// there is none. `program` is the shell itself as words of a command.
pub(super) fn startup(
    (nonce, terminal): (&str, &str),
    files: StartupFiles,
    program: &str,
    directory: &Path,
    env: Option<&str>,
) -> String {
    let lesson = by_its_name(lesson(nonce), terminal);
    let env = env.map_or_else(|| "unset ENV".to_owned(), |env| format!("ENV={}", quoted(env)));
    let own = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let (directory, own) = (quoted(&directory.to_string_lossy()), quoted(&own.to_string_lossy()));
    let user = match files {
        StartupFiles::User => format!(
            "if [ -f \"${{ENV-}}\" ]; then . \"$ENV\"; fi\n\
             if [ -f ~/.bashrc ] && {program} -n ~/.bashrc 2>/dev/null; then . ~/.bashrc; fi\n"
        ),
        StartupFiles::None => String::new(),
    };
    format!(
        "exec 3<&-\n{env}\ncd -- {directory} 2>/dev/null || cd -- {own} 2>/dev/null || cd /\nunset OLDPWD\n\
         {lesson}__gp_arm 0\n{user}HISTFILE=\n__gp_arm 0\n"
    )
}

/// Functions that make a POSIX shell report.
///
/// * The first prompt runs the report: status, last background job, options, `PATH` if it is not too long, directory.
///   The second one says that the shell asks for more. They run in a subshell, so nothing in there reaches the shell.
///   A shell that inherits them (in `dash` nothing takes an export of it back) reports nothing.
/// * `__gp_arm STATUS` sets the prompts, and does not export them with the user's option for that.
/// * `__gp_s STATUS` sets `$?`.
pub(super) fn lesson(nonce: &str) -> String {
    let report = format!(
        r#"$({{ \set -- "$?"; case $$ in (@) ;; (*) exit;; esac; __gp_p=${{PATH-}}; case ${{#__gp_p}} in (??????*) __gp_p=;; esac; \command printf '\033]7777;{nonce};P\037%s\037%s\037%s\037%s\037%s\037{nonce}\a' "$1" "${{!-}}" "$-" "$__gp_p" "${{PWD-}}" >/dev/tty; }} 2>/dev/null)"#
    );
    let continuation = format!(
        r"$({{ case $$ in (@) ;; (*) exit;; esac; \command printf '\033]7777;{nonce};C\037\037{nonce}\a' >/dev/tty; }} 2>/dev/null)"
    );
    // The place of the shell's own number.
    let [report, continuation] = [report, continuation].map(|prompt| quoted(&prompt).replace('@', "'$$'"));
    format!(
        r#"__gp_s() {{ return "$1"; }}
__gp_arm() {{
  case $- in (*a*) \set +a; __gp_arm "$1"; \set -a; return "$1";; esac
  \unset PS1 PS2 __gp_status
  PS1={report}
  PS2={continuation}
  return "$1"
}}
"#
    )
}

/// The line that makes a shell read its lesson again, and report that it does. Nothing of that is seen, and `$?` stays
/// what it is.
pub(super) fn repetition(nonce: &str, terminal: &str) -> String {
    let begin = format!(r#"\command printf '\033]7777;{nonce};L\037%s\037{nonce}\a' "$__gp_status" >/dev/tty"#);
    let text = format!("__gp_status=$?\n{begin}\n{}__gp_arm \"$__gp_status\"", lesson(nonce));
    // A command behind it, because `dash` keeps the last argument of the last one, and may export it.
    let text = by_its_name(text, terminal);
    format!("{{ {}; __gp_s \"$?\"; }} >/dev/null 2>&1\n", evaluation(&text))
}

/// Whether a complete command can be written as it is. With the quotes of bash that not every POSIX shell knows it might
/// be unfinished for the shell.
pub(crate) fn is_line(text: &str) -> bool {
    !text.contains('\n') && !text.contains("$'")
}

/// The line that runs a text of any number of lines at top level.
///
/// With tracing on, that stops for the line itself and goes on in the text, where `$?` is `status`.
pub(crate) fn line(text: &str, options: &str, status: i32) -> String {
    if !options.contains('x') {
        return evaluation(text) + "\n";
    }
    // Where a failure ends the shell there is none to pass on.
    let set = if options.contains('e') { String::new() } else { format!("__gp_s {status}; ") };
    let text = format!("{{ \\set -x; {set}}} 2>/dev/null\n{text}");
    format!("{{ \\set +x; }} 2>/dev/null; {}\n", evaluation(&text))
}

/// A command on one line that evaluates a text.
fn evaluation(text: &str) -> String {
    let one_line = text.replace('\\', r"\\").replace('\n', r"\n");
    format!("\\eval \"$(\\command printf %b {})\"", quoted(&one_line))
}

//! What `/proc` tells about the programs in the foreground: whether they wait for input, and what they use.

use std::{
    fmt::Display,
    fs,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_sys::{
    host,
    process::{self, Waiting},
    pty,
};
use rustix::fs::OFlags;

use crate::request::Usage;

/// Whether a shell is in the foreground of its terminal and waits for somebody to type, with nothing typed yet.
pub(crate) fn shell_waits(shell: u32, slave: &OwnedFd) -> bool {
    is_in_foreground(shell)
        && pty::unread_input(slave) == 0
        && match process::waiting(shell) {
            Some(waiting) => matches!(waiting, Waiting::Read { .. } | Waiting::Select),
            None => process::stat(shell).is_some_and(|stat| stat.state == 'S'),
        }
}

/// Whether a process leads the group in the foreground of its terminal.
pub(crate) fn is_in_foreground(pid: u32) -> bool {
    process::stat(pid).is_some_and(|stat| stat.foreground == Some(pid) || pty::is_partial() && in_front_of(pid) == pid)
}

/// The process group in the foreground of a shell's terminal.
pub(crate) fn foreground(shell: u32, master: &impl AsFd) -> Option<u32> {
    pty::foreground(master).or_else(|| pty::is_partial().then(|| in_front_of(shell)))
}

/// The same, where the kernel does not tell it: the group of what the shell started last, unless that was stopped. Of a program in
/// the background it is wrong.
fn in_front_of(shell: u32) -> u32 {
    let started = process::children(shell).into_iter().filter_map(process::stat);
    let runs = started.filter(|stat| !matches!(stat.state, 'T' | 't' | 'Z' | 'X') && stat.group != shell);
    runs.max_by_key(|stat| (stat.start_ticks, stat.pid)).map_or(shell, |stat| stat.group)
}

/// Size of the pieces in which the shell's parser reads from a terminal.
const PARSER_BUFFER: u64 = 1024;

/// Whether the shell reads its next command; `None` if it waits for something and does not let us see what. Its
/// builtins (`read`, `select`, `mapfile`) read from the terminal, too, but in pieces of other sizes: 1, 128 or 4096.
pub(crate) fn shell_reads_commands(shell: u32, slave: &OwnedFd) -> Option<bool> {
    if !shell_waits(shell, slave) {
        return Some(false);
    }
    process::waiting(shell)
        .map(|waiting| matches!(waiting, Waiting::Read { descriptor: 0, most } if most == PARSER_BUFFER))
}

/// Whether a program in the foreground waits for input from this terminal.
pub(crate) fn waits_for_input(shell: u32, master: &impl AsFd, slave: &OwnedFd) -> bool {
    let Some(group) = foreground(shell, master) else { return false };
    let Ok(modes) = pty::modes(master) else { return false };
    let Some(terminal) = name(std::process::id(), slave.as_raw_fd()) else { return false };
    if pty::unread_input(slave) > 0 {
        return false;
    }
    let reads = |pid: u32, terminal: &Path, canonical: bool| match process::waiting(pid) {
        Some(Waiting::Read { descriptor, .. }) => name(pid, descriptor).is_some_and(|name| name == terminal),
        Some(Waiting::Select) => !canonical && name(pid, 0).is_some_and(|name| name == terminal),
        _ => false,
    };
    in_group(shell, group).filter(|pid| reads(*pid, &terminal, modes.canonical)).any(|pid| {
        // What passes on what is typed always reads; whether somebody wants it, the terminal behind it tells.
        let behind: Vec<_> = behind(pid, &terminal).collect();
        behind.is_empty()
            || behind.into_iter().any(|(pid, inner)| {
                let canonical = modes_of(&inner).is_none_or(|modes| modes.canonical);
                process::stat(pid).is_some_and(|stat| stat.foreground == Some(stat.group))
                    && reads(pid, &inner, canonical)
            })
    })
}

/// Processes of a group of this session.
fn in_group(shell: u32, group: u32) -> impl Iterator<Item = u32> {
    let all = std::iter::once(shell).chain(process::descendants(shell));
    all.filter(move |pid| process::stat(*pid).is_some_and(|stat| stat.group == group))
}

/// Processes below one whose standard input is another terminal, with its name.
fn behind(pid: u32, terminal: &Path) -> impl Iterator<Item = (u32, PathBuf)> {
    let below = process::descendants(pid).into_iter();
    below
        .filter_map(|pid| Some((pid, name(pid, 0)?)))
        .filter(move |(_, name)| name != terminal && name.starts_with("/dev/pts"))
}

/// The file behind a descriptor.
fn name(pid: u32, descriptor: impl Display) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()
}

/// The modes of a terminal that is somebody else's.
fn modes_of(terminal: &Path) -> Option<pty::Modes> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(terminal, flags, rustix::fs::Mode::empty()).ok()?;
    pty::modes(&terminal).ok()
}

/// A bash inside of the session's shell that waits at its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompting {
    pub(crate) pid: u32,
    pub(crate) start_ticks: u64,
    /// It changes when the shell replaces itself by another one.
    pub(crate) command_line: Option<String>,
    /// Its terminal.
    pub(crate) terminal: PathBuf,
    /// Its terminal is one that a program in the foreground keeps for it (`script`), which passes on what is typed.
    pub(crate) relayed: bool,
    /// It edits lines, and shows what is typed.
    pub(crate) edits: bool,
}

impl Prompting {
    fn new(pid: u32, terminal: PathBuf, relayed: bool, edits: bool) -> Option<Self> {
        let start_ticks = process::stat(pid)?.start_ticks;
        Some(Self { pid, start_ticks, command_line: process::command_line(pid), terminal, relayed, edits })
    }

    /// Whether it is the very same shell.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.pid, self.start_ticks, &self.command_line) == (other.pid, other.start_ticks, &other.command_line)
    }
}

/// Programs that show more than one terminal: what is typed need not reach the one that is below them.
const WITH_WINDOWS: [&str; 8] = ["tmux", "screen", "SCREEN", "vim", "nvim", "emacs", "mc", "zellij"];

/// A bash that waits at its prompt for what is typed into this terminal. It is certain: nothing may be typed into
/// something else, such as a question for a password.
pub(crate) fn prompting_shell(shell: u32, master: &impl AsFd, slave: &OwnedFd) -> Option<Prompting> {
    let group = foreground(shell, master).filter(|group| *group != shell)?;
    let terminal = name(std::process::id(), slave.as_raw_fd())?;
    if pty::unread_input(slave) > 0 {
        return None;
    }
    if let Some(edits) = at_prompt(group, &terminal) {
        return Prompting::new(group, terminal, false, edits);
    }
    if pty::modes(master).is_ok_and(|modes| modes.canonical) {
        return None;
    }
    let relays = in_group(shell, group).filter(|pid| {
        let has_windows = process::stat(*pid).is_none_or(|stat| WITH_WINDOWS.contains(&stat.name.as_str()));
        let selects = process::waiting(*pid) == Some(Waiting::Select);
        !has_windows && selects && name(*pid, 0).is_some_and(|name| name == terminal)
    });
    let found: Vec<_> = relays
        .flat_map(|relay| behind(relay, &terminal))
        .filter_map(|(pid, terminal)| {
            let edits = at_prompt(pid, &terminal)?;
            Prompting::new(pid, terminal, true, edits)
        })
        .collect();
    // With several of them it is not certain which one is meant.
    <[Prompting; 1]>::try_from(found).ok().map(|[only]| only)
}

/// Whether a process is an interactive bash at its prompt on this terminal, and if so, whether it edits lines.
fn at_prompt(pid: u32, terminal: &Path) -> Option<bool> {
    let stat = process::stat(pid)?;
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    // An interactive one keeps its terminal under this number, and any other one its script.
    let keeps = name(pid, 255)?;
    let on_terminal = name(pid, 0)? == terminal && (keeps == terminal || keeps == Path::new("/dev/tty"));
    let is_bash = program.file_name().is_some_and(|name| name == "bash") || stat.name == "bash";
    if !is_bash || !on_terminal || stat.foreground != Some(stat.group) || stat.group != pid {
        return None;
    }
    let canonical = modes_of(terminal)?.canonical;
    match process::waiting(pid)? {
        Waiting::Read { descriptor: 0, most: PARSER_BUFFER } if canonical => Some(false),
        Waiting::Select if !canonical => Some(true),
        _ => None,
    }
}

/// Whether a shell in the foreground, the session's or one inside of it, is busy: it may have made a process that has
/// neither taken the terminal nor become its program yet.
pub(crate) fn is_between_programs(shell: u32, master: &impl AsFd) -> bool {
    let Some(leader) = foreground(shell, master) else { return false };
    let (Some(own), Some(found)) = (process::stat(shell), process::stat(leader)) else { return false };
    if own.name != found.name {
        return false;
    }
    let line = process::command_line(leader);
    let is_new = |child: u32| process::command_line(child) == line;
    found.state != 'S' || process::children(leader).into_iter().any(is_new)
}

/// Measures one command.
#[derive(Debug)]
pub(crate) struct Meter {
    shell: u32,
    ticks: u64,
    written: Option<u64>,
    peak: Option<u64>,
}

impl Meter {
    pub(crate) fn start(shell: u32) -> Self {
        Self { shell, ticks: ticks(shell), written: written(shell), peak: None }
    }

    /// Looks at the memory of all processes below the shell.
    pub(crate) fn sample(&mut self) {
        let sum: u64 = process::descendants(self.shell)
            .into_iter()
            .filter_map(process::resident)
            .map(|(_, private)| private)
            .sum();
        self.peak = Some(self.peak.unwrap_or(0).max(sum));
    }

    pub(crate) fn finish(self) -> Usage {
        let ticks = ticks(self.shell).saturating_sub(self.ticks);
        let per_second = host::ticks_per_second().max(1);
        Usage {
            cpu: Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second),
            peak_memory: self.peak,
            bytes_written: written(self.shell).zip(self.written).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

fn ticks(pid: u32) -> u64 {
    process::stat(pid).map_or(0, |stat| stat.cpu_ticks + stat.children_cpu_ticks)
}

fn written(pid: u32) -> Option<u64> {
    process::storage_io(pid).map(|(written, _)| written)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::{Command, Stdio},
        time::Instant,
    };

    use super::*;

    #[test]
    fn who_is_in_front_is_what_the_shell_has_started_last_unless_it_was_stopped() {
        let script = "set -m; sleep 600 & echo $!; read -r x";
        let mut shell = Command::new("bash");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started: u32 = line.trim().parse().unwrap();
        let signal = |name: &str| Command::new("kill").args([name, line.trim()]).status().unwrap();
        let until = |expected: u32| {
            let deadline = Instant::now() + Duration::from_secs(10);
            while in_front_of(shell.id()) != expected {
                assert!(Instant::now() < deadline, "it is not {expected}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        until(started);
        signal("-STOP");
        until(shell.id());
        signal("-CONT");
        until(started);
        signal("-KILL");
        until(shell.id());
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}

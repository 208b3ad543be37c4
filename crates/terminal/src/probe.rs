//! What `/proc` tells about the programs in the foreground: whether they wait for input, and what they use.

use std::{
    fs,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    time::Duration,
};

use gloveport_sys::{
    host,
    process::{self, Waiting},
    pty,
};

use crate::session::Usage;

/// Whether the shell itself is in the foreground and waits for somebody to type, with nothing typed yet.
pub(crate) fn shell_waits(shell: u32, master: &impl AsFd, slave: &OwnedFd) -> bool {
    pty::foreground(master) == Some(shell)
        && pty::unread_input(slave) == 0
        && match process::waiting(shell) {
            Some(waiting) => matches!(waiting, Waiting::Read { .. } | Waiting::Select),
            None => process::stat(shell).is_some_and(|stat| stat.state == 'S'),
        }
}

/// Size of the pieces in which the shell's parser reads from a terminal.
const PARSER_BUFFER: u64 = 1024;

/// Whether the shell reads its next command; `None` if it waits for something and does not let us see what. Its
/// builtins (`read`, `select`, `mapfile`) read from the terminal, too, but in pieces of other sizes: 1, 128 or 4096.
pub(crate) fn shell_reads_commands(shell: u32, master: &impl AsFd, slave: &OwnedFd) -> Option<bool> {
    if !shell_waits(shell, master, slave) {
        return Some(false);
    }
    process::waiting(shell)
        .map(|waiting| matches!(waiting, Waiting::Read { descriptor: 0, most } if most == PARSER_BUFFER))
}

/// Whether a program in the foreground waits for input from this terminal.
pub(crate) fn waits_for_input(shell: u32, master: &impl AsFd, slave: &OwnedFd) -> bool {
    let Some(group) = pty::foreground(master) else { return false };
    let Ok(modes) = pty::modes(master) else { return false };
    let terminal = fs::read_link(format!("/proc/self/fd/{}", slave.as_raw_fd())).ok();
    let on_terminal = |pid: u32, descriptor: u64| {
        terminal.is_some() && fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok() == terminal
    };
    if pty::unread_input(slave) > 0 {
        return false;
    }
    let mut candidates = vec![shell];
    candidates.extend(process::descendants(shell));
    candidates.into_iter().filter(|pid| process::stat(*pid).is_some_and(|stat| stat.group == group)).any(|pid| {
        match process::waiting(pid) {
            Some(Waiting::Read { descriptor, .. }) => on_terminal(pid, descriptor),
            Some(Waiting::Select) => !modes.canonical && on_terminal(pid, 0),
            _ => false,
        }
    })
}

/// Whether a shell in the foreground, the session's or one inside of it, is busy: it may have made a process that has
/// neither taken the terminal nor become its program yet.
pub(crate) fn is_between_programs(shell: u32, master: &impl AsFd) -> bool {
    let Some(leader) = pty::foreground(master) else { return false };
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

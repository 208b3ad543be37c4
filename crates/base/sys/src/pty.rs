//! A pseudo-terminal and its modes.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::{
    fs::{CWD, Mode, OFlags, fcntl_getfl, fcntl_setfl, openat},
    io::{Errno, ioctl_fionread},
    process::Pid,
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt},
    termios::{
        ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector, SpecialCodeIndex, Winsize,
        tcflush, tcgetattr, tcgetpgrp, tcsetattr, tcsetwinsize,
    },
};
use tokio::io::unix::AsyncFd;

/// Whether terminals were found to be [partial](is_partial).
static PARTIAL: AtomicBool = AtomicBool::new(false);

/// Both ends of a pseudo-terminal.
#[derive(Debug)]
pub struct Pty {
    /// Our end. Non-blocking, closed on exec.
    pub master: OwnedFd,
    /// The programs' end. Closed on exec in this process.
    pub slave: OwnedFd,
}

/// What a terminal makes of a line feed that a program writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineFeeds {
    /// It stays as it is, so that what arrives are the very bytes that programs wrote.
    #[default]
    AsWritten,
    /// It gets a carriage return before it, as on a person's terminal.
    WithReturn,
}

/// Modes of a terminal that decide what typed text does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the kernel has a flag for each")]
pub struct Modes {
    /// Typed text is shown by the kernel.
    pub echo: bool,
    /// Input is delivered line by line.
    pub canonical: bool,
    /// C-c, C-z and C-\ send signals.
    pub signals: bool,
    /// The key that kills a line is shown, too, if typed text is.
    pub echo_kill: bool,
}

impl Modes {
    /// Whether a program waits for a line that nobody shall see, such as a password, on a terminal that was in the modes of
    /// [`reset`] before. Those show nothing anyway, so it is known by what else such programs turn off (`read -s`, `sudo`,
    /// the C library's `getpass`).
    pub const fn hide_line(&self) -> bool {
        self.canonical && !self.echo && (!self.echo_kill || !self.signals)
    }
}

/// Opens a pseudo-terminal of the given size in the modes of [`reset`].
pub fn open(columns: u16, rows: u16) -> io::Result<Pty> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = other_end(&master)?;
    fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
    resize(&master, columns, rows)?;
    reset(&master, LineFeeds::AsWritten)?;
    Ok(Pty { master, slave })
}

/// Whether terminals of this kernel do less than those of Linux, as those of gVisor: `/dev/tty` cannot be opened, nobody is told
/// who is in the foreground or what was not read, and a key that sends a signal stays to be read. It is known once one was opened.
pub fn is_partial() -> bool {
    PARTIAL.load(Ordering::Relaxed)
}

/// The end of the programs.
fn other_end(master: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    match ioctl_tiocgptpeer(master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC) {
        Err(Errno::NOTTY | Errno::INVAL | Errno::NOSYS) => {
            PARTIAL.store(true, Ordering::Relaxed);
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            openat(CWD, ptsname(master, Vec::new())?, flags, Mode::empty())
        }
        opened => opened,
    }
}

/// Lets a task wait until a terminal, or another descriptor that can be waited for, can be read or written. Must be
/// called within a tokio runtime.
#[expect(unsafe_code, reason = "the caller of `register` has to guarantee that the descriptor stays open")]
pub fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the `AsyncFd` owns the descriptor, and `OwnedFd` keeps it open and the same for its whole life.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Sets the size that programs see.
pub fn resize(master: &impl AsFd, columns: u16, rows: u16) -> io::Result<()> {
    Ok(tcsetwinsize(master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?)
}

/// Puts the terminal into the modes that a person expects of a fresh one: echo, editing of lines, signals on keys, and a
/// carriage return before each line feed.
pub fn sane(master: &impl AsFd) -> io::Result<()> {
    reset(master, LineFeeds::WithReturn)?;
    let mut termios = tcgetattr(master)?;
    termios.local_modes |= LocalModes::ECHO | LocalModes::ECHOCTL | LocalModes::ECHOKE;
    Ok(tcsetattr(master, OptionalActions::Now, &termios)?)
}

/// Puts the terminal into the modes in which a command starts: line by line, signals on, no echo (what we type is
/// known), and line feeds as told.
pub fn reset(master: &impl AsFd, line_feeds: LineFeeds) -> io::Result<()> {
    let mut termios = tcgetattr(master)?;
    termios.input_modes = InputModes::ICRNL | InputModes::IXON | InputModes::IUTF8 | InputModes::BRKINT;
    termios.output_modes = match line_feeds {
        LineFeeds::AsWritten => OutputModes::OPOST,
        LineFeeds::WithReturn => OutputModes::OPOST | OutputModes::ONLCR,
    };
    termios.local_modes =
        LocalModes::ISIG | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ECHOE | LocalModes::ECHOK;
    termios.control_modes |= ControlModes::CREAD | ControlModes::CS8;
    for (index, code) in [
        (SpecialCodeIndex::VINTR, 3),
        (SpecialCodeIndex::VQUIT, 28),
        (SpecialCodeIndex::VERASE, 127),
        (SpecialCodeIndex::VKILL, 21),
        (SpecialCodeIndex::VEOF, 4),
        (SpecialCodeIndex::VSUSP, 26),
        (SpecialCodeIndex::VSTART, 17),
        (SpecialCodeIndex::VSTOP, 19),
        (SpecialCodeIndex::VMIN, 1),
        (SpecialCodeIndex::VTIME, 0),
    ] {
        termios.special_codes[index] = code;
    }
    Ok(tcsetattr(master, OptionalActions::Now, &termios)?)
}

/// The modes in force.
pub fn modes(master: &impl AsFd) -> io::Result<Modes> {
    let termios = tcgetattr(master)?;
    Ok(Modes {
        echo: termios.local_modes.contains(LocalModes::ECHO),
        canonical: termios.local_modes.contains(LocalModes::ICANON),
        signals: termios.local_modes.contains(LocalModes::ISIG),
        echo_kill: termios.local_modes.contains(LocalModes::ECHOK),
    })
}

/// Process group in the foreground; `None` when the process whose terminal it is has ended.
pub fn foreground(master: &impl AsFd) -> Option<u32> {
    tcgetpgrp(master).ok().map(Pid::as_raw_pid).and_then(|pid| u32::try_from(pid).ok())
}

/// Bytes that were typed and that no program has read yet.
pub fn unread_input(slave: &impl AsFd) -> u64 {
    ioctl_fionread(slave).unwrap_or(0)
}

/// Throws away typed text that no program has read yet.
pub fn discard_input(slave: &impl AsFd) -> io::Result<()> {
    match tcflush(slave, QueueSelector::IFlush) {
        // It stays to be read there.
        Err(Errno::NOTTY) if is_partial() => Ok(()),
        flushed => Ok(flushed?),
    }
}

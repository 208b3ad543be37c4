//! What every Unix has.

use std::{
    fs::File,
    io::{self, Write as _},
};

use gloveport_protocol::terminals::TerminalSize;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
};

/// The terminal of this process.
const TERMINAL: &str = "/dev/tty";

pub(super) const EMPTY_READ: Option<u8> = None;
pub(super) const ECHO_AGAIN: &str = "`stty echo` fixes that";

/// The modes of standard input.
#[derive(Debug, Clone)]
pub(super) struct Modes(Termios);

impl Modes {
    pub(super) fn of_input() -> io::Result<Self> {
        Ok(Self(tcgetattr(io::stdin())?))
    }

    pub(super) fn raw(&self) -> Self {
        let mut raw = self.clone();
        raw.0.make_raw();
        raw
    }

    /// `None` if nothing is shown anyway.
    pub(super) fn without_echo(&self) -> Option<Self> {
        let mut modes = self.clone();
        if !modes.0.local_modes.contains(LocalModes::ECHO) {
            return None;
        }
        modes.0.local_modes.remove(LocalModes::ECHO);
        Some(modes)
    }

    pub(super) fn set(&self) -> io::Result<()> {
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &self.0)?)
    }
}

pub(super) fn size() -> Option<TerminalSize> {
    let sizes = [tcgetwinsize(io::stdin()), tcgetwinsize(io::stdout()), tcgetwinsize(io::stderr())];
    let size = sizes.into_iter().flatten().find(|size| size.ws_col > 0 && size.ws_row > 0)?;
    Some(TerminalSize { columns: size.ws_col, rows: size.ws_row })
}

pub(super) fn own() -> io::Result<(File, File)> {
    let output = File::options().read(true).write(true).open(TERMINAL)?;
    let input = output.try_clone()?;
    let _still_there = tcflush(&input, QueueSelector::IFlush);
    Ok((input, output))
}

pub(super) fn forget_typed() {
    let _still_there = tcflush(io::stdin(), QueueSelector::IFlush);
}

pub(super) fn without_end(line: &str) -> &str {
    line.strip_suffix('\n').unwrap_or(line)
}

pub(super) fn show(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

/// Every terminal obeys.
pub(super) const fn prepare() {}

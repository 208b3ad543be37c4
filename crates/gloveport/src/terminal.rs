//! The terminal of whoever started us: its modes, its size, and how it is reached when the standard streams lead elsewhere.
//! How a system does that is in a file for its family.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::{
    fs::File,
    io::{self, IsTerminal as _},
};

use anyhow::Context as _;
use gloveport_protocol::terminals::TerminalSize;

#[cfg(unix)]
use unix as family;
#[cfg(windows)]
use windows as family;

/// What an empty read of a terminal in raw mode stands for; `None` where it is the end.
pub(crate) const EMPTY_READ: Option<u8> = family::EMPTY_READ;

/// Our terminal in raw mode: every key is a byte for the program. Dropping it brings the modes back, in whatever way
/// it is dropped.
#[derive(Debug)]
pub(crate) struct RawMode {
    before: family::Modes,
    raw: family::Modes,
}

impl RawMode {
    /// Sets it; `None` if standard input is no terminal.
    pub(crate) fn set() -> anyhow::Result<Option<Self>> {
        if !io::stdin().is_terminal() {
            return Ok(None);
        }
        let before = family::Modes::of_input().context("cannot read the modes of the terminal")?;
        let raw = before.raw();
        let mode = Self { before, raw };
        mode.raw.set().context("cannot set the terminal to raw mode")?;
        Ok(Some(mode))
    }

    /// Sets it once more: a shell that continues us may have changed it.
    pub(crate) fn again(&self) {
        if let Err(error) = self.raw.set() {
            tracing::debug!(%error, "the terminal can not be set to raw mode again");
        }
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no modes.
        let _gone = self.before.set();
    }
}

/// Hides what is typed on our terminal, as long as it lives.
#[derive(Debug)]
pub(crate) struct Hidden {
    before: family::Modes,
}

impl Hidden {
    /// `None` if standard input is no terminal, or shows nothing anyway.
    pub(crate) fn begin() -> Option<Self> {
        let before = family::Modes::of_input().ok()?;
        before.without_echo()?.set().ok()?;
        Some(Self { before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Err(error) = self.before.set() {
            tracing::warn!("your terminal no longer shows what you type ({error}); {}", family::ECHO_AGAIN);
        }
    }
}

/// Size of our terminal, if there is one that tells it.
pub(crate) fn size() -> Option<TerminalSize> {
    family::size()
}

/// The terminal of this process, wherever its standard streams go: to read from, and to write to. What was typed before
/// is forgotten.
pub(crate) fn own() -> io::Result<(File, File)> {
    family::own()
}

/// Forgets what was typed on standard input and not read yet.
pub(crate) fn forget_typed() {
    family::forget_typed();
}

/// A line that was read, without its end.
pub(crate) fn without_end(line: &str) -> &str {
    family::without_end(line)
}

/// Writes to standard output what is to be seen at once.
pub(crate) fn show(bytes: &[u8]) -> io::Result<()> {
    family::show(bytes)
}

/// Lets our terminal obey what programs for terminals write.
pub(crate) fn prepare() {
    family::prepare();
}

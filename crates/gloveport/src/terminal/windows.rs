//! Windows: its console, in whatever window it is.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Write as _},
    sync::{Mutex, PoisonError},
};

use crossterm_winapi::{Console, ConsoleMode, Handle, HandleType, ScreenBuffer};
use gloveport_protocol::terminals::TerminalSize;

use crate::visible;

/// Modes of the input: keys that the console obeys itself, whole lines, what is typed is shown, and keys as the sequences
/// that terminals send for them.
const PROCESSED: u32 = 0x1;
const LINES: u32 = 0x2;
const ECHO: u32 = 0x4;
const SEQUENCES: u32 = 0x200;
/// Modes of the output: a line feed and the like are obeyed, sequences too, and a line feed does not return.
const OBEYED: u32 = 0x1;
const SEQUENCES_OBEYED: u32 = 0x4;
const NO_RETURN: u32 = 0x8;

/// Std takes C-z for the end of a console's input.
pub(super) const EMPTY_READ: Option<u8> = Some(0x1a);
pub(super) const ECHO_AGAIN: &str = "a new window does";

/// The beginning of a character, whose rest comes in the next piece of output.
static BEGUN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The modes of the console's input and output.
#[derive(Debug, Clone)]
pub(super) struct Modes {
    input: u32,
    /// None if standard output is no console.
    output: Option<u32>,
}

fn input() -> io::Result<ConsoleMode> {
    Ok(ConsoleMode::from(Handle::new(HandleType::CurrentInputHandle)?))
}

fn output() -> io::Result<ConsoleMode> {
    Ok(ConsoleMode::from(Handle::new(HandleType::CurrentOutputHandle)?))
}

impl Modes {
    pub(super) fn of_input() -> io::Result<Self> {
        if !io::stdin().is_terminal() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "standard input is no console"));
        }
        let shows = io::stdout().is_terminal();
        Ok(Self { input: input()?.mode()?, output: if shows { Some(output()?.mode()?) } else { None } })
    }

    pub(super) fn raw(&self) -> Self {
        Self {
            input: (self.input & !(PROCESSED | LINES | ECHO)) | SEQUENCES,
            output: self.output.map(|modes| modes | OBEYED | SEQUENCES_OBEYED | NO_RETURN),
        }
    }

    /// `None` if nothing is shown anyway.
    pub(super) fn without_echo(&self) -> Option<Self> {
        (self.input & ECHO != 0).then(|| Self { input: self.input & !ECHO, ..self.clone() })
    }

    pub(super) fn set(&self) -> io::Result<()> {
        input()?.set_mode(self.input)?;
        match self.output {
            Some(modes) => output()?.set_mode(modes),
            None => Ok(()),
        }
    }
}

pub(super) fn size() -> Option<TerminalSize> {
    let size = ScreenBuffer::current().ok()?.info().ok()?.terminal_size();
    // Both are counted from zero.
    let characters = |last: i16| u16::try_from(last).ok()?.checked_add(1);
    Some(TerminalSize { columns: characters(size.width)?, rows: characters(size.height)? })
}

pub(super) fn own() -> io::Result<(File, File)> {
    let input = File::options().read(true).write(true).open("CONIN$")?;
    let output = File::options().read(true).write(true).open("CONOUT$")?;
    forget_typed();
    Ok((input, output))
}

pub(super) fn forget_typed() {
    let typed = Handle::new(HandleType::CurrentInputHandle).map(|input| Console::from(input).read_console_input());
    if let Err(error) | Ok(Err(error)) = typed {
        tracing::debug!(%error, "what was typed before may be read");
    }
}

pub(super) fn without_end(line: &str) -> &str {
    line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')).unwrap_or(line)
}

/// Std refuses to write to a console what is no UTF-8.
pub(super) fn show(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    if output.is_terminal() {
        let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
        begun.extend_from_slice(bytes);
        let end = visible::complete(&begun);
        let rest = begun.split_off(end);
        output.write_all(String::from_utf8_lossy(&begun).as_bytes())?;
        *begun = rest;
    } else {
        output.write_all(bytes)?;
    }
    output.flush()
}

/// Older windows obey only if they are asked to.
pub(super) fn prepare() {
    if !io::stdout().is_terminal() && !io::stderr().is_terminal() {
        return;
    }
    let obeys = output().and_then(|output| output.set_mode(output.mode()? | OBEYED | SEQUENCES_OBEYED));
    if let Err(error) = obeys {
        tracing::debug!(%error, "the console may show sequences instead of colours");
    }
}

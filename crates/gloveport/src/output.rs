//! Text for people: on standard output, on standard error, and the line that moves while something is being made.

use std::{
    io::{self, ErrorKind, IsTerminal as _, Write as _},
    time::Duration,
};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::{terminal, visible};

/// What failed when standard output could not be written.
pub(crate) const WRITING: &str = "cannot write to standard output";
/// How often the line on the terminal moves.
const TICK: Duration = Duration::from_millis(100);

/// A line that moves; only a terminal gets one.
pub(crate) fn moving_line() -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        bar
    })
}

/// Tells a person what is going on, on standard error. What cannot be told is no failure.
pub(crate) fn tell(text: &str) {
    let _nobody_reads = writeln!(std::io::stderr(), "{}", visible::lines(text));
}

/// Writes a text that may come from anywhere: a terminal shows what it would otherwise obey. Whoever reads and has seen
/// enough is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    if std::io::stdout().is_terminal() { print_painted(&visible::lines(text)) } else { print_painted(text) }
}

/// Writes a text with colours of ours, whose foreign parts are harmless already.
pub(crate) fn print_painted(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context(WRITING),
    }
}

/// Writes bytes that are for a program.
pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    terminal::show(bytes).context(WRITING)
}

/// Whether an error only says that nobody reads what we write, who has seen enough.
pub(crate) fn is_unread(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
    error.to_string() == WRITING && error.root_cause().downcast_ref().is_some_and(broken)
}

/// Writes a value as JSON, indented for people.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

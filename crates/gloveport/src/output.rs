//! Text on standard output.

use std::io::{ErrorKind, Write as _};

use anyhow::Context as _;
use serde::Serialize;

/// Writes a text. Whoever reads and has seen enough is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Writes a value as JSON, indented for people.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

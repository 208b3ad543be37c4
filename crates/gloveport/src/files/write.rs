//! `gloveport write` and `session write`.

use std::process::ExitCode;

use anyhow::Context as _;
use gloveport_protocol::{Action, WriteAction};

use super::{WriteArgs, WriteWhat, given, tools::Tools};

pub(crate) async fn write(arguments: WriteArgs) -> anyhow::Result<ExitCode> {
    write_with(&Tools::new(&arguments.server)?, arguments.what).await
}

/// Writes a file of the place of these tools.
pub(crate) async fn write_with(tools: &Tools, what: WriteWhat) -> anyhow::Result<ExitCode> {
    let content = || what.text.as_deref().map_or_else(given::standard_input, given::bytes);
    let path = tools.place().absolute(&what.path).await?;
    let shown = if let Some((first, last)) = what.lines {
        let mut text =
            String::from_utf8(content()?).context("lines can only be replaced by text, and this is not UTF-8")?;
        // The action ends the last line itself.
        if text.ends_with('\n') {
            text.pop();
        }
        let action = WriteAction { start: first - 1, end: last, ..WriteAction::new(path, text) };
        tools.execute(Action::Write(action)).await?
    } else {
        tools.store(&path, content()?).await?
    };
    if what.json { shown.print_json() } else { shown.succeeded() }
}

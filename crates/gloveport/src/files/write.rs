//! `gloveport write`.

use std::{
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
};

use anyhow::Context as _;
use gloveport_protocol::{Action, WriteAction};

use super::{WriteArgs, place::Place};

pub(crate) async fn write(arguments: WriteArgs) -> anyhow::Result<ExitCode> {
    let place = Place::new(&arguments.server)?;
    let path = place.absolute(&arguments.path).await?;
    let Some((first, last)) = arguments.lines else {
        place.store(&path, content(arguments.text)?).await?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut text = String::from_utf8(content(arguments.text)?)
        .context("lines can only be replaced by text, and this is not UTF-8")?;
    // The action ends the last line itself.
    if text.ends_with('\n') {
        text.pop();
    }
    let action = WriteAction { start: first - 1, end: last, ..WriteAction::new(path, text) };
    place.execute(Action::Write(action)).await?.succeeded()
}

fn content(text: Option<String>) -> anyhow::Result<Vec<u8>> {
    if let Some(text) = text {
        return Ok(text.into_bytes());
    }
    let mut input = std::io::stdin();
    if input.is_terminal() {
        tracing::info!("reading the content from the terminal; end it with C-d");
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).context("cannot read the content from standard input")?;
    Ok(bytes)
}

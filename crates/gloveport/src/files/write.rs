//! `gloveport write`.

use std::process::ExitCode;

use anyhow::Context as _;
use gloveport_protocol::{Action, WriteAction};

use super::{WriteArgs, given, place::Place};

pub(crate) async fn write(arguments: WriteArgs) -> anyhow::Result<ExitCode> {
    let content = || arguments.text.as_deref().map_or_else(given::standard_input, given::bytes);
    let place = Place::new(&arguments.server)?;
    let path = place.absolute(&arguments.path).await?;
    let Some((first, last)) = arguments.lines else {
        place.store(&path, content()?).await?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut text =
        String::from_utf8(content()?).context("lines can only be replaced by text, and this is not UTF-8")?;
    // The action ends the last line itself.
    if text.ends_with('\n') {
        text.pop();
    }
    let action = WriteAction { start: first - 1, end: last, ..WriteAction::new(path, text) };
    place.execute(Action::Write(action)).await?.succeeded()
}

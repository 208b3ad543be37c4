//! `gloveport view` and `session view`.

use std::process::ExitCode;

use gloveport_protocol::{Action, FileReadSource, ReadAction};
use serde_json::Value;

use super::{ViewArgs, ViewWhat, tools::Tools};

pub(crate) async fn view(arguments: ViewArgs) -> anyhow::Result<ExitCode> {
    view_with(&Tools::new(&arguments.server)?, arguments.what).await
}

/// Shows a file or a directory of the place of these tools.
pub(crate) async fn view_with(tools: &Tools, what: ViewWhat) -> anyhow::Result<ExitCode> {
    let path = tools.place().absolute(&what.path).await?;
    let mut action = ReadAction::new(path);
    if what.raw {
        if let Some((first, last)) = what.lines {
            (action.start, action.end) = (first - 1, last);
        }
    } else {
        action.impl_source = FileReadSource::OhAci;
        action.view_range = what.lines.map(|(first, last)| vec![Value::from(first), Value::from(last)]);
    }
    let shown = tools.execute(Action::Read(action)).await?;
    if what.json { shown.print_json() } else { shown.print_content() }
}

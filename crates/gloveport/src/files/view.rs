//! `gloveport view`.

use std::process::ExitCode;

use gloveport_protocol::{Action, FileReadSource, ReadAction};
use serde_json::Value;

use super::{ViewArgs, place::Place};

pub(crate) async fn view(arguments: ViewArgs) -> anyhow::Result<ExitCode> {
    let place = Place::new(&arguments.server)?;
    let path = place.absolute(&arguments.path).await?;
    let mut action = ReadAction::new(path);
    if arguments.raw {
        if let Some((first, last)) = arguments.lines {
            (action.start, action.end) = (first - 1, last);
        }
    } else {
        action.impl_source = FileReadSource::OhAci;
        action.view_range = arguments.lines.map(|(first, last)| vec![Value::from(first), Value::from(last)]);
    }
    let observation = place.execute(Action::Read(action)).await?;
    if arguments.json {
        return observation.print_json();
    }
    observation.print_content()
}

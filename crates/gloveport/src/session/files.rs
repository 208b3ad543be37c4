//! `gloveport session view`, `write` and `edit`: files of a session, as operations.

use std::process::ExitCode;

use super::{
    arguments::{EditArgs, RecordArgs, ViewArgs, WriteArgs},
    operations,
    runtimes::Runtimes,
};
use crate::files::{self, Tools, place::Place};

pub(super) async fn view(runtimes: &Runtimes, arguments: ViewArgs) -> anyhow::Result<ExitCode> {
    let tools = tools(runtimes, &arguments.id, &arguments.record, false).await?;
    files::view_with(&tools, arguments.what).await
}

pub(super) async fn write(runtimes: &Runtimes, arguments: WriteArgs) -> anyhow::Result<ExitCode> {
    let tools = tools(runtimes, &arguments.id, &arguments.record, arguments.what.takes_input()).await?;
    files::write_with(&tools, arguments.what).await
}

pub(super) async fn edit(runtimes: &Runtimes, arguments: EditArgs) -> anyhow::Result<ExitCode> {
    let tools = tools(runtimes, &arguments.id, &arguments.record, arguments.what.takes_input()).await?;
    files::edit_with(&tools, arguments.what).await
}

/// The file tools of a session.
async fn tools(runtimes: &Runtimes, id: &str, record: &RecordArgs, input_is_taken: bool) -> anyhow::Result<Tools> {
    let mut found = runtimes.find(id).await?;
    let client = found.client().await?;
    let operations = operations::of_session(runtimes, &client, &found, record.handling(input_is_taken)).await?;
    Ok(Tools::of_session(Place::There(Box::new(client)), operations))
}

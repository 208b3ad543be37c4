//! `gloveport edit`.

use std::{
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
};

use anyhow::Context as _;
use gloveport_protocol::{Action, EditAction, InsertLine};

use super::{EditArgs, arguments::EditCommand, place::Place};

pub(crate) async fn edit(arguments: EditArgs) -> anyhow::Result<ExitCode> {
    let place = Place::new(&arguments.server)?;
    let action = action(arguments.command, &place).await?;
    let observation = place.execute(Action::Edit(action)).await?;
    if arguments.json {
        return observation.print_json();
    }
    observation.print_change(std::io::stdout().is_terminal())
}

async fn action(command: EditCommand, place: &Place) -> anyhow::Result<EditAction> {
    let new = async |command: &str, path: &str| {
        let path = place.absolute(path).await?;
        Ok::<_, anyhow::Error>(EditAction { command: command.to_owned(), ..EditAction::new(path) })
    };
    Ok(match command {
        EditCommand::Replace { path, old, new: replacement } => {
            anyhow::ensure!(old != "-" || replacement != "-", "only one text can come from standard input");
            EditAction {
                old_str: Some(given(old)?),
                new_str: Some(given(replacement)?),
                ..new("str_replace", &path).await?
            }
        }
        EditCommand::Insert { path, line, text } => EditAction {
            insert_line: Some(InsertLine::Number(line)),
            // The editor ends the lines itself.
            new_str: Some(without_last_end(given(text)?)),
            ..new("insert", &path).await?
        },
        EditCommand::Create { path, text } => {
            EditAction { file_text: Some(given(text)?), ..new("create", &path).await? }
        }
        EditCommand::Undo { path } => {
            anyhow::ensure!(
                !place.is_here(),
                "only a server remembers edits; give it with --url (a file of this machine has no history)"
            );
            new("undo_edit", &path).await?
        }
    })
}

/// The text itself, or what `@FILE` or `-` name.
fn given(text: String) -> anyhow::Result<String> {
    if text == "-" {
        let mut read = String::new();
        std::io::stdin().read_to_string(&mut read).context("cannot read standard input as text")?;
        return Ok(read);
    }
    match text.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("cannot read {file} as text")),
        None => Ok(text),
    }
}

fn without_last_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

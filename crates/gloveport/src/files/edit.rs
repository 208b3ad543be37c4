//! `gloveport edit` and `session edit`.

use std::{io::IsTerminal as _, process::ExitCode};

use gloveport_protocol::{Action, EditAction, InsertLine};

use super::{EditArgs, EditWhat, arguments::EditCommand, given, place::Place, tools::Tools};

pub(crate) async fn edit(arguments: EditArgs) -> anyhow::Result<ExitCode> {
    edit_with(&Tools::new(&arguments.server)?, arguments.what).await
}

/// Changes a file of the place of these tools.
pub(crate) async fn edit_with(tools: &Tools, what: EditWhat) -> anyhow::Result<ExitCode> {
    let action = action(what.command, tools.place()).await?;
    let shown = tools.execute(Action::Edit(action)).await?;
    if what.json { shown.print_json() } else { shown.print_change(std::io::stdout().is_terminal()) }
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
                old_str: Some(given::text(&old)?),
                new_str: Some(given::text(&replacement)?),
                ..new("str_replace", &path).await?
            }
        }
        EditCommand::Insert { path, line, text } => EditAction {
            insert_line: Some(InsertLine::Number(line)),
            // The editor ends the lines itself.
            new_str: Some(without_last_end(given::text(&text)?)),
            ..new("insert", &path).await?
        },
        EditCommand::Create { path, text } => {
            EditAction { file_text: Some(given::text(&text)?), ..new("create", &path).await? }
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

fn without_last_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

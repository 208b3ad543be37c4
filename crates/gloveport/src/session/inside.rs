//! `gloveport session ps`, `interrupt` and `kill`: the commands inside of a session, or of a server that somebody serves.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use gloveport_client::ActionExecutionClient;
use gloveport_protocol::exec::{ExecState, ExecStatus, Session};
use serde_json::json;
use tokio::time::sleep;

use super::{
    arguments::{InterruptArgs, PsArgs, ServerArgs},
    runtimes::Runtimes,
    table,
};
use crate::{
    key_file,
    output::{print, print_json, print_painted},
    paint::Paint,
    run::told,
    visible,
};

/// How long a command that is killed has to end: it is interrupted, then quit.
const KILLED: Duration = Duration::from_secs(10);
/// Pause between questions whether it has.
const KILL_PAUSE: Duration = Duration::from_millis(20);
/// What a server says last of one that takes no notice.
const RUNS_ON: &str = "still runs in the session";
const HEADING: [&str; 4] = ["COMMAND", "STATE", "SHELL", "TEXT"];
/// Most of a command's text that is shown.
const SHOWN: usize = 100;

pub(super) async fn list(runtimes: &Runtimes, arguments: PsArgs) -> anyhow::Result<ExitCode> {
    let client = client(runtimes, arguments.id.as_deref(), &arguments.server).await?;
    let mut known = commands(&client).await?;
    known.retain(|command| arguments.all || !matches!(command.state, ExecState::Ended(_)));
    if arguments.json {
        print_json(&known)?;
    } else {
        let rows: Vec<Vec<String>> = known.iter().map(row).collect();
        print_painted(&table::table(&HEADING, &rows, Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn interrupt(runtimes: &Runtimes, arguments: InterruptArgs) -> anyhow::Result<ExitCode> {
    let (client, id) = chosen(runtimes, &arguments).await?;
    client.exec_interrupt(&id).await.map_err(|error| told(error, client.url()))?;
    tell_command(&id, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Gives a command up, and waits for its end.
pub(super) async fn kill(runtimes: &Runtimes, arguments: InterruptArgs) -> anyhow::Result<ExitCode> {
    let (client, id) = chosen(runtimes, &arguments).await?;
    client.exec_cancel(&id).await.map_err(|error| told(error, client.url()))?;
    let deadline = Instant::now() + KILLED;
    let end = loop {
        let status = client.exec_status(&id).await.map_err(|error| told(error, client.url()))?;
        if let ExecState::Ended(end) = status.state {
            break end;
        }
        anyhow::ensure!(Instant::now() < deadline, "command {id} has not ended; `session ps` shows it");
        sleep(KILL_PAUSE).await;
    };
    tell_command(&id, arguments.json)?;
    let runs_on = end.message.filter(|text| text.ends_with(RUNS_ON));
    anyhow::ensure!(runs_on.is_none(), "command {id} {}", runs_on.unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

fn tell_command(id: &str, as_json: bool) -> anyhow::Result<()> {
    if as_json { print_json(&json!({"command": id})) } else { print(&format!("{id}\n")) }
}

/// The command that is meant, and the way to it.
async fn chosen(runtimes: &Runtimes, arguments: &InterruptArgs) -> anyhow::Result<(ActionExecutionClient, String)> {
    let mut ids = arguments.ids.iter().map(String::as_str);
    let session = if arguments.server.url.is_some() { None } else { ids.next() };
    let (wanted, rest) = (ids.next(), ids.next());
    anyhow::ensure!(rest.is_none(), "only one command can be ended at a time, and --url takes no session");
    let client = client(runtimes, session, &arguments.server).await?;
    let known = commands(&client).await?;
    let chosen = match wanted {
        Some(wanted) => named(&known, wanted)?,
        None => running(&known)?,
    };
    Ok((client, chosen.id.clone()))
}

async fn client(runtimes: &Runtimes, id: Option<&str>, server: &ServerArgs) -> anyhow::Result<ActionExecutionClient> {
    if let Some(url) = &server.url {
        return Ok(ActionExecutionClient::new(&key_file::options(
            url,
            server.key.as_deref(),
            server.key_file.as_deref(),
        )?)?);
    }
    runtimes.find(id.context("name a session by its ID, or a server with --url")?).await?.client().await
}

async fn commands(client: &ActionExecutionClient) -> anyhow::Result<Vec<ExecStatus>> {
    client.execs().await.map_err(|error| told(error, client.url()))
}

/// The command of this id, or of the only one that begins so.
fn named<'a>(known: &'a [ExecStatus], wanted: &str) -> anyhow::Result<&'a ExecStatus> {
    if let Some(command) = known.iter().find(|command| command.id == wanted) {
        return Ok(command);
    }
    let mut fitting = known.iter().filter(|command| command.id.starts_with(wanted));
    match (fitting.next(), fitting.next()) {
        (Some(command), None) => Ok(command),
        (None, _) => anyhow::bail!("there is no command `{wanted}`; `gloveport session ps --all` lists them"),
        (Some(_), Some(_)) => anyhow::bail!("`{wanted}` is the beginning of several commands; give more of the id"),
    }
}

/// The command that runs in the shell that stays, or else the only one that runs.
fn running(known: &[ExecStatus]) -> anyhow::Result<&ExecStatus> {
    let mut running = known.iter().filter(|command| matches!(command.state, ExecState::Running { .. }));
    if let Some(command) = running.clone().find(|command| command.session == Session::Main) {
        return Ok(command);
    }
    match (running.next(), running.next()) {
        (Some(command), None) => Ok(command),
        (None, _) => anyhow::bail!("no command runs"),
        (Some(_), Some(_)) => anyhow::bail!("several commands run in shells of their own; name one, see `session ps`"),
    }
}

fn row(command: &ExecStatus) -> Vec<String> {
    let state = match &command.state {
        ExecState::Queued => "waits for its turn".to_owned(),
        ExecState::Running { waiting_for_input: true, .. } => "waits for input".to_owned(),
        ExecState::Running { .. } => "runs".to_owned(),
        ExecState::Ended(end) => match end.exit_code {
            Some(code) => format!("ended with {code}"),
            None => end.reason.replace('_', " "),
        },
    };
    let shell = match command.session {
        Session::Main => "main",
        Session::New => "own",
    };
    vec![command.id.clone(), state, shell.to_owned(), visible::short(&command.command, SHOWN)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(id: &str, session: Session, runs: bool) -> ExecStatus {
        let state = if runs {
            ExecState::Running { start: 0, waiting_for_input: false, hides_input: false }
        } else {
            ExecState::Queued
        };
        ExecStatus { id: id.to_owned(), command: "true".to_owned(), session, state }
    }

    #[test]
    fn the_command_of_the_main_shell_is_meant_and_an_ambiguous_name_means_none() {
        let known =
            [command("aa", Session::New, true), command("ab", Session::Main, true), command("b", Session::Main, false)];
        assert_eq!(running(&known).unwrap().id, "ab");
        assert_eq!(running(&known[..1]).unwrap().id, "aa");
        assert!(running(&known[2..]).is_err());
        assert_eq!(named(&known, "b").unwrap().id, "b");
        assert_eq!(named(&known, "ab").unwrap().id, "ab");
        assert!(named(&known, "a").is_err() && named(&known, "c").is_err());
    }
}

//! `gloveport session exec`.

use std::process::ExitCode;

use anyhow::Context as _;
use gloveport_client::ActionExecutionClient;
use gloveport_protocol::{
    Action, EventSource, ObservationEvent, RunAction,
    exec::{ExecRequest, Session},
};
use gloveport_runtime::{Begun, Operation, RunEnd, observed};

use super::{
    arguments::ExecArgs,
    handling::Handling,
    operations::{self, or_lost},
    runtimes::Runtimes,
    settings, terminal,
};
use crate::{
    approve, describe,
    files::place,
    follow::{Followed, How, Wanted, exit_code, follow, write},
    input::Source,
    output, run,
};

pub(super) async fn exec(runtimes: &Runtimes, mut arguments: ExecArgs) -> anyhow::Result<ExitCode> {
    if arguments.tty {
        return terminal::run(runtimes, arguments).await;
    }
    let (text, from_stdin) = run::command_text(&arguments.command)?;
    anyhow::ensure!(
        !(arguments.interactive && from_stdin),
        "standard input cannot be both the script and its input; give the command as arguments"
    );
    let has_own = arguments.timeout.is_some() || arguments.detach;
    let configured = if has_own { None } else { settings::command_limit(&runtimes.loaded)? };
    arguments.timeout = arguments.timeout.or(configured);
    let mut found = runtimes.find(&arguments.id).await?;
    let client = found.client().await?;
    let mut request = request(&arguments, text.clone());
    if let Some(directory) = request.cwd.take() {
        request.cwd = Some(place::directory(&client, directory).await?);
    }
    let operations = operations::of_session(runtimes, &client, &found, handling(&arguments, from_stdin)).await?;
    let operation = match operations.begin(action(&request), EventSource::User).await? {
        Begun::Allowed(operation) => operation,
        Begun::Refused(refused) => return approve::refused(&refused, arguments.json),
    };
    if arguments.detach {
        let (operation, stream) = or_lost(operation, &text, client.exec(request).await.map_err(Into::into)).await?;
        output::print(&format!("{}\n", stream.id()))?;
        let observation = operation.output().observation(&text, RunEnd::Detached { id: stream.id() });
        operation.finish(observation).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut kept = operation.output();
    let how = How { input: Source::of_session(arguments.interactive), limit: arguments.timeout, quiet: arguments.json };
    let followed = follow(&client, request, how, |bytes| {
        kept.push(bytes);
        if arguments.json { Ok(Wanted::More) } else { write(bytes) }
    });
    let followed: anyhow::Result<Followed> = match followed.await {
        Err(error) if error.downcast_ref().is_some_and(run::is_foreign) => {
            return by_action(&client, &arguments, &text, operation).await;
        }
        followed => followed,
    };
    let (operation, followed) = or_lost(operation, &text, followed).await?;
    if configured.is_some() && matches!(followed, Followed::TimedOut(_)) {
        settings::tell_limit(&runtimes.loaded);
    }
    let event = operation.finish(kept.observation(&text, followed.run_end())).await?;
    if arguments.json {
        output::print_json(&event.to_value())?;
    }
    exit_code(&followed)
}

/// How the flags want the command to be handled.
pub(super) const fn handling(arguments: &ExecArgs, from_stdin: bool) -> Handling {
    Handling {
        approve: arguments.approve,
        input_is_taken: from_stdin || arguments.interactive,
        unrecorded: arguments.no_history,
    }
}

/// The command as the history has it.
fn action(request: &ExecRequest) -> Action {
    let cwd = request.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
    Action::Run(RunAction { cwd, ..RunAction::new(&request.command) })
}

/// Runs the command as an action: its output comes when it has ended.
async fn by_action(
    client: &ActionExecutionClient,
    arguments: &ExecArgs,
    text: &str,
    operation: Box<Operation>,
) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        arguments.cwd.is_none() && arguments.env.is_empty() && !arguments.interactive,
        "the server of this session has only the OpenHands interface; --cwd, --env and -i need a gloveport server"
    );
    let action = run::run_event(text.to_owned(), arguments.timeout.map(|limit| limit.as_secs_f64()));
    let answer = client.post_action(&action, None).await.map_err(anyhow::Error::from);
    let answer = answer.and_then(|value| {
        ObservationEvent::from_value(value)
            .context("the observation cannot be understood")
            .map(|event| event.observation)
    });
    let (operation, observation) = or_lost(operation, text, answer).await?;
    if !arguments.json {
        output::print(&describe::content(&observation))?;
    }
    // The action was hidden so that all of its output comes; in the history it is as long as agents see it.
    let event = operation.finish(observed(text, observation)).await?;
    if arguments.json {
        output::print_json(&event.to_value())?;
    }
    Ok(run::observed_exit_code(&event.observation))
}

fn request(arguments: &ExecArgs, command: String) -> ExecRequest {
    let own = arguments.detach || arguments.cwd.is_some() || !arguments.env.is_empty();
    ExecRequest {
        id: None,
        command,
        session: if own { Session::New } else { Session::Main },
        cwd: arguments.cwd.clone(),
        env: arguments.env.iter().cloned().collect(),
        timeout: None,
    }
}

//! `gloveport run --runtime NAME`: one command in a sandbox of its own, which is deleted afterwards.

use std::{process::ExitCode, time::Duration};

use gloveport_client::ActionExecutionClient;
use gloveport_config::Loaded;
use gloveport_hosting::client;
use gloveport_protocol::{Action, EventSource, RunAction};
use gloveport_provider::Sandbox;
use gloveport_runtime::Begun;

use super::{
    handling::Handling,
    isolation, operations,
    own::Own,
    runtimes::Runtimes,
    settings::{Wanted, command_limit, tell_limit, wanted},
    start::random_id,
    terminal,
};
use crate::{
    approve,
    cli::{self, RunArgs},
    exit::WRONG_COMMAND_LINE,
    files::place,
    follow::{Followed, How, exit_code, follow},
    here,
    input::Source,
    names::CLI,
    output::tell,
    run::{self, Shown},
    signals::{self, Kind, Signal},
};

pub(crate) async fn run_in_fresh(mut arguments: RunArgs) -> anyhow::Result<ExitCode> {
    let runtimes = Runtimes::with(arguments.runtime.take(), arguments.service.take())?;
    if let Some(flag) = &arguments.of_sandbox
        && runtimes.named().is_none_or(|name| name == CLI)
    {
        cli::refuse_without_sandbox(flag)?;
        return Ok(ExitCode::from(WRONG_COMMAND_LINE));
    }
    // Input that goes to a terminal is no script.
    let (text, from_stdin) = if arguments.tty { (String::new(), true) } else { run::command_text(&arguments.command)? };
    let handling = Handling { approve: arguments.approve, input_is_taken: !arguments.tty, unrecorded: true };
    let command = if arguments.tty { arguments.command.join(" ") } else { text.clone() };
    // Before anything is made for it. Nothing is kept of a fresh sandbox, so it has no history either.
    let action = Action::Run(RunAction::new(command));
    if let Begun::Refused(refused) =
        operations::of_fresh(&runtimes.context, handling)?.begin(action, EventSource::User).await?
    {
        return approve::refused(&refused, arguments.json);
    }
    let (runtime, provider) = runtimes.one()?;
    let make = std::mem::take(&mut arguments.make);
    provider.learn().await?;
    let can = provider.capabilities();
    let wanted = wanted(&runtimes, &runtime, &can, random_id()?, make, arguments.env.clone())?;
    let Wanted { spec, options } = wanted.kept_apart(&can);
    let has_own = arguments.timeout.is_some() || arguments.tty;
    let configured = if has_own { None } else { command_limit(&runtimes.loaded)? };
    arguments.timeout = arguments.timeout.or(configured.map(|limit| limit.as_secs_f64()));
    // While it starts, C-c gives it up; afterwards it is for the command.
    let own = Own::make(provider, &spec, signals::stop()?).await?;
    if isolation::is_default(&spec) {
        tell(&isolation::note(&own.sandbox, &spec));
    }
    let limited_by = configured.map(|_| &runtimes.loaded);
    let input = Source::of_run(arguments.interactive, from_stdin);
    let done = use_up(&own.sandbox, &arguments, text, input, limited_by).await;
    if isolation::is_none(&own.sandbox) {
        here::refill_waiting(&runtime, &runtimes.context).await;
    }
    if options.keep_alive {
        own.leave("keep_runtime_alive").await;
    } else {
        own.delete().await;
    }
    done
}

/// Runs the command in it, until it has ended or we are to end.
async fn use_up(
    sandbox: &Sandbox,
    arguments: &RunArgs,
    text: String,
    input: Source,
    limited_by: Option<&Loaded>,
) -> anyhow::Result<ExitCode> {
    let client = client(sandbox)?;
    let mut terminate = Signal::listen(Kind::Terminate)?;
    let mut hang_up = Signal::listen(Kind::HangUp)?;
    tokio::select! {
        code = command(&client, arguments, text, input, limited_by) => code,
        () = terminate.recv() => Ok(ExitCode::from(128 + 15)),
        () = hang_up.recv() => Ok(ExitCode::from(128 + 1)),
    }
}

async fn command(
    client: &ActionExecutionClient,
    arguments: &RunArgs,
    text: String,
    input: Source,
    limited_by: Option<&Loaded>,
) -> anyhow::Result<ExitCode> {
    if arguments.tty {
        return terminal::in_fresh(client, arguments).await;
    }
    let mut request = run::request(text.clone());
    if let Some(directory) = &arguments.cwd {
        request.session = gloveport_protocol::exec::Session::New;
        request.cwd = Some(place::directory(client, directory.clone()).await?);
    }
    let limit = arguments.timeout.map(Duration::from_secs_f64);
    let mut shown = Shown::new(arguments.json);
    let how = How { input, limit, quiet: arguments.json };
    let followed = match follow(client, request.clone(), how, |bytes| shown.take(bytes)).await {
        Err(error) if arguments.json && error.downcast_ref().is_some_and(run::is_foreign) => {
            return run::observe_on(client, request, arguments.timeout).await;
        }
        followed => followed?,
    };
    shown.end(&text, &followed)?;
    if let (Some(loaded), Followed::TimedOut(_)) = (limited_by, &followed) {
        tell_limit(loaded);
    }
    exit_code(&followed)
}

//! `gloveport session exec`.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::Context as _;
use gloveport_client::{ActionExecutionClient, ClientError};
use gloveport_protocol::{
    Action, ActionEvent, EventSource, Observation, ObservationEvent, RunAction, RunObservation, Secret,
    exec::{ExecRequest, Session},
};

use super::{
    arguments::ExecArgs,
    history::History,
    observe::Output,
    runtimes::{Found, Runtimes},
    secrets, settings, terminal,
};
use crate::{
    describe,
    files::place,
    follow::{How, Wanted, exit_code, follow, write},
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
    if arguments.timeout.is_none() && !arguments.detach {
        arguments.timeout = settings::command_limit(&runtimes.loaded)?;
    }
    let mut found = runtimes.find(&arguments.id).await?;
    let client = found.client().await?;
    let mut request = request(&arguments, text.clone());
    if let Some(directory) = request.cwd.take() {
        request.cwd = Some(place::directory(&client, directory).await?);
    }
    if arguments.detach {
        let stream = client.exec(request).await?;
        output::print(&format!("{}\n", stream.id()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let record =
        if arguments.no_history { Record::none() } else { Record::begin(runtimes, &client, &found, &text).await };
    let mut kept = Output::new(record.secrets.clone());
    let how = How { input: Source::of_session(arguments.interactive), limit: arguments.timeout, quiet: arguments.json };
    let followed = follow(&client, request, how, |bytes| {
        kept.push(bytes);
        if arguments.json { Ok(Wanted::More) } else { write(bytes) }
    });
    let followed = match followed.await {
        Err(error) if error.downcast_ref().is_some_and(is_foreign) => {
            return by_action(&client, &arguments, &text, record).await;
        }
        followed => followed?,
    };
    let event = record.finish(kept.observation(&text, &followed)).await;
    if arguments.json {
        output::print_json(&event.to_value())?;
    }
    exit_code(&followed)
}

/// Whether a server does not know native commands, as that of OpenHands.
fn is_foreign(error: &ClientError) -> bool {
    match error {
        ClientError::Status(error) => matches!(error.status.as_u16(), 404 | 405) && error.native.is_none(),
        _ => false,
    }
}

/// Runs the command as an action: its output comes when it has ended.
async fn by_action(
    client: &ActionExecutionClient,
    arguments: &ExecArgs,
    text: &str,
    record: Record,
) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        arguments.cwd.is_none() && arguments.env.is_empty() && !arguments.interactive,
        "the server of this session has only the OpenHands interface; --cwd, --env and -i need a gloveport server"
    );
    let action = run::run_event(text.to_owned(), arguments.timeout.map(|limit| limit.as_secs_f64()));
    let observed = client.post_action(&action, None).await?;
    let observed = ObservationEvent::from_value(observed).context("the observation cannot be understood")?.observation;
    if !arguments.json {
        output::print(&describe::content(&observed))?;
    }
    // The action was hidden so that all of its output comes; in the history it is as long as agents see it.
    let observed = match observed {
        Observation::Run(run) => Observation::Run(RunObservation::new(text, run.content, false, run.metadata)),
        other => other,
    };
    let event = record.finish(observed).await;
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

/// A command in the history of its session. What cannot be written down is told, and the command runs all the same: a
/// full disk is a reason to run one.
struct Record {
    history: Option<History>,
    secrets: BTreeMap<String, Secret>,
    /// The number of the action.
    cause: Option<i64>,
}

impl Record {
    /// Nothing is written down. No secret can get anywhere but to the person who runs the command.
    const fn none() -> Self {
        Self { history: None, secrets: BTreeMap::new(), cause: None }
    }

    async fn begin(runtimes: &Runtimes, client: &ActionExecutionClient, found: &Found, text: &str) -> Self {
        match Self::try_begin(runtimes, client, found, text).await {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!("the command is not in the session's history: {error:#}");
                Self::none()
            }
        }
    }

    async fn try_begin(
        runtimes: &Runtimes,
        client: &ActionExecutionClient,
        found: &Found,
        text: &str,
    ) -> anyhow::Result<Self> {
        let sandbox = &found.sandbox;
        let Some(history) = History::of(&runtimes.context, sandbox.session_id.as_str())? else {
            return Ok(Self::none());
        };
        let secrets = secrets::of(client, sandbox).await?;
        let action = ActionEvent::from(Action::Run(RunAction::new(text)));
        let cause = history.add(action, secrets.clone()).await?;
        history.hosted_by(&found.runtime).await?;
        Ok(Self { history: Some(history), secrets, cause })
    }

    /// Adds what came of it, and gives the event.
    async fn finish(self, observation: Observation) -> ObservationEvent {
        let mut event = ObservationEvent::from(observation);
        (event.cause, event.source) = (self.cause, self.cause.map(|_| EventSource::User));
        if let Some(history) = &self.history
            && let Err(error) = Self::add(history, event.clone(), self.secrets).await
        {
            tracing::warn!("what came of the command is not in the session's history: {error:#}");
        }
        event
    }

    async fn add(history: &History, event: ObservationEvent, secrets: BTreeMap<String, Secret>) -> anyhow::Result<()> {
        // One that was removed meanwhile stays removed.
        if history.exists().await? {
            history.add(event, secrets).await?;
        }
        Ok(())
    }
}

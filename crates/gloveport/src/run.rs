//! `gloveport run`: one command on a server, with its output as it comes, and what every way to run one shares.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use gloveport_client::{ActionExecutionClient, ClientError};
use gloveport_protocol::exec::{ExecEnd, ExecRequest, Session};
use gloveport_protocol::{Action, ActionEvent, Observation, ObservationEvent, RunAction};
use gloveport_runtime::RunOutput;
use serde_json::Value;

use crate::{
    attach::{self, AttachRequest},
    cli::RunArgs,
    exit::{INTERRUPTED, OWN_FAILURE, TIMED_OUT},
    files::place,
    follow::{self, Followed, How, Wanted},
    input::Source,
    key_file,
    output::{print_bytes, print_json},
};

/// The output of a command as the person wants it: as it comes, or in its observation.
#[derive(Debug)]
pub(crate) struct Shown(Option<RunOutput>);

impl Shown {
    pub(crate) fn new(json: bool) -> Self {
        Self(json.then(RunOutput::in_full))
    }

    /// Takes what it wrote.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> anyhow::Result<Wanted> {
        match &mut self.0 {
            Some(output) => {
                output.push(bytes);
                Ok(Wanted::More)
            }
            None => follow::write(bytes),
        }
    }

    /// Prints what was kept for the end.
    pub(crate) fn end(self, command: &str, followed: &Followed) -> anyhow::Result<()> {
        let Some(output) = self.0 else { return Ok(()) };
        let observation = output.observation(command, followed.run_end());
        print_json(&ObservationEvent::from(observation).to_value())
    }
}

/// Runs the command on a server.
pub(crate) async fn on_server(arguments: RunArgs) -> anyhow::Result<ExitCode> {
    if arguments.tty {
        return on_terminal(arguments).await;
    }
    let (text, from_stdin) = command_text(&arguments.command)?;
    let url = arguments.url.as_deref().unwrap_or_default();
    let client =
        ActionExecutionClient::new(&key_file::options(url, arguments.key.as_deref(), arguments.key_file.as_deref())?)?;
    let mut request = request(text.clone());
    if arguments.cwd.is_some() || !arguments.env.is_empty() {
        request.session = Session::New;
        if let Some(directory) = arguments.cwd {
            request.cwd = Some(place::directory(&client, directory).await?);
        }
        request.env = arguments.env.into_iter().collect();
    }
    let limit = arguments.timeout.map(Duration::from_secs_f64);
    let how = How { input: Source::of_run(arguments.interactive, from_stdin), limit, quiet: arguments.json };
    let mut shown = Shown::new(arguments.json);
    match follow::follow(&client, request.clone(), how, |bytes| shown.take(bytes)).await {
        Ok(followed) => {
            shown.end(&text, &followed)?;
            follow::exit_code(&followed)
        }
        Err(error) => match error.downcast::<ClientError>() {
            Ok(error) if arguments.json && is_foreign(&error) => observe_on(&client, request, arguments.timeout).await,
            Ok(error) => Err(told(error, client.url())),
            Err(error) => Err(error),
        },
    }
}

/// Whether a server does not know native commands, as that of OpenHands.
pub(crate) fn is_foreign(error: &ClientError) -> bool {
    match error {
        ClientError::Status(error) => error.is_unknown_call(),
        _ => false,
    }
}

/// Executes the command as an action on a server that knows nothing better, and prints the observation.
pub(crate) async fn observe_on(
    client: &ActionExecutionClient,
    request: ExecRequest,
    timeout: Option<f64>,
) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        request.cwd.is_none() && request.env.is_empty(),
        "{} has only the OpenHands interface; --cwd and --env need a gloveport server",
        client.url()
    );
    let observation = client.post_action(&run_event(request.command, timeout), None).await;
    print_observation(&observation.map_err(|error| told(error, client.url()))?)
}

/// Runs the command on a terminal of a server, or attaches to the one where it runs.
async fn on_terminal(arguments: RunArgs) -> anyhow::Result<ExitCode> {
    let url = arguments.url.unwrap_or_default();
    let client =
        ActionExecutionClient::new(&key_file::options(&url, arguments.key.as_deref(), arguments.key_file.as_deref())?)?;
    // As everywhere in `run`, the words are a text for the shell.
    let text = arguments.command.join(" ");
    let request = AttachRequest {
        id: arguments.terminal,
        argv: (!text.is_empty()).then(|| ["bash", "-c", text.as_str()].map(str::to_owned).to_vec()),
        cwd: arguments.cwd,
        env: arguments.env.into_iter().collect(),
        detach_keys: arguments.detach_keys,
        tty: true,
        again: Box::new(move |id| format!("gloveport run --url {url} -it --terminal {id}")),
    };
    match attach::attach(&client, request).await {
        Ok(attached) => Ok(attached.exit_code()),
        Err(error) => Err(match error.downcast::<ClientError>() {
            Ok(error) => told(error, client.url()),
            Err(error) => error,
        }),
    }
}

/// What went wrong with a server, and what to do about it.
pub(crate) fn told(error: ClientError, url: &str) -> anyhow::Error {
    match error {
        ClientError::Unreachable { source, .. } => {
            anyhow::Error::from(source).context(format!("no server answers at {url}; is it running?"))
        }
        ClientError::Status(error) => {
            let hint = match error.status.as_u16() {
                403 => " (give the server's key with --key or GLOVEPORT_KEY)",
                _ => "",
            };
            let reason = error.reason();
            let said = reason.as_deref().unwrap_or("without a reason");
            anyhow::anyhow!("{url} answered {}: {said}{hint}", error.status)
        }
        other => other.into(),
    }
}

/// The text to run, and whether standard input was used up for it.
pub(crate) fn command_text(command: &[String]) -> anyhow::Result<(String, bool)> {
    let words = command.join(" ");
    anyhow::ensure!(command.is_empty() || !words.trim().is_empty(), "the command is empty");
    if !words.is_empty() && words != "-" {
        return Ok((words, false));
    }
    if words.is_empty() && std::io::stdin().is_terminal() {
        anyhow::bail!("no command; give one as an argument, or a script on standard input (see --help)");
    }
    let mut script = String::new();
    std::io::stdin().read_to_string(&mut script).context("cannot read the script from standard input")?;
    anyhow::ensure!(!script.trim().is_empty(), "the script on standard input is empty");
    Ok((script, true))
}

/// A command in the shell that stays. Whoever follows it ends it at its time limit.
pub(crate) fn request(command: String) -> ExecRequest {
    ExecRequest { id: None, command, session: Session::Main, cwd: None, env: BTreeMap::new(), timeout: None }
}

pub(crate) fn run_event(command: String, timeout: Option<f64>) -> ActionEvent {
    let action = RunAction { blocking: true, hidden: true, ..RunAction::new(command) };
    ActionEvent { timeout, ..ActionEvent::from(Action::Run(action)) }
}

/// Prints the JSON and answers with the command's exit code.
pub(crate) fn print_observation(observation: &Value) -> anyhow::Result<ExitCode> {
    let text = serde_json::to_string_pretty(observation)?;
    print_bytes(text.as_bytes())?;
    print_bytes(b"\n")?;
    let event = ObservationEvent::from_value(observation.clone()).context("the observation cannot be understood")?;
    Ok(observed_exit_code(&event.observation))
}

/// Our exit code for an observation.
pub(crate) fn observed_exit_code(observation: &Observation) -> ExitCode {
    match observation {
        Observation::Run(run) if run.metadata.exit_code >= 0 => status(run.metadata.exit_code),
        Observation::Run(run) if run.metadata.suffix.contains("timed out") => ExitCode::from(TIMED_OUT),
        // A signal, as the cli runtime tells it.
        Observation::Run(run) if run.metadata.exit_code < -1 => status(128 - run.metadata.exit_code),
        _ => ExitCode::from(OWN_FAILURE),
    }
}

/// Tells that the time limit passed.
pub(crate) fn late() -> ExitCode {
    tracing::warn!("the command did not end within the time limit");
    ExitCode::from(TIMED_OUT)
}

pub(crate) fn exit_code(end: &ExecEnd) -> anyhow::Result<ExitCode> {
    match (end.exit_code, end.reason.as_ref()) {
        (Some(code), _) => Ok(status(code.into())),
        (None, "timed_out") => Ok(late()),
        (None, "cancelled") => {
            tracing::warn!("{}", end.message.as_deref().unwrap_or("the command was cancelled"));
            Ok(ExitCode::from(INTERRUPTED))
        }
        (None, reason) => {
            anyhow::bail!("the command did not run: {}", end.message.as_deref().unwrap_or(reason));
        }
    }
}

/// The exit code of this process for the command's: the system keeps eight bits.
pub(crate) fn status(code: i64) -> ExitCode {
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(OWN_FAILURE))
}

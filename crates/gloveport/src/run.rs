//! `gloveport run`: one command, here or on a server, with its output as it comes.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use gloveport_client::{ActionExecutionClient, ClientError};
use gloveport_executor::{Execution, Executor};
use gloveport_protocol::exec::{ExecEnd, ExecInput, ExecRequest, ExecState, Session};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, Observation, ObservationEvent, RunAction};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    OWN_FAILURE, Owner,
    attach::{self, AttachRequest},
    cli::RunArgs,
    key_file, local,
};

/// Exit code when the time limit passed.
pub(crate) const TIMED_OUT: u8 = 124;
/// Most bytes printed at once.
const PIECE: usize = 64 * 1024;

/// Runs the command in this process.
pub(crate) async fn here(arguments: &RunArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let (text, from_stdin) = command_text(&arguments.command)?;
    let directory = match &arguments.cwd {
        Some(directory) => local::existing_directory(directory)?,
        None => std::env::current_dir().context("the current directory cannot be used; choose one with --cwd")?,
    };
    let mut options = local::executor_options(owner, directory)?;
    options.environment.retain(|(key, _)| !arguments.env.iter().any(|(name, _)| key == name.as_str()));
    options.environment.extend(arguments.env.iter().map(|(name, value)| (name.into(), value.into())));
    let executor = Executor::start(options).await?;
    let result = if arguments.json {
        observe_here(&executor, text, arguments.timeout).await
    } else {
        let request = request(text, arguments.timeout);
        stream_here(&executor, request, !from_stdin).await
    };
    executor.close().await;
    result
}

/// Runs the command on a server.
pub(crate) async fn on_server(arguments: RunArgs) -> anyhow::Result<ExitCode> {
    if arguments.tty {
        return on_terminal(arguments).await;
    }
    let (text, _) = command_text(&arguments.command)?;
    let url = arguments.url.as_deref().unwrap_or_default();
    let client = ActionExecutionClient::new(&key_file::options(url, arguments.key.as_deref()))?;
    if arguments.json {
        anyhow::ensure!(
            arguments.env.is_empty() && arguments.cwd.is_none(),
            "--cwd and --env cannot be combined with --json and --url: the observation is that of the server's own shell"
        );
        return observe_on(&client, text, arguments.timeout).await;
    }
    let mut request = request(text, arguments.timeout);
    if arguments.cwd.is_some() || !arguments.env.is_empty() {
        request.session = Session::New;
        request.cwd = arguments.cwd;
        request.env = arguments.env.into_iter().collect();
    }
    let command = client.exec(request).await.map_err(|error| told(error, client.url()))?;
    let end = command.finish(|bytes| print_bytes(bytes).map_err(Failure::Print)).await;
    exit_code(&end.map_err(|failure| match failure {
        Failure::Client(error) => told(error, client.url()),
        Failure::Print(error) => error,
    })?)
}

/// Executes the command as an action on a server, and prints the observation.
pub(crate) async fn observe_on(
    client: &ActionExecutionClient,
    text: String,
    timeout: Option<f64>,
) -> anyhow::Result<ExitCode> {
    let observation = client.post_action(&run_event(text, timeout), None).await;
    print_observation(&observation.map_err(|error| told(error, client.url()))?)
}

/// Runs the command on a terminal of a server, or attaches to the one where it runs.
async fn on_terminal(arguments: RunArgs) -> anyhow::Result<ExitCode> {
    let url = arguments.url.unwrap_or_default();
    let client = ActionExecutionClient::new(&key_file::options(&url, arguments.key.as_deref()))?;
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

/// Why the output of a command on a server could not be followed.
enum Failure {
    Client(ClientError),
    Print(anyhow::Error),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
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

pub(crate) fn request(command: String, timeout: Option<f64>) -> ExecRequest {
    ExecRequest { id: None, command, session: Session::Main, cwd: None, env: BTreeMap::new(), timeout }
}

pub(crate) fn run_event(command: String, timeout: Option<f64>) -> ActionEvent {
    let action = RunAction { blocking: true, hidden: true, ..RunAction::new(command) };
    ActionEvent { timeout, ..ActionEvent::from(Action::Run(action)) }
}

async fn observe_here(executor: &Executor, text: String, timeout: Option<f64>) -> anyhow::Result<ExitCode> {
    let observation = executor.execute(&run_event(text, timeout)).await?;
    print_observation(&ObservationEvent::from(observation).to_value())
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

async fn stream_here(executor: &Executor, request: ExecRequest, stdin_is_free: bool) -> anyhow::Result<ExitCode> {
    let (execution, _) = executor.exec(request).await?;
    let mut state = execution.watch();
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut interrupted = false;
    let mut input = stdin_is_free.then(|| tokio::spawn(forward_input(Arc::clone(&execution))));
    let mut printed = None;
    loop {
        let now = state.borrow_and_update().clone();
        let (start, end) = match &now {
            ExecState::Queued => (None, None),
            ExecState::Running { start, .. } => (Some(*start), None),
            ExecState::Ended(end) => (Some(end.start), Some(end)),
        };
        let mut offset = printed.or(start).unwrap_or(0);
        if start.is_some() {
            offset = print_from(&execution, offset)?;
            printed = Some(offset);
        }
        if let Some(end) = end {
            if let Some(input) = input.take() {
                input.abort();
            }
            return exit_code(end);
        }
        tokio::select! {
            changed = state.changed() => changed.context("the command's state is lost")?,
            () = execution.grown_beyond(offset), if start.is_some() => {}
            _ = interrupts.recv() => {
                // The second one means it: the session is closed, which ends everything in it.
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(ExitCode::from(130));
                }
                let _not_running_any_more = execution.interrupt().await;
            }
        }
    }
}

/// Prints what there is from `offset` on, and answers with the offset behind it.
fn print_from(execution: &Execution, mut offset: u64) -> anyhow::Result<u64> {
    loop {
        let piece = match execution.read(offset, PIECE) {
            Ok(piece) => piece,
            Err(gloveport_terminal::LogError::Gone { oldest, .. }) => {
                tracing::warn!(lost = oldest - offset, "output came faster than it could be printed; a part is lost");
                offset = oldest;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if piece.bytes.is_empty() {
            return Ok(offset);
        }
        print_bytes(&piece.bytes)?;
        offset += piece.bytes.len() as u64;
    }
}

/// Gives the command lines of our standard input, each when it waits for one.
async fn forward_input(execution: Arc<Execution>) {
    let mut state = execution.watch();
    loop {
        let waits = |state: &ExecState| {
            !matches!(state, ExecState::Running { waiting_for_input: false, .. } | ExecState::Queued)
        };
        let Ok(now) = state.wait_for(waits).await.map(|state| state.clone()) else { return };
        if matches!(now, ExecState::Ended(_)) {
            return;
        }
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line)
        });
        let text = match line.await {
            Ok(Some(line)) => line,
            _ => "C-d".to_owned(),
        };
        let at_end = text == "C-d";
        if execution.type_in(ExecInput { text }).await.is_err() || at_end {
            return;
        }
        // What was typed has to arrive before the state tells something new.
        if state.changed().await.is_err() {
            return;
        }
    }
}

pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).context("cannot write to standard output")
}

pub(crate) fn exit_code(end: &ExecEnd) -> anyhow::Result<ExitCode> {
    match (end.exit_code, end.reason.as_ref()) {
        (Some(code), _) => Ok(status(code.into())),
        (None, "timed_out") => {
            tracing::warn!("the command did not end within the time limit");
            Ok(ExitCode::from(TIMED_OUT))
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

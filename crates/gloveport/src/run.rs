//! `gloveport run`: one command, here or on a server, with its output as it comes.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use gloveport_client::{ActionExecutionClient, ClientError};
use gloveport_executor::{Execution, Executor};
use gloveport_protocol::exec::{ExecEnd, ExecInput, ExecRequest, ExecState, Session};
use gloveport_protocol::{Action, ActionEvent, ActionExecutor as _, Observation, ObservationEvent, RunAction};
use serde_json::Value;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};

use crate::{
    OWN_FAILURE, Owner,
    attach::{self, AttachRequest},
    cli::RunArgs,
    files::place,
    follow::{self, GRACE, How, UNFINISHED, UNREAD, Wanted},
    input::{Input, Next, Source},
    key_file, local, login,
    output::{print_bytes, tell},
};

/// Exit code when the time limit passed.
pub(crate) const TIMED_OUT: u8 = 124;
/// Exit code of a command that was given up before its turn, or killed.
const CANCELLED: u8 = 130;
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
    options
        .environment
        .retain(|(key, _)| login::is_kept(key) && !arguments.env.iter().any(|(name, _)| key == name.as_str()));
    options.environment.extend(arguments.env.iter().map(|(name, value)| (name.into(), value.into())));
    options.terminal_type = suitable_terminal(arguments.json);
    local::without_pagers(&mut options);
    let executor = Executor::start(options).await?;
    let result = if arguments.json {
        observe_here(&executor, text, arguments.timeout).await
    } else {
        let input = Input::new(Source::of_run(arguments.interactive, from_stdin), &text, false);
        let limit = arguments.timeout.map(Duration::from_secs_f64);
        stream_here(&executor, request(text), input, limit).await
    };
    executor.close().await;
    result
}

/// What programs are told of the terminal: that of the person who sees their output, or, where a pipe or a file takes it,
/// one that has no colours and no cursor. `None` for an observation, which shows what a whole terminal would.
fn suitable_terminal(observed: bool) -> Option<String> {
    if observed {
        return None;
    }
    if !std::io::stdout().is_terminal() {
        return Some("dumb".to_owned());
    }
    std::env::var("TERM").ok().filter(|name| !name.is_empty())
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
    if arguments.json {
        anyhow::ensure!(
            arguments.env.is_empty() && arguments.cwd.is_none(),
            "--cwd and --env cannot be combined with --json and --url: the observation is that of the server's own shell"
        );
        return observe_on(&client, text, arguments.timeout).await;
    }
    let mut request = request(text);
    if arguments.cwd.is_some() || !arguments.env.is_empty() {
        request.session = Session::New;
        if let Some(directory) = arguments.cwd {
            request.cwd = Some(place::directory(&client, directory).await?);
        }
        request.env = arguments.env.into_iter().collect();
    }
    let how = How {
        input: Source::of_run(arguments.interactive, from_stdin),
        limit: arguments.timeout.map(Duration::from_secs_f64),
        quiet: false,
    };
    match follow::follow(&client, request, how, follow::write).await {
        Ok(followed) => follow::exit_code(&followed),
        Err(error) => Err(match error.downcast::<ClientError>() {
            Ok(error) => told(error, client.url()),
            Err(error) => error,
        }),
    }
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

/// Prints the output as it comes. The executor is closed afterwards, and ends whatever is left.
async fn stream_here(
    executor: &Executor,
    request: ExecRequest,
    mut input: Input,
    limit: Option<Duration>,
) -> anyhow::Result<ExitCode> {
    let (execution, _) = executor.exec(request).await?;
    let mut state = execution.watch();
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let (mut interrupted, mut unfinished, mut timed_out) = (false, false, false);
    let mut deadline = limit.map(|limit| Instant::now() + limit);
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
            let Some(next) = print_from(&execution, offset)? else { return Ok(ExitCode::from(UNREAD)) };
            offset = next;
            printed = Some(offset);
        }
        match end {
            Some(_) if unfinished => anyhow::bail!(UNFINISHED),
            Some(_) if timed_out => return Ok(late()),
            Some(end) => return exit_code(end),
            None => {}
        }
        tokio::select! {
            changed = state.changed() => {
                changed.context("the command's state is lost")?;
                let (waits, hidden) = follow::waiting(&state.borrow());
                input.waits(waits, hidden);
            }
            () = execution.grown_beyond(offset), if start.is_some() => {}
            _ = interrupts.recv() => {
                // The second one means it: the session is closed, which ends everything in it.
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(ExitCode::from(130));
                }
                let _not_running_any_more = execution.interrupt().await;
            }
            () = at(deadline) => {
                if unfinished {
                    anyhow::bail!(UNFINISHED);
                }
                if std::mem::replace(&mut timed_out, true) {
                    return Ok(late());
                }
                let _not_running_any_more = execution.interrupt().await;
                deadline = Some(Instant::now() + GRACE);
            }
            next = input.next() => match next {
                Next::Line(line) => {
                    if execution.type_in(ExecInput { text: line.text().to_owned() }).await.is_err() {
                        input.end();
                    }
                }
                Next::GiveUp => {
                    unfinished = true;
                    let _not_running_any_more = execution.interrupt().await;
                    deadline = Some(Instant::now() + GRACE);
                }
                Next::Question => {
                    let (waits, hidden) = follow::waiting(&state.borrow());
                    input.waits(waits, hidden);
                }
                Next::Tell(text) => tell(&format!("gloveport: {text}")),
            }
        }
    }
}

fn late() -> ExitCode {
    tracing::warn!("the command did not end within the time limit");
    ExitCode::from(TIMED_OUT)
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Prints what there is from `offset` on, and answers with the offset behind it; with none if nobody reads any more.
fn print_from(execution: &Execution, mut offset: u64) -> anyhow::Result<Option<u64>> {
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
            return Ok(Some(offset));
        }
        if follow::write(&piece.bytes)? == Wanted::NoMore {
            return Ok(None);
        }
        offset += piece.bytes.len() as u64;
    }
}

pub(crate) fn exit_code(end: &ExecEnd) -> anyhow::Result<ExitCode> {
    match (end.exit_code, end.reason.as_ref()) {
        (Some(code), _) => Ok(status(code.into())),
        (None, "timed_out") => Ok(late()),
        (None, "cancelled") => {
            tracing::warn!("{}", end.message.as_deref().unwrap_or("the command was cancelled"));
            Ok(ExitCode::from(CANCELLED))
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

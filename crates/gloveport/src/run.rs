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
use gloveport_protocol::{Action, ActionEvent, Observation, ObservationEvent, RunAction};
use gloveport_runtime::RunOutput;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    Owner,
    attach::{self, AttachRequest},
    cli::RunArgs,
    exit::{INTERRUPTED, OWN_FAILURE, TIMED_OUT},
    files::place,
    follow::{self, Followed, GRACE, How, Wanted},
    input::{Input, Next, Source},
    key_file, login,
    output::{print_bytes, print_json, tell},
    signals, tools,
};

/// Most bytes printed at once.
const PIECE: usize = 64 * 1024;

/// Runs the command in this process.
pub(crate) async fn here(arguments: &RunArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let (text, from_stdin) = command_text(&arguments.command)?;
    let directory = match &arguments.cwd {
        Some(directory) => tools::existing_directory(directory)?,
        None => std::env::current_dir().context("the current directory cannot be used; choose one with --cwd")?,
    };
    let mut options = tools::executor_options(owner, directory)?;
    options
        .environment
        .retain(|(key, _)| login::is_kept(key) && !arguments.env.iter().any(|(name, _)| key == name.as_str()));
    options.environment.extend(arguments.env.iter().map(|(name, value)| (name.into(), value.into())));
    options.terminal_type = suitable_terminal(arguments.json);
    tools::without_pagers(&mut options);
    let executor = Executor::start(options).await?;
    let input = Input::new(Source::of_run(arguments.interactive, from_stdin), &text, arguments.json);
    let limit = arguments.timeout.map(Duration::from_secs_f64);
    let mut shown = Shown::new(arguments.json);
    let followed = follow_here(&executor, request(text.clone()), input, limit, |bytes| shown.take(bytes)).await;
    let result = followed.and_then(|followed| {
        shown.end(&text, &followed)?;
        match followed {
            // With the executor everything in it ends.
            Followed::TimedOut(_) => Ok(late()),
            followed => follow::exit_code(&followed),
        }
    });
    executor.close().await;
    result
}

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

/// Follows the command to its end. The executor is closed afterwards, and ends whatever is left.
async fn follow_here(
    executor: &Executor,
    request: ExecRequest,
    mut input: Input,
    limit: Option<Duration>,
    mut output: impl FnMut(&[u8]) -> anyhow::Result<Wanted>,
) -> anyhow::Result<Followed> {
    let (execution, _) = executor.exec(request).await?;
    let mut state = execution.watch();
    let mut interrupts = signals::interrupts()?;
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
            let Some(next) = hand_out(&execution, offset, &mut output)? else { return Ok(Followed::Unread) };
            offset = next;
            printed = Some(offset);
        }
        match end {
            Some(_) if unfinished => return Ok(Followed::Unfinished),
            Some(end) if timed_out => return Ok(Followed::TimedOut(Some(end.clone()))),
            Some(end) => return Ok(Followed::Ended(end.clone())),
            None => {}
        }
        tokio::select! {
            changed = state.changed() => {
                changed.context("the command's state is lost")?;
                let (waits, hidden) = follow::waiting(&state.borrow());
                input.waits(waits, hidden);
            }
            () = execution.grown_beyond(offset), if start.is_some() => {}
            () = interrupts.recv() => {
                // The second one means it: the session is closed, which ends everything in it.
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(Followed::Left);
                }
                let _not_running_any_more = execution.interrupt().await;
            }
            () = at(deadline) => {
                if unfinished {
                    return Ok(Followed::Unfinished);
                }
                if std::mem::replace(&mut timed_out, true) {
                    return Ok(Followed::TimedOut(None));
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

/// Hands out what there is from `offset` on, and answers with the offset behind it; with none if nobody wants more.
fn hand_out(
    execution: &Execution,
    mut offset: u64,
    output: &mut impl FnMut(&[u8]) -> anyhow::Result<Wanted>,
) -> anyhow::Result<Option<u64>> {
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
        if output(&piece.bytes)? == Wanted::NoMore {
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

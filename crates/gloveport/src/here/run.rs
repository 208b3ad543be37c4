//! `gloveport run` in this process.

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use anyhow::Context as _;
use gloveport_executor::{Execution, Executor};
use gloveport_protocol::exec::{ExecInput, ExecRequest, ExecState};
use gloveport_sandbox::{Owner, tools};
use tokio::time::Instant;

use super::login;
use crate::{
    cli::RunArgs,
    directory,
    follow::{self, Followed, GRACE, Wanted},
    input::{Input, Next, Source},
    output::tell,
    run::{Shown, command_text, late, request},
    signals,
};

/// Most bytes printed at once.
const PIECE: usize = 64 * 1024;

/// Runs the command in this process.
pub(crate) async fn run(arguments: &RunArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let (text, from_stdin) = command_text(&arguments.command)?;
    let directory = match &arguments.cwd {
        Some(directory) => directory::existing(directory)?,
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

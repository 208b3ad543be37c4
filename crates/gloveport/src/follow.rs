//! Follows a command on a server: its output as it comes, our input when it waits for some, C-c and a time limit.

use std::{
    future::pending,
    io::ErrorKind,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use gloveport_client::{ActionExecutionClient, ClientError, ExecEvent, ExecStream};
use gloveport_protocol::exec::{ExecEnd, ExecRequest, ExecState, ExecStatus, Session};
use gloveport_runtime::RunEnd;
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    exit::{INTERRUPTED, TIMED_OUT, UNREAD},
    input::{Input, Line, Next, Source, since_when},
    output::tell,
    run, signals, terminal, visible,
};

/// Events that are read ahead.
const AHEAD: usize = 16;
/// How long a command that was interrupted at its time limit has to end, and then one that was told to quit.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// The key that ends a program which takes no notice of C-c.
pub(crate) const QUIT: &str = "C-\\";
/// How long one that was told to quit has to end before the server ends its shell, if that is its own.
const LAST: Duration = Duration::from_secs(2);
/// A command that has not begun after this time is told of.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most of a command's text that is shown.
const SHOWN: usize = 60;

/// How a command is followed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// What it gets when it reads.
    pub(crate) input: Source,
    /// After this it is interrupted, and some time later ended.
    pub(crate) limit: Option<Duration>,
    /// A person is not told what is being waited for.
    pub(crate) quiet: bool,
}

/// How following a command ended.
#[derive(Debug)]
pub(crate) enum Followed {
    /// It has ended.
    Ended(ExecEnd),
    /// Its time was over. `None` if it did not even end when it was interrupted.
    TimedOut(Option<ExecEnd>),
    /// It was interrupted twice, and is left to itself.
    Left,
    /// Nobody reads its output any more; it was interrupted.
    Unread,
    /// The shell waited for the rest of the command. It was interrupted.
    Unfinished,
}

impl Followed {
    /// The same for the history.
    pub(crate) const fn run_end(&self) -> RunEnd<'_> {
        match self {
            Self::Ended(end) => RunEnd::Ended(end),
            Self::TimedOut(end) => RunEnd::TimedOut(end.as_ref()),
            Self::Left => RunEnd::Left,
            Self::Unread => RunEnd::Unread,
            Self::Unfinished => RunEnd::Unfinished,
        }
    }
}

/// What is done to a command whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing yet.
    Runs,
    Interrupted,
    ToldToQuit,
}

/// Whether more output is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    More,
    NoMore,
}

/// Starts a command and follows it. `output` gets what it writes.
pub(crate) async fn follow(
    client: &ActionExecutionClient,
    mut request: ExecRequest,
    how: How,
    mut output: impl FnMut(&[u8]) -> anyhow::Result<Wanted>,
) -> anyhow::Result<Followed> {
    let mut interrupts = signals::interrupts()?;
    let mut input = Input::new(how.input, &request.command, how.quiet);
    let began = SystemTime::now();
    if let (Some(limit), Session::New) = (how.limit, request.session) {
        // Its shell is nobody else's, so the server ends it with whatever takes no notice of both keys.
        request.timeout = Some((limit + GRACE + LAST).as_secs_f64());
    }
    let stream = client.exec(request).await?;
    let mut command = Command::new(client, stream);
    let mut deadline = how.limit.map(|limit| Instant::now() + limit);
    let mut turn = (!how.quiet).then(|| Instant::now() + PATIENCE);
    let (mut interrupted, mut unfinished, mut step) = (false, false, Step::Runs);
    loop {
        tokio::select! {
            event = command.events.recv() => {
                turn = None;
                match event.context("the server did not report the end of the command")?? {
                    ExecEvent::Output { bytes, .. } => if output(&bytes)? == Wanted::NoMore {
                        command.interrupt().await;
                        return Ok(Followed::Unread);
                    },
                    ExecEvent::Gap { from, to } => {
                        tracing::warn!(lost = to - from, "output came faster than it could be read; a part is lost");
                    }
                    ExecEvent::Waiting(waits) => input.waits(waits, false),
                    ExecEvent::WaitingForSecret => input.waits(true, true),
                    ExecEvent::Ended(_) if unfinished => return Ok(Followed::Unfinished),
                    ExecEvent::Ended(end) if step != Step::Runs => return Ok(Followed::TimedOut(Some(end))),
                    ExecEvent::Ended(end) => return Ok(Followed::Ended(end)),
                }
            }
            () = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(Followed::Left);
                }
                command.interrupt().await;
            }
            () = at(deadline) => {
                if unfinished {
                    return Ok(Followed::Unfinished);
                }
                step = match step {
                    Step::Runs => {
                        command.interrupt().await;
                        Step::Interrupted
                    }
                    Step::Interrupted => {
                        command.quit().await;
                        Step::ToldToQuit
                    }
                    Step::ToldToQuit => return Ok(Followed::TimedOut(None)),
                };
                deadline = Some(Instant::now() + GRACE);
            }
            () = at(turn) => {
                turn = None;
                if let Some(text) = command.waits_for_its_turn(began).await {
                    tell(&text);
                }
            }
            next = input.next() => match next {
                Next::Line(line) => command.type_in(&mut input, line).await?,
                Next::GiveUp => {
                    unfinished = true;
                    command.interrupt().await;
                    deadline = Some(Instant::now() + GRACE);
                }
                Next::Question => {
                    let (waits, hidden) = command.is_waiting().await;
                    input.waits(waits, hidden);
                }
                Next::Tell(text) => tell(&format!("gloveport: {text}")),
            },
        }
    }
}

/// Writes what a command wrote.
pub(crate) fn write(bytes: &[u8]) -> anyhow::Result<Wanted> {
    match terminal::show(bytes) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Wanted::NoMore),
        written => written.map(|()| Wanted::More).context("cannot write to standard output"),
    }
}

/// Our exit code for what came of a command.
pub(crate) fn exit_code(followed: &Followed) -> anyhow::Result<ExitCode> {
    match followed {
        Followed::Ended(end) => run::exit_code(end),
        Followed::TimedOut(end) => {
            let then = if end.is_some() { "was interrupted" } else { "was interrupted, and still runs or waits" };
            tracing::warn!("the command did not end within the time limit, and {then}");
            Ok(ExitCode::from(TIMED_OUT))
        }
        Followed::Left => Ok(ExitCode::from(INTERRUPTED)),
        Followed::Unread => Ok(ExitCode::from(UNREAD)),
        Followed::Unfinished => anyhow::bail!(UNFINISHED),
    }
}

/// What is told of a command that the shell could not read to its end.
pub(crate) const UNFINISHED: &str = "the command is not complete (an open quote?), and was given up";

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// A running command.
struct Command<'a> {
    client: &'a ActionExecutionClient,
    id: String,
    events: mpsc::Receiver<Result<ExecEvent, ClientError>>,
    reader: AbortHandle,
}

impl<'a> Command<'a> {
    /// The events are read by a task of their own, since half of a read cannot be given up.
    fn new(client: &'a ActionExecutionClient, mut stream: ExecStream) -> Self {
        let id = stream.id().to_owned();
        let (sender, events) = mpsc::channel(AHEAD);
        let reader = tokio::spawn(async move {
            while let Some(event) = stream.next().await.transpose() {
                let failed = event.is_err();
                if sender.send(event).await.is_err() || failed {
                    return;
                }
            }
        });
        Self { client, id, events, reader: reader.abort_handle() }
    }

    /// One that waits for its turn is given up: it must not run when nobody wants it any more. A command that has ended
    /// meanwhile needs no interrupt; an unreachable server is told by the events.
    async fn interrupt(&self) {
        let interrupted = async {
            match self.client.exec_interrupt(&self.id).await {
                Err(ClientError::Status(_)) => self.client.exec_cancel(&self.id).await,
                other => other,
            }
        };
        if let Ok(Err(error)) = timeout(GRACE, interrupted).await {
            tracing::debug!(%error, "the command was not interrupted");
        }
    }

    /// Ends the program in the foreground as C-\ does.
    async fn quit(&self) {
        let told = timeout(GRACE, self.client.exec_input(&self.id, QUIT)).await;
        if let Ok(Err(error)) = told {
            tracing::debug!(%error, "the command was not told to quit");
        }
    }

    async fn type_in(&self, input: &mut Input, line: Line) -> anyhow::Result<()> {
        match self.client.exec_input(&self.id, line.text()).await {
            Ok(()) => {}
            // It has ended meanwhile.
            Err(ClientError::Status(_)) => input.end(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// What is told of a command that has not begun, which is no failure of it.
    async fn waits_for_its_turn(&self, began: SystemTime) -> Option<String> {
        let known = timeout(GRACE, self.client.execs()).await.ok()?.ok()?;
        let own = known.iter().find(|command| command.id == self.id)?;
        if !matches!(own.state, ExecState::Queued) {
            return None;
        }
        let runs = |command: &&ExecStatus| {
            command.session == own.session && matches!(command.state, ExecState::Running { .. })
        };
        let before = known.iter().find(runs).map_or_else(
            || "something else".to_owned(),
            |command| format!("command {} (`{}`)", command.id, visible::short(&command.command, SHOWN)),
        );
        Some(format!(
            "gloveport: the command has been waiting for its turn {}: {before} runs in the shell; `gloveport session ps` \
             and `gloveport session interrupt` show and end it",
            since_when(began)
        ))
    }

    /// Whether it waits for input, and if so, for one that its terminal does not show.
    async fn is_waiting(&self) -> (bool, bool) {
        let status = self.client.exec_status(&self.id).await;
        status.map_or((false, false), |status| waiting(&status.state))
    }
}

/// Whether a command waits for input, and if so, for one that its terminal does not show.
pub(crate) const fn waiting(state: &ExecState) -> (bool, bool) {
    match *state {
        ExecState::Running { waiting_for_input, hides_input, .. } => (waiting_for_input, hides_input),
        ExecState::Queued | ExecState::Ended(_) => (false, false),
    }
}

impl Drop for Command<'_> {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

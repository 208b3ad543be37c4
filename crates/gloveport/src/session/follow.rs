//! Follows a command on a server: its output as it comes, our input when it waits for some, C-c and a time limit.

use std::{future::pending, time::Duration};

use anyhow::Context as _;
use gloveport_client::{ActionExecutionClient, ClientError, ExecEvent, ExecStream};
use gloveport_protocol::exec::{ExecEnd, ExecRequest, ExecState};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::{Instant, sleep_until, timeout},
};

/// Events that are read ahead.
const AHEAD: usize = 16;
/// How long a command that was interrupted at its time limit has to end.
const GRACE: Duration = Duration::from_secs(5);
/// After this time without news about a command that was typed to, it is asked how it stands.
const NEWS: Duration = Duration::from_millis(200);

/// How a command is followed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct How {
    /// It gets the lines of our standard input.
    pub(super) interactive: bool,
    /// After this it is interrupted.
    pub(super) limit: Option<Duration>,
}

/// How following a command ended.
#[derive(Debug)]
pub(super) enum Followed {
    /// It has ended.
    Ended(ExecEnd),
    /// Its time was over. `None` if it did not even end when it was interrupted.
    TimedOut(Option<ExecEnd>),
    /// It was interrupted twice, and is left to itself.
    Left,
    /// Nobody reads its output any more; it was interrupted.
    Unread,
}

/// Whether more output is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    More,
    NoMore,
}

/// Starts a command and follows it. `output` gets what it writes.
pub(super) async fn follow(
    client: &ActionExecutionClient,
    request: ExecRequest,
    how: How,
    mut output: impl FnMut(&[u8]) -> anyhow::Result<Wanted>,
) -> anyhow::Result<Followed> {
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let stream = client.exec(request).await?;
    let mut command = Command::new(client, stream);
    let mut deadline = how.limit.map(|limit| Instant::now() + limit);
    let (mut interrupted, mut timed_out) = (false, false);
    let mut input = Input::new(how.interactive);
    loop {
        tokio::select! {
            event = command.events.recv() => match event.context("the command's end was not told")?? {
                ExecEvent::Output { bytes, .. } => if output(&bytes)? == Wanted::NoMore {
                    command.interrupt().await;
                    return Ok(Followed::Unread);
                },
                ExecEvent::Gap { from, to } => {
                    tracing::warn!(lost = to - from, "output came faster than it could be read; a part is lost");
                }
                ExecEvent::Waiting(waits) => input.waits(waits),
                ExecEvent::Ended(end) if timed_out => return Ok(Followed::TimedOut(Some(end))),
                ExecEvent::Ended(end) => return Ok(Followed::Ended(end)),
            },
            _ = interrupts.recv() => {
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(Followed::Left);
                }
                command.interrupt().await;
            }
            () = at(deadline) => {
                if std::mem::replace(&mut timed_out, true) {
                    return Ok(Followed::TimedOut(None));
                }
                command.interrupt().await;
                deadline = Some(Instant::now() + GRACE);
            }
            next = input.next() => match next {
                Next::Line(line) => command.type_in(&mut input, line).await?,
                Next::Question => {
                    let waits = command.is_waiting().await;
                    input.waits(waits);
                }
            },
        }
    }
}

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

    /// A command that has ended meanwhile needs none; an unreachable server is told by the events.
    async fn interrupt(&self) {
        let interrupted = timeout(GRACE, self.client.exec_interrupt(&self.id)).await;
        if let Ok(Err(error)) = interrupted {
            tracing::debug!(%error, "the command was not interrupted");
        }
    }

    async fn type_in(&self, input: &mut Input, line: Line) -> anyhow::Result<()> {
        match self.client.exec_input(&self.id, line.text()).await {
            Ok(()) => input.typed(),
            // It has ended meanwhile.
            Err(ClientError::Status(_)) => input.end(),
            Err(error) => return Err(error.into()),
        }
        if line == Line::End {
            input.end();
        }
        Ok(())
    }

    async fn is_waiting(&self) -> bool {
        let status = self.client.exec_status(&self.id).await;
        status.is_ok_and(|status| matches!(status.state, ExecState::Running { waiting_for_input: true, .. }))
    }
}

impl Drop for Command<'_> {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Something that is typed.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Text(String),
    End,
}

impl Line {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::End => "C-d",
        }
    }
}

/// What is to be done about input.
enum Next {
    /// This was read and is typed.
    Line(Line),
    /// The command is asked whether it waits.
    Question,
}

/// Our standard input, of which a line is read when the command waits for one.
#[derive(Debug)]
struct Input {
    /// Nothing is typed any more.
    ended: bool,
    /// The line that is being read.
    reading: Option<oneshot::Receiver<Line>>,
    /// When it is asked whether the command waits again.
    news: Option<Instant>,
}

impl Input {
    const fn new(interactive: bool) -> Self {
        Self { ended: !interactive, reading: None, news: None }
    }

    fn waits(&mut self, waits: bool) {
        if self.ended {
            return;
        }
        if !waits {
            // Whether it waits again later is told, or asked for.
            self.news = self.news.map(|_| Instant::now() + NEWS);
            return;
        }
        self.news = None;
        self.reading.get_or_insert_with(read_line);
    }

    /// What is to be done next. It can be given up at any time.
    async fn next(&mut self) -> Next {
        if let Some(reading) = &mut self.reading {
            let line = reading.await;
            self.reading = None;
            return Next::Line(line.unwrap_or(Line::End));
        }
        match self.news {
            Some(at) if !self.ended => sleep_until(at).await,
            _ => pending().await,
        }
        Next::Question
    }

    fn typed(&mut self) {
        self.news = Some(Instant::now() + NEWS);
    }

    fn end(&mut self) {
        self.ended = true;
    }
}

/// One line of standard input without its end, read by a thread of its own: nobody waits for it when we end.
fn read_line() -> oneshot::Receiver<Line> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = match std::io::stdin().read_line(&mut line) {
            Ok(count) if count > 0 => Line::Text(line.strip_suffix('\n').map(str::to_owned).unwrap_or(line)),
            _ => Line::End,
        };
        // Nobody wants it any more if the command has ended.
        let _ = sender.send(read);
    });
    receiver
}

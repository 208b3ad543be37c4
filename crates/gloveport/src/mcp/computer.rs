//! A sandbox behind its server, as the tools use it. What they do is rated and recorded as everything else that is done there.

use std::{fmt, str::from_utf8, sync::OnceLock, time::Duration};

use gloveport_client::{ClientError, Content, ExecStream, ListOptions, PutOptions, Range, Watch, WatchEvent, causes};
use gloveport_mcp_server::{BrowserAnswer, BrowserRequest, Changes, Computer, Failure, FileBytes, Follow};
use gloveport_protocol::{
    Action, BoxFuture, ErrorObservation, EventSource, Observation, ReadAction, ReadObservation, RunAction,
    RunIpythonAction, WriteObservation,
    exec::{ExecEvent, ExecRequest, ExecState, ExecStatus},
    files::{FileEntry, FileEvent, FileList, GlobRequest, GrepMatches, GrepRequest},
    kernels::{CellRequest, CellResult, DEFAULT_KERNEL},
};
use gloveport_runtime::{Begun, CellSeen, Operation, RunEnd, RunOutput, RuntimeError};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::browse;
use crate::{
    explained,
    operate::{NOT_KEPT, bounded, writing},
    session::Borrowed,
};

/// What a command did that nobody has seen yet.
const UNSEEN: usize = 64;
/// How long the last observations have to be recorded.
const RECORDING: Duration = Duration::from_secs(5);
/// What is recorded instead of a password.
const HIDDEN: &str = "[what was typed is not shown]";

type Answer<'a, T> = BoxFuture<'a, Result<T, Failure>>;

/// A sandbox that is on its way, and then there.
pub(super) struct Remote {
    sandbox: OnceLock<Borrowed>,
    state: watch::Sender<State>,
    /// Commands and cells, whose observations are recorded when they end, whoever has seen them.
    recorded: TaskTracker,
    stop: CancellationToken,
}

#[derive(Clone, Debug)]
enum State {
    Coming,
    Ready,
    Failed(Failure),
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Remote").field("state", &*self.state.borrow()).finish_non_exhaustive()
    }
}

impl Remote {
    /// Nothing yet. The token ends what goes on for its commands.
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { sandbox: OnceLock::new(), state: watch::Sender::new(State::Coming), recorded: TaskTracker::new(), stop }
    }

    /// The sandbox is there.
    pub(super) fn set(&self, sandbox: Borrowed) {
        if self.sandbox.set(sandbox).is_ok() {
            self.state.send_replace(State::Ready);
        }
    }

    /// There will be none.
    pub(super) fn fail(&self, error: &anyhow::Error) {
        self.state.send_replace(State::Failed(Failure::new(format!("there is no sandbox: {}", explained(error)))));
    }

    /// Records what is not recorded yet, and gives the sandbox back.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        self.recorded.close();
        if timeout(RECORDING, self.recorded.wait()).await.is_err() {
            tracing::warn!("the history could not be completed within {} s", RECORDING.as_secs());
        }
        if let Some(sandbox) = self.sandbox.get() {
            sandbox.give_back().await;
        }
    }

    fn sandbox(&self) -> Result<&Borrowed, Failure> {
        self.sandbox.get().ok_or_else(|| Failure::new("the sandbox is still being started"))
    }

    /// Begins an operation, unless it is refused.
    async fn begin(&self, action: Action) -> Result<Operation, Failure> {
        match self.sandbox()?.operations.begin(action, EventSource::Agent).await.map_err(unrecorded)? {
            Begun::Allowed(operation) => Ok(*operation),
            Begun::Refused(refused) => Err(Failure::new(refused.observation.observation.content().to_owned())),
        }
    }

    /// Does something that is over at once, as an operation. Only what it says is recorded.
    async fn operate<T>(
        &self,
        action: Action,
        work: impl Future<Output = Result<T, ClientError>>,
        observed: impl FnOnce(&T) -> Observation,
    ) -> Result<T, Failure> {
        let operation = self.begin(action).await?;
        let done = work.await.map_err(|error| failure(&error));
        let observation = match &done {
            Ok(done) => bounded(&observed(done)),
            Err(failure) => Observation::Error(ErrorObservation::new(format!("It failed: {}", failure.text))),
        };
        operation.finish(observation).await.map_err(unrecorded)?;
        done
    }
}

/// What a server or a connection says, for a model.
fn failure(error: &ClientError) -> Failure {
    match error {
        ClientError::Status(status) => {
            let text = status.reason().unwrap_or_else(|| status.to_string());
            Failure { is_missing: status.status == 404, ..Failure::new(text) }
        }
        other => Failure::new(causes(other)),
    }
}

fn unrecorded(error: RuntimeError) -> Failure {
    Failure::new(explained(&anyhow::Error::from(error)))
}

impl Computer for Remote {
    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut state = self.state.subscribe();
            let known = state.wait_for(|state| !matches!(state, State::Coming)).await;
            match known.as_deref() {
                Ok(State::Failed(failure)) => Err(failure.clone()),
                // The sender is this value's own.
                Ok(State::Ready | State::Coming) | Err(_) => Ok(()),
            }
        })
    }

    fn directory(&self) -> &str {
        self.sandbox.get().map_or("", |sandbox| &sandbox.directory)
    }

    fn is_the_users(&self) -> bool {
        self.sandbox.get().is_some_and(|sandbox| sandbox.is_here)
    }

    fn has_browser(&self) -> bool {
        // A sandbox that is on its way is not waited for to find that out; one without says so.
        true
    }

    fn browse(&self, request: BrowserRequest) -> Answer<'_, BrowserAnswer> {
        Box::pin(async move {
            let browser = self.sandbox()?.client.browser();
            let Some(action) = browse::action(&request) else {
                return browse::asked(&browser, &request).await.map_err(|error| failure(&error));
            };
            self.operate(action, browse::asked(&browser, &request), browse::observed).await
        })
    }

    fn run(&self, request: ExecRequest) -> Answer<'_, Box<dyn Follow>> {
        Box::pin(async move {
            let command = request.command.clone();
            let cwd = request.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
            let operation = self.begin(Action::Run(RunAction { cwd, ..RunAction::new(&command) })).await?;
            let output = operation.output();
            let stream = match self.sandbox()?.client.exec(request).await {
                Ok(stream) => stream,
                Err(error) => {
                    let failure = failure(&error);
                    let lost = output.observation(&command, RunEnd::Lost { reason: &failure.text });
                    operation.finish(lost).await.map_err(unrecorded)?;
                    return Err(failure);
                }
            };
            let (sender, events) = mpsc::channel(UNSEEN);
            let running = Running { command, stream, operation, output, seen: sender, stop: self.stop.clone() };
            self.recorded.spawn(running.record());
            Ok(Box::new(Recorded(events)) as Box<dyn Follow>)
        })
    }

    fn follow<'a>(&'a self, id: &'a str, offset: u64) -> Answer<'a, Box<dyn Follow>> {
        Box::pin(async move {
            let stream = self.sandbox()?.client.exec_follow(id, offset).await.map_err(|error| failure(&error))?;
            Ok(Box::new(Followed(stream)) as Box<dyn Follow>)
        })
    }

    fn commands(&self) -> Answer<'_, Vec<ExecStatus>> {
        Box::pin(async move { self.sandbox()?.client.execs().await.map_err(|error| failure(&error)) })
    }

    fn type_in<'a>(&'a self, id: &'a str, text: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let client = &self.sandbox()?.client;
            let status = client.exec_status(id).await.map_err(|error| failure(&error))?;
            let is_secret = matches!(status.state, ExecState::Running { hides_input: true, .. });
            let shown = if is_secret { HIDDEN } else { text };
            let action = RunAction { is_input: true, ..RunAction::new(shown) };
            let operation = self.begin(Action::Run(action)).await?;
            let (output, typed) = (operation.output(), client.exec_input(id, text).await);
            let typed = typed.map_err(|error| failure(&error));
            let end = match &typed {
                Ok(()) => RunEnd::Typed { id },
                Err(failure) => RunEnd::Lost { reason: &failure.text },
            };
            operation.finish(output.observation(shown, end)).await.map_err(unrecorded)?;
            typed
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> Answer<'a, ()> {
        Box::pin(async move { self.sandbox()?.client.exec_cancel(id).await.map_err(|error| failure(&error)) })
    }

    fn act(&self, action: Action) -> Answer<'_, Observation> {
        Box::pin(async move {
            let client = &self.sandbox()?.client;
            let event = action.clone().into();
            let done = self.operate(action, client.send_action(&event), |event| event.observation.clone());
            Ok(done.await?.observation)
        })
    }

    fn cell(&self, request: CellRequest) -> Answer<'_, CellResult> {
        Box::pin(async move {
            let kernels = self.sandbox()?.client.kernels();
            let action = RunIpythonAction { include_extra: false, ..RunIpythonAction::new(&request.code) };
            let operation = self.begin(Action::RunIpython(action)).await?;
            // Whoever gives the call up interrupts the cell, and its end is recorded all the same.
            let stop = self.stop.clone();
            let running = self.recorded.spawn(async move {
                let mut output = operation.cell_output();
                let done = tokio::select! {
                    done = kernels.execute(DEFAULT_KERNEL, &request) => done.map_err(|error| failure(&error)),
                    () = stop.cancelled() => Err(Failure::new("the client has gone")),
                };
                let seen = match &done {
                    Ok(result) => {
                        output.text(&result.text);
                        for image in &result.images {
                            let image = image.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
                            if let Some((media_type, base64)) = image {
                                output.image(media_type, base64);
                            }
                        }
                        let lost = result.kernel_lost_before;
                        CellSeen::Ended { end: result.end, timeout: request.timeout, kernel_lost_before: lost }
                    }
                    Err(failure) => CellSeen::Lost { reason: &failure.text },
                };
                let observation = output.observation(&request.code, DEFAULT_KERNEL, seen);
                operation.finish(observation).await.map_err(unrecorded)?;
                done
            });
            running.await.map_err(|error| Failure::new(error.to_string()))?
        })
    }

    fn interrupt_cell(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            match self.sandbox()?.client.kernels().interrupt(DEFAULT_KERNEL).await {
                Ok(_) => Ok(()),
                Err(error) => {
                    Err(failure(&error)).or_else(|failure| if failure.is_missing { Ok(()) } else { Err(failure) })
                }
            }
        })
    }

    fn stat<'a>(&'a self, path: &'a str) -> Answer<'a, FileEntry> {
        Box::pin(async move { self.sandbox()?.client.files().stat(path, true).await.map_err(|error| failure(&error)) })
    }

    fn list<'a>(&'a self, path: &'a str, most: usize) -> Answer<'a, FileList> {
        Box::pin(async move {
            let options = ListOptions { depth: Some(1), hidden: true, limit: Some(most) };
            self.sandbox()?.client.files().list(path, &options).await.map_err(|error| failure(&error))
        })
    }

    fn read<'a>(&'a self, path: &'a str, offset: u64, most: u64) -> Answer<'a, FileBytes> {
        Box::pin(async move {
            let files = self.sandbox()?.client.files();
            let reading = async {
                let range = Range::Between(offset, offset.saturating_add(most));
                match files.read(path, Some(range)).await {
                    Ok(content) => part(content, offset, most).await,
                    // The file has no byte at the offset.
                    Err(ClientError::Status(error)) if error.status == 416 => {
                        Ok(FileBytes { bytes: Vec::new(), is_end: true })
                    }
                    Err(error) => Err(error),
                }
            };
            if offset > 0 {
                return reading.await.map_err(|error| failure(&error));
            }
            let observed = |read: &FileBytes| Observation::Read(ReadObservation::new(shown(read), path));
            self.operate(Action::Read(ReadAction::new(path)), reading, observed).await
        })
    }

    fn write<'a>(&'a self, path: &'a str, bytes: Vec<u8>) -> Answer<'a, ()> {
        Box::pin(async move {
            let files = self.sandbox()?.client.files();
            let action = writing(path, &bytes);
            let options = PutOptions { parents: true, ..PutOptions::default() };
            let observed = |_: &_| Observation::Write(WriteObservation::new("", path));
            self.operate(action, files.write(path, bytes, &options), observed).await.map(drop)
        })
    }

    fn glob(&self, request: GlobRequest) -> Answer<'_, FileList> {
        Box::pin(async move { self.sandbox()?.client.files().glob(&request).await.map_err(|error| failure(&error)) })
    }

    fn grep(&self, request: GrepRequest) -> Answer<'_, GrepMatches> {
        Box::pin(async move { self.sandbox()?.client.files().grep(&request).await.map_err(|error| failure(&error)) })
    }

    fn watch<'a>(&'a self, path: &'a str, recursive: bool) -> Answer<'a, Box<dyn Changes>> {
        Box::pin(async move {
            let mut watch =
                self.sandbox()?.client.files().watch(path, recursive).await.map_err(|error| failure(&error))?;
            match watch.next().await.map_err(|error| failure(&error))? {
                Some(WatchEvent::Ready) => Ok(Box::new(Watched(watch)) as Box<dyn Changes>),
                Some(WatchEvent::Change(_)) | None => Err(Failure::new(format!("{path} cannot be watched"))),
            }
        })
    }
}

/// At most so many bytes of a file from an offset on. A server that knows no ranges sends the whole file.
async fn part(mut content: Content, offset: u64, most: u64) -> Result<FileBytes, ClientError> {
    let mut passed = if content.info.partial { 0 } else { offset };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    while let Some(piece) = content.bytes.next().await? {
        let skipped = usize::try_from(passed).unwrap_or(usize::MAX).min(piece.len());
        passed -= skipped as u64;
        let piece = piece.get(skipped..).unwrap_or_default();
        let taken = piece.len().min(most - bytes.len());
        bytes.extend_from_slice(piece.get(..taken).unwrap_or_default());
        if bytes.len() == most {
            break;
        }
    }
    Ok(FileBytes { is_end: bytes.len() < most, bytes })
}

/// The beginning of a file as the history has it.
fn shown(read: &FileBytes) -> String {
    match from_utf8(&read.bytes) {
        Ok(text) => text.to_owned(),
        // A character may go on behind the part that was read.
        Err(error) if error.error_len().is_none() && !read.is_end => {
            String::from_utf8_lossy(read.bytes.get(..error.valid_up_to()).unwrap_or_default()).into_owned()
        }
        Err(_) => format!("[{} bytes that are not UTF-8 text; {NOT_KEPT}]", read.bytes.len()),
    }
}

/// A command that is followed to its end for its observation, and as long as somebody wants to see it.
struct Running {
    command: String,
    stream: ExecStream,
    operation: Operation,
    output: RunOutput,
    seen: mpsc::Sender<Result<ExecEvent, Failure>>,
    stop: CancellationToken,
}

impl Running {
    async fn record(self) {
        let Self { command, mut stream, operation, mut output, seen, stop } = self;
        let is_recorded = operation.action().id.is_some();
        let last = loop {
            let event = tokio::select! {
                event = stream.next() => event,
                () = stop.cancelled() => break None,
                // Without a history nobody needs the rest.
                () = seen.closed(), if !is_recorded => return,
            };
            match event {
                Ok(Some(ExecEvent::Ended(end))) => break Some(Ok(end)),
                Ok(Some(event)) => {
                    if let ExecEvent::Output { bytes, .. } = &event {
                        output.push(bytes);
                    }
                    // Who has gone does not hold it up.
                    let _gone = seen.send(Ok(event)).await;
                }
                Ok(None) => break None,
                Err(error) => break Some(Err(failure(&error))),
            }
        };
        let id = stream.id();
        let end = match &last {
            Some(Ok(end)) => RunEnd::Ended(end),
            Some(Err(failure)) => RunEnd::Lost { reason: &failure.text },
            None => RunEnd::Detached { id },
        };
        // Whoever sees the end may look into the history.
        let recorded = operation.finish(output.observation(&command, end)).await;
        let told = match (last, recorded) {
            (_, Err(error)) => Err(unrecorded(error)),
            (Some(Ok(end)), Ok(_)) => Ok(ExecEvent::Ended(end)),
            (Some(Err(failure)), Ok(_)) => Err(failure),
            (None, Ok(_)) => return,
        };
        let _gone = seen.send(told).await;
    }
}

/// What a command does, from the task that records it.
struct Recorded(mpsc::Receiver<Result<ExecEvent, Failure>>);

impl Follow for Recorded {
    fn next(&mut self) -> Answer<'_, Option<ExecEvent>> {
        Box::pin(async move { self.0.recv().await.transpose() })
    }
}

/// A command that somebody has started before.
struct Followed(ExecStream);

impl Follow for Followed {
    fn next(&mut self) -> Answer<'_, Option<ExecEvent>> {
        Box::pin(async move { self.0.next().await.map_err(|error| failure(&error)) })
    }
}

struct Watched(Watch);

impl Changes for Watched {
    fn next(&mut self) -> Answer<'_, Option<FileEvent>> {
        Box::pin(async move {
            loop {
                match self.0.next().await.map_err(|error| failure(&error))? {
                    Some(WatchEvent::Change(change)) => return Ok(Some(change)),
                    Some(WatchEvent::Ready) => {}
                    None => return Ok(None),
                }
            }
        })
    }
}

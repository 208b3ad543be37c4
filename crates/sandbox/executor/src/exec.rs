//! Native commands: their output is streamed, they are known by an id, and a request that is repeated after a lost
//! connection follows the command that runs instead of running it again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gloveport_protocol::{
    exec::{ExecEnd, ExecInput, ExecRequest, ExecState, ExecStatus, ExecUsage, Session},
    seconds,
};
use gloveport_terminal::{
    ControlKey, EXIT_WORD, LogError, Mode, OutputLog, Piece, Progress, RunEnd, RunReport, RunRequest, Shell,
    ShellOptions, Usage, WhenWaiting,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::error::ExecError;

/// Ended commands that can still be asked for.
pub const KEPT: usize = 256;
/// Commands that may run or wait at the same time.
pub const RUNNING: usize = 512;
/// Keys that end a command which is given up, and the time that it has to end after each of them. An interrupt is lost where it
/// comes in the moment between two programs of a loop, and a loop outlives C-\: only another interrupt ends it then.
const ENDING: [(&str, Duration); 3] =
    [("C-c", Duration::from_secs(2)), ("C-\\", Duration::from_millis(500)), ("C-c", Duration::from_secs(2))];
/// Longest id.
const MAX_ID: usize = 128;

/// One native command.
#[derive(Debug)]
pub struct Execution {
    id: String,
    request: ExecRequest,
    log: OutputLog,
    state: watch::Sender<ExecState>,
    progress: watch::Sender<Progress>,
    shell: Shell,
    /// Its caller gives it up.
    cancelled: CancellationToken,
}

impl Execution {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How it stands, and its text. Offsets count from the beginning of its output.
    pub fn status(&self) -> ExecStatus {
        ExecStatus {
            id: self.id.clone(),
            command: self.request.command.clone(),
            session: self.request.session,
            state: self.state.borrow().clone().counted_from_its_start(),
        }
    }

    /// Changes of its state. Offsets are those of the session.
    pub fn watch(&self) -> watch::Receiver<ExecState> {
        self.state.subscribe()
    }

    /// The log that its output stands in. Offsets are those of the session; the state says where its own begins.
    pub fn output(&self) -> &OutputLog {
        &self.log
    }

    /// Up to `most` bytes of its own output from `offset` on, never beyond its end.
    pub fn read(&self, offset: u64, most: usize) -> Result<Piece, LogError> {
        let limit = match &*self.state.borrow() {
            ExecState::Queued => {
                return Ok(Piece { offset, bytes: Vec::new() });
            }
            ExecState::Running { .. } => u64::MAX,
            ExecState::Ended(end) => end.end,
        };
        let most = usize::try_from(limit.saturating_sub(offset)).unwrap_or(usize::MAX).min(most);
        let mut piece = self.log.read(offset, most)?;
        // Looked at behind the bytes: what the next command wrote comes after the end was told.
        if let Some(end) = self.progress.borrow().end {
            piece.bytes.truncate(usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX));
        }
        let at_end = offset + piece.bytes.len() as u64 == self.log.end();
        if limit == u64::MAX && at_end && piece.bytes.ends_with(EXIT_WORD) {
            // The word may be the shell's and not the command's; the end will tell.
            piece.bytes.truncate(piece.bytes.len() - EXIT_WORD.len());
        }
        Ok(piece)
    }

    /// Returns as soon as [`read`](Self::read) may give more than it gave at `offset` (a change of the state may, too).
    pub async fn grown_beyond(&self, offset: u64) {
        if self.progress.borrow().end.is_some_and(|end| offset >= end) {
            // Only the state changes from here on.
            return std::future::pending().await;
        }
        let held = self.log.read(offset, EXIT_WORD.len()).is_ok_and(|piece| piece.bytes == EXIT_WORD);
        let held = if held { EXIT_WORD.len() as u64 } else { 0 };
        self.log.grown_beyond(offset + held).await;
    }

    /// Types into it.
    pub async fn type_in(&self, input: ExecInput) -> Result<(), ExecError> {
        if !matches!(&*self.state.borrow(), ExecState::Running { .. }) {
            return Err(ExecError::NotRunning(self.id.clone()));
        }
        self.shell.type_in(input.text).await?;
        Ok(())
    }

    /// Interrupts it as C-c does.
    pub async fn interrupt(&self) -> Result<(), ExecError> {
        self.type_in(ExecInput { text: "C-c".into() }).await
    }

    /// Gives it up: one that waits for its turn never begins, one that runs is interrupted, then quit (C-\) if it does
    /// not end, and then interrupted again. One that has ended stays as it is.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }
}

/// All native commands of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    all: HashMap<String, Arc<Execution>>,
    /// Ids in the order of their start.
    order: VecDeque<String>,
}

impl Executions {
    pub(crate) fn find(&self, id: &str) -> Result<Arc<Execution>, ExecError> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.all.get(id).cloned().ok_or_else(|| ExecError::Unknown(id.to_owned()))
    }

    pub(crate) fn list(&self) -> Vec<ExecStatus> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.order.iter().filter_map(|id| table.all.get(id)).map(|execution| execution.status()).collect()
    }

    /// Shells of the commands that have not ended.
    pub(crate) fn shells(&self) -> Vec<Shell> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let running = |execution: &&Arc<Execution>| !matches!(&*execution.state.borrow(), ExecState::Ended(_));
        table.all.values().filter(running).map(|execution| execution.shell.clone()).collect()
    }

    /// The command of this id, if the very same request was made before.
    pub(crate) fn repeated(&self, request: &ExecRequest) -> Result<Option<Arc<Execution>>, ExecError> {
        let Some(id) = &request.id else {
            return Ok(None);
        };
        check_id(id)?;
        match self.find(id) {
            Ok(known) if known.request == *request => Ok(Some(known)),
            Ok(_) => Err(ExecError::Conflict(id.clone())),
            Err(_) => Ok(None),
        }
    }

    /// Registers a command; a repeated request that came in the meantime gets the one that was first.
    pub(crate) fn add(&self, request: ExecRequest, shell: Shell) -> Result<(Arc<Execution>, bool), ExecError> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match &request.id {
            Some(id) => id.clone(),
            None => random_id()?,
        };
        if let Some(known) = table.all.get(&id) {
            return if known.request == request {
                Ok((Arc::clone(known), false))
            } else {
                Err(ExecError::Conflict(id))
            };
        }
        table.make_room()?;
        let log = shell.output().clone();
        let execution = Arc::new(Execution {
            id: id.clone(),
            request,
            log,
            state: watch::Sender::new(ExecState::Queued),
            progress: watch::Sender::new(Progress::default()),
            shell,
            cancelled: CancellationToken::new(),
        });
        table.order.push_back(id.clone());
        table.all.insert(id, Arc::clone(&execution));
        Ok((execution, true))
    }
}

impl Table {
    /// Forgets the oldest ended commands beyond the bound.
    fn make_room(&mut self) -> Result<(), ExecError> {
        let ended = |execution: &Arc<Execution>| matches!(&*execution.state.borrow(), ExecState::Ended(_));
        let count = self.all.values().filter(|execution| ended(execution)).count();
        if self.all.len() - count >= RUNNING {
            return Err(ExecError::TooMany);
        }
        let oldest = || self.order.iter().position(|id| self.all.get(id).is_some_and(ended));
        if count >= KEPT
            && let Some(id) = oldest().and_then(|at| self.order.remove(at))
        {
            self.all.remove(&id);
        }
        Ok(())
    }
}

pub(crate) fn check_id(id: &str) -> Result<(), ExecError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if id.is_empty() || id.len() > MAX_ID || !id.bytes().all(allowed) {
        return Err(ExecError::Invalid(format!(
            "id must have 1 to {MAX_ID} letters, digits, `-`, `_` or `.`; it has {} bytes",
            id.len()
        )));
    }
    Ok(())
}

pub(crate) fn random_id() -> Result<String, ExecError> {
    gloveport_ids::random::<16>().map_err(|error| ExecError::Invalid(format!("cannot make a random id: {error}")))
}

/// Checks what can be wrong with a request before anything is started.
pub(crate) fn check(request: &ExecRequest) -> Result<Option<Duration>, ExecError> {
    let invalid = |text: String| Err(ExecError::Invalid(text));
    if request.command.trim().is_empty() {
        return invalid("command is empty".into());
    }
    if request.session == Session::Main && (request.cwd.is_some() || !request.env.is_empty()) {
        return invalid("cwd and env need `\"session\": \"new\"`: the main session keeps its own".into());
    }
    if let Some((key, _)) =
        request.env.iter().find(|(key, value)| key.is_empty() || key.contains(['=', '\0']) || value.contains('\0'))
    {
        return invalid(format!("env has an entry {key:?} that no environment can hold"));
    }
    if let Some(cwd) = request.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(ExecError::Directory(cwd.clone()));
    }
    match request.timeout {
        None => Ok(None),
        Some(number) => match seconds::limit(number) {
            Ok(limit) if limit.is_none_or(|limit| !limit.is_zero()) => Ok(limit),
            _ => invalid(format!("timeout must be a positive number of seconds, and is {number}")),
        },
    }
}

/// Options of a shell for one command.
pub(crate) fn own_shell(options: &ShellOptions, request: &ExecRequest) -> ShellOptions {
    let mut options = options.clone();
    if let Some(cwd) = &request.cwd {
        options.directory.clone_from(cwd);
    }
    options.environment.retain(|(key, _)| !request.env.keys().any(|own| key == own.as_str()));
    options.environment.extend(request.env.iter().map(|(key, value)| (key.into(), value.into())));
    options
}

/// Why a command does not run to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenUp {
    Late,
    Cancelled,
}

impl GivenUp {
    fn reason(self) -> &'static str {
        match self {
            Self::Late => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }

    fn message(self, became: &str) -> String {
        match self {
            Self::Late => format!("the time limit passed: {became}"),
            Self::Cancelled => format!("it was cancelled: {became}"),
        }
    }
}

/// Runs a registered command to its end. Its time limit counts from the request, whether it has its turn or not.
pub(crate) async fn drive(execution: Arc<Execution>, limit: Option<Duration>) {
    let (progress, mut seen) = (execution.progress.clone(), execution.progress.subscribe());
    let began = Instant::now();
    let deadline = limit.and_then(|limit| began.checked_add(limit));
    let request = RunRequest {
        text: execution.request.command.clone(),
        mode: Mode::Script,
        no_change: None,
        limit: None,
        waiting: WhenWaiting::GoOn,
        progress: Some(progress),
    };
    let shell = execution.shell.clone();
    let mut run = Box::pin(shell.run(request));
    let mut given_up = None;
    // When the next key is pressed.
    let mut keys = ENDING.into_iter();
    let mut next_key = deadline;
    let result = loop {
        tokio::select! {
            biased;
            result = &mut run => break Some(result),
            _ = seen.changed() => {
                let now = *seen.borrow_and_update();
                if let Some(start) = now.start {
                    let (waiting_for_input, hides_input) = (now.waiting_for_input, now.hides_input);
                    execution.state.send_replace(ExecState::Running { start, waiting_for_input, hides_input });
                }
            }
            () = execution.cancelled.cancelled(), if given_up.is_none() => {
                given_up = Some(GivenUp::Cancelled);
                next_key = Some(Instant::now());
            }
            () = sleep_until(next_key.unwrap_or(began)), if next_key.is_some() => {
                given_up.get_or_insert(GivenUp::Late);
                if seen.borrow().start.is_none() {
                    break None;
                }
                let Some((key, time)) = keys.next() else { break None };
                // A session that is closed ends the command, too.
                let _closed = shell.type_in(key).await;
                next_key = Some(Instant::now() + time);
            }
        }
    };
    let waited = seen.borrow().start.is_none();
    // One that did not begin never does: nobody waits for it any more.
    drop(run);
    // The end may come before the start was looked at, and the start in the moment in which it was given up.
    let start = seen.borrow().start;
    if result.is_none() && waited && start.is_some() {
        let _closed = shell.type_in("C-c").await;
    }
    let without_report = |reason: &'static str, message: String| ExecEnd {
        exit_code: None,
        reason: reason.into(),
        message: Some(message),
        start: start.unwrap_or(execution.log.end()),
        end: execution.log.end(),
        cwd: shell.facts().directory,
        usage: None,
    };
    let end = match (result, given_up) {
        (Some(Ok(report)), None) => ended(&report, start, began.elapsed()),
        (Some(Ok(report)), Some(given_up)) => ExecEnd {
            exit_code: None,
            reason: given_up.reason().into(),
            message: Some(given_up.message("it was interrupted")),
            ..ended(&report, start, began.elapsed())
        },
        (Some(Err(error)), _) => without_report("failed", error.to_string()),
        (None, given_up) => {
            let given_up = given_up.unwrap_or(GivenUp::Late);
            let became = match (start, execution.request.session) {
                (None, _) => "it never began, because another command ran",
                (Some(_), Session::New) => "it did not end when it was interrupted, and was killed",
                (Some(_), Session::Main) => "it was interrupted, and still runs in the session",
            };
            without_report(given_up.reason(), given_up.message(became))
        }
    };
    if execution.request.session == Session::New {
        shell.close().await;
    }
    execution.state.send_replace(ExecState::Ended(end));
}

fn ended(report: &RunReport, start: Option<u64>, wall: Duration) -> ExecEnd {
    let (exit_code, reason, message) = match &report.end {
        RunEnd::Completed { status } if report.loss.is_some_and(|loss| !loss.before_command) => {
            let message = "the shell itself ended; a new one takes its place".to_owned();
            (Some(*status), "shell_ended", Some(message))
        }
        RunEnd::Completed { status } => (Some(*status), "exited", None),
        RunEnd::TimedOut | RunEnd::NoChange => {
            (None, "timed_out", Some("the time limit passed before the command ended".to_owned()))
        }
        RunEnd::Waiting => (None, "waiting", Some("the program waits for input, and goes on".to_owned())),
        RunEnd::Refused => {
            let message =
                "a command is still running in the main session; wait for it, interrupt it, or use a new session";
            (None, "refused", Some(message.to_owned()))
        }
        RunEnd::NothingToFetch | RunEnd::NothingToType => (None, "failed", Some("the command is empty".to_owned())),
        RunEnd::Several(pieces) => (None, "failed", Some(format!("{} commands were given at once", pieces.len()))),
    };
    let usage = report.usage.map(|usage: Usage| ExecUsage {
        cpu_seconds: usage.cpu.as_secs_f64(),
        peak_memory_bytes: usage.peak_memory,
        written_bytes: usage.bytes_written,
        wall_seconds: wall.as_secs_f64(),
    });
    ExecEnd {
        exit_code,
        reason: reason.into(),
        message,
        start: start.unwrap_or(report.range.end),
        end: report.range.end,
        cwd: report.facts.directory.clone(),
        usage,
    }
}

/// Whether a text is a key that is sent without Enter.
pub fn is_key(text: &str) -> bool {
    ControlKey::parse(text.trim()).is_some()
}

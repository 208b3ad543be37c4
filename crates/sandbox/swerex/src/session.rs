//! A shell that a client talks to.
//!
//! A command runs to its end though its caller's time is over, and the next one waits for that; an interrupt does not. What a
//! session prints is told once: with the command that printed it, or with the interrupt that ended it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gloveport_protocol::python;
use gloveport_script::{Script, classify};
use gloveport_sys::Surroundings;
use gloveport_terminal::{ControlKey, LineFeeds, RunEnd, RunReport, RunRequest, Shell, ShellOptions, TerminalError};
use serde_json::Value;
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch},
    time::{Instant, sleep_until, timeout, timeout_at},
};

use crate::{
    command,
    exception::{Exception, repr},
    expect::Awaited,
    output,
    reader::Reader,
    types::{BashAction, Check, Interrupt, Kind, Observation},
};

/// What a wait has ended with when it was the prompt of the shell.
const PROMPT: &str = "SHELLPS1PREFIX";
/// Time beside the one that a client gives for the start of a session.
const START: Duration = Duration::from_millis(300);
/// Time for a program to be stopped that an interrupt does not end, and for each of the steps that end it then.
const STOP: Duration = Duration::from_secs(1);
/// Status of a program that was stopped from the terminal: 128 and the number of SIGTSTP.
const STOPPED: i32 = 128 + 20;
/// Most tries of an interrupt.
const TRIES: u32 = 100;

/// A shell, and what runs in it.
#[derive(Debug)]
pub(crate) struct Session {
    shell: Shell,
    /// How programs are started that look at a command before it runs.
    surroundings: Surroundings,
    /// Whoever has it may give the shell a command.
    turn: Arc<AsyncMutex<()>>,
    /// Whoever has it talks to a program.
    talk: AsyncMutex<()>,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    reader: Reader,
    running: Option<Running>,
}

/// Something that was given to the shell.
#[derive(Debug, Clone)]
struct Running {
    is_interactive: bool,
    ended: watch::Receiver<Option<End>>,
}

/// How it ended.
type End = Result<Arc<RunReport>, Arc<TerminalError>>;

/// What a wait has ended with.
enum Outcome {
    Ended(End),
    Found { index: usize, output: String },
    TimedOut,
}

impl Session {
    /// Starts a shell that reads these files first. What they print is the other answer.
    pub(crate) async fn start(
        options: ShellOptions,
        surroundings: Surroundings,
        sources: &[String],
        limit: f64,
    ) -> Result<(Self, String), Exception> {
        let time = seconds(Some(limit)).unwrap_or(options.startup_limit).saturating_add(START);
        // Clients wait for texts as a person's terminal shows them. Pagers set this by themselves, so it must always hold:
        // then a carriage return before that of the terminal is one of a program.
        let line_feeds = LineFeeds::WithReturn;
        let options = ShellOptions { startup_limit: options.startup_limit.min(time), line_feeds, ..options };
        let started = timeout(time, async {
            let shell = Shell::start(options).await.map_err(|error| match error {
                TerminalError::NotReady(_) => Exception::timeout(format!("the session is not ready: {error}")),
                error => Exception::failed(format!("the session cannot be started: {error}")),
            })?;
            let reader = Reader::new(shell.output().clone());
            let now = Mutex::new(Now { reader, running: None });
            let session = Self { shell, surroundings, turn: Arc::default(), talk: AsyncMutex::default(), now };
            let output = session.read_sources(sources).await?;
            Ok((session, output))
        });
        started.await.unwrap_or_else(|_| {
            Err(Exception::timeout(format!("the session was not ready within {} seconds", number(limit))))
        })
    }

    async fn read_sources(&self, sources: &[String]) -> Result<String, Exception> {
        if sources.is_empty() {
            return Ok(String::new());
        }
        let commands: Vec<String> = sources.iter().map(|file| format!("source {}", quoted(file))).collect();
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let mut running = self.begin(&commands.join(" ; "), false, turn);
        let report = ended(&mut running.ended).await.map_err(|error| broken(&error))?;
        Ok(self.output_of(&report))
    }

    /// Runs a command, or says something to a program.
    pub(crate) async fn run(&self, action: &BashAction) -> Result<Observation, Exception> {
        let deadline = seconds(action.timeout).and_then(|limit| Instant::now().checked_add(limit));
        let done = if action.is_interactive_command || action.is_interactive_quit {
            self.talk(action, deadline).await
        } else {
            self.command(action, deadline).await
        };
        done.map_err(|exception| exception.told(&action.error_msg))
    }

    async fn command(&self, action: &BashAction, deadline: Option<Instant>) -> Result<Observation, Exception> {
        let text = action.command.as_str();
        if text.lines().all(|line| matches!(line.trim_start().as_bytes().first(), None | Some(b'#'))) {
            return Ok(observed(String::new(), (action.check != Check::Ignore).then_some(0), PROMPT));
        }
        if text.contains('\0') {
            return Err(Exception::zero_byte());
        }
        let awaited = Awaited::new(&action.expect)?;
        if classify(text) == Script::Incomplete {
            command::check_syntax(&self.surroundings, text).await?;
        }
        if self.running().is_some_and(|running| running.is_interactive) {
            return Err(Exception::failed(
                "a program runs in the session that was started with `is_interactive_command`; end it with \
                 `is_interactive_quit` or an interrupt before the next command",
            ));
        }
        let Some(turn) = within(deadline, Arc::clone(&self.turn).lock_owned()).await else {
            return Err(late(action, None));
        };
        // A word that would be a key is the name of a program here.
        let is_key = ControlKey::parse(text.trim()).is_some();
        let running = self.begin(&if is_key { quoted(text.trim()) } else { text.to_owned() }, false, turn);
        let report = match self.wait(running, &awaited, deadline).await {
            Outcome::Ended(end) => end.map_err(|error| broken(&error))?,
            Outcome::Found { index, output } => return Ok(found(&action.expect, index, output, None)),
            Outcome::TimedOut => return Err(late(action, Some(self.so_far()))),
        };
        let output = self.output_of(&report);
        let RunEnd::Completed { status } = report.end else {
            return Err(Exception::failed(format!("the session did not take the command {}", repr(text))));
        };
        match action.check {
            Check::Ignore => Ok(observed(output, None, PROMPT)),
            Check::Raise if status != 0 => Err(Exception::exit_code(format!(
                "Command {} failed with exit code {status}. Here is the output:\n{}",
                repr(text),
                repr(&output)
            ))),
            Check::Silent | Check::Raise => Ok(observed(output, Some(status), PROMPT)),
        }
    }

    /// Starts a program that is talked to, or says something to the one that runs.
    async fn talk(&self, action: &BashAction, deadline: Option<Instant>) -> Result<Observation, Exception> {
        let awaited = Awaited::new(&action.expect)?;
        let Some(_alone) = within(deadline, self.talk.lock()).await else { return Err(late(action, None)) };
        let text = action.command.as_str();
        let running = if let Some(running) = self.running() {
            self.shell.type_line(text).await.map_err(|error| broken(&error))?;
            running
        } else {
            match within(deadline, Arc::clone(&self.turn).lock_owned()).await {
                Some(turn) => self.begin(text, true, turn),
                None => return Err(late(action, None)),
            }
        };
        match self.wait(running, &awaited, deadline).await {
            Outcome::Found { index, output } => Ok(found(&action.expect, index, without_echo(&output, text), Some(0))),
            Outcome::Ended(end) => {
                let output = self.rest_of(&end);
                end.map_err(|error| broken(&error))?;
                Ok(observed(without_echo(&output, text), Some(0), PROMPT))
            }
            Outcome::TimedOut => Err(late(action, Some(self.so_far()))),
        }
    }

    /// Interrupts what runs; what does not end is stopped and killed.
    pub(crate) async fn interrupt(&self, action: &Interrupt) -> Result<Observation, Exception> {
        let awaited = Awaited::new(&action.expect)?;
        let Some(running) = self.running() else { return Ok(observed(String::new(), Some(0), PROMPT)) };
        let limit = seconds(Some(action.timeout)).unwrap_or(STOP);
        let tries = std::iter::repeat_n(("C-c", limit), usize::try_from(action.n_retry.min(TRIES)).unwrap_or(0));
        for (key, limit) in tries.chain([("C-z", STOP.max(limit)), ("C-\\", STOP)]) {
            self.shell.type_in(key).await.map_err(|error| broken(&error))?;
            let outcome = self.wait(running.clone(), &awaited, Instant::now().checked_add(limit)).await;
            match outcome {
                Outcome::Found { index, output } => {
                    return Ok(found(&action.expect, index, output.trim().to_owned(), Some(0)));
                }
                Outcome::Ended(end) => {
                    let output = self.rest_of(&end);
                    // What has ended by itself in this moment is no job, and the last one is somebody else's.
                    if end.is_ok_and(|report| report.end == RunEnd::Completed { status: STOPPED }) {
                        self.kill_stopped().await;
                    }
                    return Ok(observed(output.trim().to_owned(), Some(0), PROMPT));
                }
                Outcome::TimedOut => {}
            }
        }
        let seconds = number(action.timeout);
        Err(Exception::timeout(format!(
            "what runs in the session was interrupted {} times with {seconds} seconds each, and goes on",
            action.n_retry
        )))
    }

    /// Kills the job that was stopped, and says nothing of it.
    async fn kill_stopped(&self) {
        let kill = RunRequest::script("kill -9 %% 2>/dev/null && disown %% 2>/dev/null").at_most(STOP);
        if let Err(error) = self.shell.run(kill).await {
            tracing::debug!(%error, "a stopped program cannot be killed");
        }
    }

    /// Ends the shell and everything that it started.
    pub(crate) async fn close(&self) {
        self.shell.close().await;
    }

    /// Gives a text to the shell. It runs to its end, whoever waits for that.
    fn begin(&self, text: &str, is_interactive: bool, turn: OwnedMutexGuard<()>) -> Running {
        let (end, ended) = watch::channel(None);
        let running = Running { is_interactive, ended };
        {
            let mut now = self.now();
            let at = self.shell.output().end();
            now.reader.begin_at(at);
            now.running = Some(running.clone());
        }
        let (shell, request) = (self.shell.clone(), RunRequest::script(text));
        tokio::spawn(async move {
            let report = shell.run(request).await;
            end.send_replace(Some(report.map(Arc::new).map_err(Arc::new)));
            drop(turn);
        });
        running
    }

    /// What runs now.
    fn running(&self) -> Option<Running> {
        self.now().running.clone().filter(|running| running.ended.borrow().is_none())
    }

    /// Waits for the end of something, or for one of these strings in what it prints.
    async fn wait(&self, mut running: Running, awaited: &Awaited, deadline: Option<Instant>) -> Outcome {
        let mut seen = 0;
        loop {
            // First this, so that all is read that it has printed.
            let end = running.ended.borrow().clone();
            let mut at = 0;
            if awaited.is_some() {
                let mut now = self.now();
                now.reader.read(self.end_of(end.as_ref()));
                if let Some(found) = awaited.find(now.reader.text(), seen) {
                    let output = now.reader.tell_before(found.start, found.end);
                    return Outcome::Found { index: found.index, output };
                }
                (seen, at) = (now.reader.text().len(), now.reader.at());
            }
            if let Some(end) = end {
                return Outcome::Ended(end);
            }
            tokio::select! {
                biased;
                _ = ended(&mut running.ended) => {}
                () = self.shell.output().grown_beyond(at), if awaited.is_some() => {}
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    if running.ended.borrow().is_none() {
                        return Outcome::TimedOut;
                    }
                }
            }
        }
    }

    /// Where the output of something ends that may have ended.
    fn end_of(&self, end: Option<&End>) -> u64 {
        match end {
            Some(Ok(report)) => report.range.end,
            _ => self.shell.output().end(),
        }
    }

    /// What nobody was told yet of something that has ended.
    fn rest_of(&self, end: &End) -> String {
        let mut now = self.now();
        now.reader.read(self.end_of(Some(end)));
        now.reader.tell()
    }

    /// What nobody was told yet of something that goes on. It is still to be told.
    fn so_far(&self) -> String {
        let mut now = self.now();
        now.reader.read(self.end_of(None));
        output::plain(now.reader.text())
    }

    /// All that a command printed.
    fn output_of(&self, report: &RunReport) -> String {
        let mut now = self.now();
        now.reader.begin_at(report.range.start);
        now.reader.read(report.range.end);
        now.reader.tell()
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of something, once it has ended.
async fn ended(of: &mut watch::Receiver<Option<End>>) -> End {
    match of.wait_for(Option::is_some).await {
        Ok(end) => end.clone().unwrap_or_else(|| Err(Arc::new(TerminalError::Defect))),
        Err(_) => Err(Arc::new(TerminalError::Defect)),
    }
}

async fn within<T>(deadline: Option<Instant>, wanted: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, wanted).await.ok(),
        None => Some(wanted.await),
    }
}

/// A time limit of a client; none if there is none, or if it is beyond the end of time.
pub(crate) fn seconds(limit: Option<f64>) -> Option<Duration> {
    limit.and_then(|limit| Duration::try_from_secs_f64(limit.max(0.0)).ok())
}

/// A number as Python prints it.
pub(crate) fn number(number: f64) -> String {
    python::repr(&Value::from(number))
}

fn observed(output: String, exit_code: Option<i32>, expect_string: &str) -> Observation {
    Observation {
        output,
        exit_code,
        failure_reason: "",
        expect_string: expect_string.to_owned(),
        session_type: Kind::Bash,
    }
}

fn found(patterns: &[String], index: usize, output: String, exit_code: Option<i32>) -> Observation {
    observed(output, exit_code, patterns.get(index).map_or(PROMPT, String::as_str))
}

/// The time of a command is over. Its output so far is an attribute, as nothing else tells it if nobody interrupts it.
fn late(action: &BashAction, output: Option<String>) -> Exception {
    let limit = action.timeout.map_or_else(|| "None".to_owned(), number);
    let text = format!("timeout after {limit} seconds while running command {}", repr(&action.command));
    let exception = Exception::timeout(text);
    match output {
        Some(output) => exception.with("output", output),
        None => exception,
    }
}

fn broken(error: &TerminalError) -> Exception {
    Exception::failed(format!("the session failed: {error}"))
}

/// What a program said, without the line that it was told.
fn without_echo(output: &str, line: &str) -> String {
    let output = output.trim();
    let line = line.trim();
    let rest = if line.is_empty() { output } else { output.strip_prefix(line).unwrap_or(output) };
    rest.trim().to_owned()
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

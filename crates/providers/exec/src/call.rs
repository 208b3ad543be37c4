//! One call of the program: input, output, limits, and the end of its process group.

use std::{io, process::ExitStatus, time::Duration};

use gloveport_platform::group;
use gloveport_provider::{Phase, Progress, ProviderError};
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, Command},
    time::{Instant, sleep, timeout},
};

use crate::{
    describe::Verb,
    stderr::{Lines, Mask},
};

/// Most bytes of an answer with all progress before it.
const MOST: usize = 16 * 1024 * 1024;
/// Most bytes of a line of progress; what is longer is the answer.
const LINE: usize = 64 * 1024;
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long a process that was left behind has to begin a session of its own, before it is ended.
const LEAVING: Duration = Duration::from_millis(200);
/// Pause between looks at something that no event tells.
const LOOK: Duration = Duration::from_millis(10);
/// How long the output is read on that other processes hold open after the program has ended.
const HELD_OPEN: Duration = Duration::from_millis(500);

/// What is called.
pub(crate) struct Call {
    /// The name of the provider.
    pub(crate) provider: String,
    pub(crate) program: std::path::PathBuf,
    pub(crate) verb: Verb,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) input: Vec<u8>,
    pub(crate) limit: Duration,
    pub(crate) mask: Mask,
}

/// What came of it.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The answer: all after the lines of progress.
    pub(crate) answer: Vec<u8>,
    pub(crate) lines: Lines,
    pub(crate) took: Duration,
}

impl Call {
    /// The program as errors call it.
    pub(crate) fn engine(&self) -> String {
        format!("the provider program {}", self.program.display())
    }

    /// Calls the program and waits for its end. When this is given up, the program and its group are ended.
    pub(crate) async fn run(&self, progress: Option<&Progress>) -> Result<Ended, ProviderError> {
        let began = Instant::now();
        let mut group = Group::spawn(self)?;
        let mut lines = Lines::new(&self.provider, self.verb.word(), self.mask.clone());
        let mut output = Output::default();
        let result =
            timeout(self.limit, group.attend(&self.input, &mut output, &mut lines, progress, &self.mask)).await;
        match result {
            Ok(Ok(status)) => Ok(Ended { status, answer: output.rest, lines, took: began.elapsed() }),
            Ok(Err(failure)) => {
                group.end().await;
                Err(self.failed(&failure, &lines))
            }
            Err(_) => {
                group.end().await;
                let last =
                    if lines.tail().is_empty() { String::new() } else { format!(" (it wrote last: {})", lines.tail()) };
                let action = format!("`{}` of {}{last}", self.verb.word(), self.engine());
                Err(ProviderError::Timeout { action, limit: self.limit })
            }
        }
    }

    /// The error of a call without an answer.
    pub(crate) fn failed(&self, failure: &str, lines: &Lines) -> ProviderError {
        let tail = lines.tail();
        let last = if tail.is_empty() { String::new() } else { format!("; it wrote last:\n{tail}") };
        ProviderError::Engine {
            engine: self.engine(),
            action: format!("answer `{}`", self.verb.word()),
            reason: format!("{failure}{last}"),
        }
    }
}

/// What the program writes to its standard output.
#[derive(Default)]
struct Output {
    rest: Vec<u8>,
    /// The answer has begun; no more progress comes.
    answering: bool,
    bytes: usize,
}

/// A line of progress.
#[derive(Deserialize)]
struct Step {
    phase: Phase,
    #[serde(default)]
    detail: String,
}

impl Output {
    async fn read(
        &mut self,
        mut from: impl AsyncRead + Unpin,
        progress: Option<&Progress>,
        mask: &Mask,
    ) -> Result<(), String> {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let count = from.read(&mut buffer).await.map_err(|error| format!("its output cannot be read: {error}"))?;
            if count == 0 {
                return Ok(());
            }
            self.bytes += count;
            if self.bytes > MOST {
                return Err(format!("it writes more than {} MiB", MOST / 1024 / 1024));
            }
            self.rest.extend_from_slice(&buffer[..count]);
            self.take_progress(progress, mask);
        }
    }

    /// Takes whole lines of progress off the beginning. An answer may be several lines.
    fn take_progress(&mut self, progress: Option<&Progress>, mask: &Mask) {
        let Some(progress) = progress else { return };
        while !self.answering {
            let Some(end) = self.rest.iter().take(LINE).position(|byte| *byte == b'\n') else {
                self.answering = self.rest.len() >= LINE;
                return;
            };
            match serde_json::from_slice::<Step>(&self.rest[..end]) {
                Ok(step) => {
                    // The server is waited for by whoever asked for the sandbox.
                    if !matches!(step.phase, Phase::Waiting | Phase::Alive) {
                        progress.enter(step.phase, &mask.apply(&step.detail));
                    }
                    self.rest.drain(..=end);
                }
                Err(_) if self.rest[..end].trim_ascii().is_empty() => {
                    self.rest.drain(..=end);
                }
                Err(_) => self.answering = true,
            }
        }
    }
}

/// The program and all processes of its group.
pub(crate) struct Group {
    /// `None` when its end was seen.
    child: Option<Child>,
    /// Nobody waits for the program itself before its group is gone: until then its process id, and with it the group,
    /// is nobody else's.
    ended: group::End,
}

impl Group {
    pub(crate) fn spawn(call: &Call) -> Result<Self, ProviderError> {
        let mut command = Command::new(&call.program);
        command
            .arg(call.verb.word())
            .env_clear()
            .envs(call.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        group::lead(&mut command);
        let failed =
            |source| ProviderError::File { action: "run the provider program", path: call.program.clone(), source };
        let child = command.spawn().map_err(failed)?;
        match group::End::of(&child) {
            Ok(ended) => Ok(Self { child: Some(child), ended }),
            Err(error) => {
                group::kill(&child);
                Err(failed(error))
            }
        }
    }

    /// The program's pipes and itself.
    pub(crate) fn child(&mut self) -> Result<&mut Child, String> {
        self.child.as_mut().ok_or_else(|| "it has ended".to_owned())
    }

    /// Waits for the end of the program, and ends what it has left in its group: what is to go on has begun a session
    /// of its own.
    pub(crate) async fn wait(&mut self) -> Result<ExitStatus, String> {
        let failed = |error: io::Error| format!("it cannot be waited for: {error}");
        let child = self.child.as_mut().ok_or_else(|| "it has ended".to_owned())?;
        self.ended.reached(child).await.map_err(failed)?;
        let began = Instant::now();
        while group::others_run(child) {
            if began.elapsed() > LEAVING {
                tracing::warn!("a provider program has left processes behind, which are ended");
                group::kill(child);
                break;
            }
            sleep(LOOK).await;
        }
        let status = child.wait().await.map_err(failed)?;
        self.child = None;
        Ok(status)
    }

    /// Gives it its input, and reads until it ends.
    async fn attend(
        &mut self,
        input: &[u8],
        output: &mut Output,
        lines: &mut Lines,
        progress: Option<&Progress>,
        mask: &Mask,
    ) -> Result<ExitStatus, String> {
        let child = self.child()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err("it has no pipes".to_owned());
        };
        let pipes = async {
            let told = async {
                lines.read(stderr).await;
                Ok(())
            };
            tokio::try_join!(output.read(stdout, progress, mask), told, feed(stdin, input)).map(|_| ())
        };
        tokio::pin!(pipes);
        tokio::select! {
            read = &mut pipes => {
                read?;
                self.wait().await
            }
            status = self.wait() => {
                if let Ok(read) = timeout(HELD_OPEN, &mut pipes).await {
                    read?;
                } else {
                    tracing::debug!("the program has left processes that hold its output open");
                }
                status
            }
        }
    }

    /// Asks the group to end, and ends it.
    pub(crate) async fn end(mut self) {
        if let Some(child) = self.child.take() {
            end(child).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(end(child));
            }
            // Nobody is left to wait.
            Err(_) => group::kill(&child),
        }
    }
}

/// Ends a program that was not waited for yet: until then its process id, and with it the group, is nobody else's.
async fn end(mut child: Child) {
    let asked = group::ask_to_end(&child);
    let began = Instant::now();
    while asked && group::runs(&child) && began.elapsed() < GRACE {
        // The end itself cannot be waited for without giving the process id free.
        sleep(LOOK).await;
    }
    group::kill(&child);
    let _reaped = child.wait().await;
}

/// Writes the request. A program need not read what it does not need.
pub(crate) async fn feed(mut stdin: ChildStdin, input: &[u8]) -> Result<(), String> {
    match stdin.write_all(input).await {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("it takes no input: {error}")),
        _ => Ok(()),
    }
}

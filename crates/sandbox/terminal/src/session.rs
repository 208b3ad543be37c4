//! The handle to a shell session.

use gloveport_sys::host;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{Engine, supervise},
    error::TerminalError,
    log::OutputLog,
    options::ShellOptions,
    request::{Facts, Job, RunReport, RunRequest, Typed},
};

/// A shell session. Clones are handles to the same session; it ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Shell {
    jobs: mpsc::Sender<Job>,
    typing: mpsc::Sender<Typed>,
    log: OutputLog,
    facts: watch::Receiver<Facts>,
    close: CancellationToken,
    closed: CancellationToken,
}

/// Requests that may wait for their turn.
const QUEUE: usize = 256;

impl Shell {
    /// Starts a shell and waits for its first prompt.
    pub async fn start(options: ShellOptions) -> Result<Self, TerminalError> {
        let log = OutputLog::new(options.spool_size);
        let facts = Facts {
            directory: options.directory.to_string_lossy().into_owned(),
            user_name: options.user_name.clone(),
            host_name: host::short_host_name(),
            ..Facts::default()
        };
        let (facts_sender, facts) = watch::channel(facts);
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (typing, typed) = mpsc::channel(QUEUE);
        let (close, closed) = (CancellationToken::new(), CancellationToken::new());
        let engine = Engine::start(options, log.clone(), facts_sender).await?;
        let (close_engine, report_closed) = (close.clone(), closed.clone());
        tokio::spawn(async move {
            Box::pin(supervise(engine, queue, typed, close_engine)).await;
            report_closed.cancel();
        });
        Ok(Self { jobs, typing, log, facts, close, closed })
    }

    /// What stands for the session where there is no shell: each request is answered with
    /// [`TerminalError::NoShell`], until it is closed.
    pub fn absent(options: &ShellOptions) -> Self {
        let facts = Facts {
            directory: options.directory.to_string_lossy().into_owned(),
            user_name: options.user_name.clone(),
            host_name: host::short_host_name(),
            ..Facts::default()
        };
        let (_, facts) = watch::channel(facts);
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let (typing, _) = mpsc::channel(QUEUE);
        let (close, closed) = (CancellationToken::new(), CancellationToken::new());
        let (close_queue, report_closed) = (close.clone(), closed.clone());
        tokio::spawn(async move {
            while let Some(Some(job)) = close_queue.run_until_cancelled(queue.recv()).await {
                let _caller_is_gone = job.reply.send(Err(TerminalError::NoShell));
            }
            report_closed.cancel();
        });
        Self { jobs, typing, log: OutputLog::new(options.spool_size), facts, close, closed }
    }

    /// Runs one request after those that came before it. Dropping the future while a command runs means that its
    /// caller is gone: the command goes on, and its output stays for the next request.
    pub async fn run(&self, request: RunRequest) -> Result<RunReport, TerminalError> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job { request, reply }).await.map_err(|_| TerminalError::Closed)?;
        answer.await.map_err(|_| {
            // Without a word of the session's end it was a panic that dropped the request.
            if self.close.is_cancelled() || self.closed.is_cancelled() {
                TerminalError::Closed
            } else {
                TerminalError::Defect
            }
        })?
    }

    /// Types text (with Enter) or a key into the program that runs, also while somebody waits for its end. Nothing
    /// happens when nothing runs.
    pub async fn type_in(&self, text: impl Into<String>) -> Result<(), TerminalError> {
        self.typing.send(Typed::Text(text.into())).await.map_err(|_| TerminalError::Closed)
    }

    /// Types a line with Enter into the program that runs, as it is: blanks stay, and no text is a key.
    pub async fn type_line(&self, line: impl Into<String>) -> Result<(), TerminalError> {
        self.typing.send(Typed::Line(line.into())).await.map_err(|_| TerminalError::Closed)
    }

    /// Everything that the session's programs wrote.
    pub fn output(&self) -> &OutputLog {
        &self.log
    }

    /// Whether both are handles to the same session.
    pub fn is_same_session(&self, other: &Self) -> bool {
        self.jobs.same_channel(&other.jobs)
    }

    /// The shell at its latest prompt.
    pub fn facts(&self) -> Facts {
        self.facts.borrow().clone()
    }

    /// Ends the shell and everything that it started, and returns when nothing of it is left.
    pub async fn close(&self) {
        self.close.cancel();
        self.closed.cancelled().await;
    }
}

//! The browser of a sandbox: started when it is used, watched, ended when it is not used for long.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gloveport_protocol::browser::StorageState;
use gloveport_sys::Exit;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use tokio_util::sync::CancellationToken;

use crate::{
    cdp::{CdpError, Tunnel, within},
    extras::storage,
    launch::{self, Failure, Launched},
    live::Live,
    options::BrowserOptions,
    script::ScriptError,
    step::{self, Step},
    world::DownloadState,
};

/// What the reference says of a step that takes too long (spec/browser.md 1).
pub const TOO_LONG: &str = "Browser environment took too long to respond.";
/// Time between two looks at the memory of a browser that is used.
const MEMORY_LOOK: Duration = Duration::from_secs(2);
/// Time for the status of a process that does not talk any more.
const EXIT: Duration = Duration::from_secs(1);
/// Time in which a failed start is not repeated.
const START_AGAIN: Duration = Duration::from_secs(5);

/// Why there is nothing to be seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrowserError {
    /// There is no browser.
    #[error("the browser cannot be started: {reason} ({remedy})")]
    NotStarted {
        /// Why.
        reason: String,
        /// What can be done.
        remedy: String,
    },
    /// The sandbox is ending.
    #[error("the browser is closed because the sandbox is ending")]
    Closed,
    /// It ended in the middle.
    #[error("the browser has ended: {0}; it is started again with the next action, with a blank page")]
    Died(String),
    /// It took too long.
    #[error("{TOO_LONG}")]
    TooLong,
    /// The page cannot be looked at.
    #[error("{0}")]
    Page(String),
    /// What was asked for makes no sense, whatever the page is like.
    #[error("{0}")]
    Invalid(String),
}

impl From<Failure> for BrowserError {
    fn from(Failure { reason, remedy }: Failure) -> Self {
        Self::NotStarted { reason, remedy }
    }
}

/// How a browser stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrowserState {
    /// It starts with its first use.
    Idle,
    /// It is being started.
    Starting,
    /// It is up.
    Ready {
        /// Which it is.
        version: String,
        /// Its first process.
        pid: u32,
        /// Whether Chromium keeps pages apart from the rest of the sandbox.
        sandboxed: bool,
    },
    /// It cannot be started.
    Failed {
        /// Why.
        reason: String,
        /// What can be done.
        remedy: String,
    },
    /// It is not started any more.
    Closed,
}

enum Request {
    /// Who wants to look at it only if it is up.
    Peek(oneshot::Sender<Option<Arc<Live>>>),
    Use(oneshot::Sender<Result<Lease, BrowserError>>),
    Close(oneshot::Sender<()>),
}

/// Who uses a browser that is up; it is not idle as long as this lives.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) live: Arc<Live>,
    usage: Arc<Usage>,
    died: watch::Receiver<Option<BrowserError>>,
}

#[derive(Debug)]
struct Usage {
    users: AtomicUsize,
    /// Milliseconds since the start of the task.
    last: AtomicU64,
    began: Instant,
}

impl Usage {
    fn touch(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// When nobody will have used it for so long; none while somebody does.
    fn idle_at(&self, limit: Duration) -> Option<Instant> {
        (self.users.load(Ordering::Relaxed) == 0)
            .then(|| self.began + Duration::from_millis(self.last.load(Ordering::Relaxed)) + limit)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.usage.touch();
        self.usage.users.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The browser of a sandbox. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Browser {
    requests: mpsc::Sender<Request>,
    state: watch::Receiver<BrowserState>,
    /// It is to be closed, also while it starts.
    closing: CancellationToken,
    step_limit: Duration,
}

impl Browser {
    /// One that is started with its first use.
    pub fn new(options: BrowserOptions) -> Self {
        let (requests, receiver) = mpsc::channel(64);
        let (sender, state) = watch::channel(BrowserState::Idle);
        let step_limit = options.step_limit;
        let closing = CancellationToken::new();
        tokio::spawn(keep(options, receiver, sender, closing.clone()));
        Self { requests, state, closing, step_limit }
    }

    /// How it stands, and every change of that.
    pub fn state(&self) -> watch::Receiver<BrowserState> {
        self.state.clone()
    }

    /// Starts it, if it is not up.
    pub async fn start(&self) -> Result<(), BrowserError> {
        self.lease().await.map(drop)
    }

    pub(crate) async fn lease(&self) -> Result<Lease, BrowserError> {
        let (sender, receiver) = oneshot::channel();
        self.requests.send(Request::Use(sender)).await.map_err(|_| BrowserError::Closed)?;
        receiver.await.unwrap_or(Err(BrowserError::Closed))
    }

    /// The browser if it is up. This is no use of it: it may be ended for being idle.
    pub(crate) async fn peek(&self) -> Option<Arc<Live>> {
        if !matches!(*self.state.borrow(), BrowserState::Ready { .. }) {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        self.requests.send(Request::Peek(sender)).await.ok()?;
        receiver.await.ok().flatten()
    }

    /// Time for one step.
    pub(crate) fn step_limit(&self) -> Duration {
        self.step_limit
    }

    /// Performs the actions of a text, and looks at the page (spec/browser.md 2).
    pub async fn step(&self, text: &str) -> Result<Step, BrowserError> {
        let lease = self.lease().await?;
        lease.run(self.step_limit, Box::pin(step::step(&lease.live, text))).await
    }

    /// A client of its own of the browser, for programs that speak the DevTools protocol. The browser stays up while
    /// the second value lives.
    pub async fn tunnel(&self) -> Result<(Tunnel, impl Send + 'static), BrowserError> {
        let lease = self.lease().await?;
        let tunnel =
            Tunnel::open(&lease.live.connection).await.map_err(|error| BrowserError::Page(error.to_string()))?;
        Ok((tunnel, lease))
    }

    /// Returns when no download goes on any more, or after the limit.
    pub async fn downloads_ended(&self, limit: Duration) {
        let Ok(lease) = self.lease().await else { return };
        let ended = lease.live.shared.until(limit, |world| {
            let running = |download: &crate::Download| download.state == DownloadState::Running;
            (!world.downloads.iter().any(running)).then_some(())
        });
        // What goes on is not waited for any longer.
        let _in_time = ended.await;
    }

    /// Ends it, and returns when nothing of it is left. It is not started again.
    pub async fn close(&self) {
        self.closing.cancel();
        let (sender, receiver) = oneshot::channel();
        if self.requests.send(Request::Close(sender)).await.is_ok() {
            // The task answers when all is gone, and ends.
            let _closed = receiver.await;
        }
    }
}

impl Lease {
    /// Does something that takes turns with everything else of the kind, for at most so long.
    pub(crate) async fn run<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, ScriptError>>,
    ) -> Result<T, BrowserError> {
        let deadline = Instant::now() + limit;
        let mut died = self.died.clone();
        let work = async {
            // Whoever has waited in vain for its turn has nothing to interrupt.
            let turn = tokio::time::timeout_at(deadline, self.live.turn.acquire()).await;
            let Ok(_turn) = turn else { return None };
            let result = tokio::time::timeout_at(deadline, work).await.ok();
            if result.is_none() {
                self.live.interrupt().await;
            }
            result
        };
        let result = tokio::select! {
            result = work => result,
            why = told(&mut died) => return Err(why),
        };
        match result {
            Some(Ok(value)) => Ok(value),
            // The words of its end come a moment after the end of the connection.
            Some(Err(ScriptError::Cdp(CdpError::Closed))) => {
                let why = within(Duration::from_secs(3), told(&mut died)).await;
                Err(why.unwrap_or_else(|| BrowserError::Died("it does not answer".to_owned())))
            }
            Some(Err(error)) => Err(BrowserError::Page(error.to_string())),
            None => Err(BrowserError::TooLong),
        }
    }
}

/// Waits until a browser has ended; answers why.
async fn told(died: &mut watch::Receiver<Option<BrowserError>>) -> BrowserError {
    let why = died.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
    why.unwrap_or(BrowserError::Closed)
}

/// A browser that is up, as its keeper has it.
struct Kept {
    launched: Launched,
    live: Arc<Live>,
    usage: Arc<Usage>,
    died: watch::Sender<Option<BrowserError>>,
}

impl Kept {
    fn new(launched: Launched, options: &BrowserOptions) -> Self {
        let live = Live::new(&launched, options);
        let usage = Usage { users: AtomicUsize::new(0), last: AtomicU64::new(0), began: Instant::now() };
        Self { launched, live: Arc::new(live), usage: Arc::new(usage), died: watch::Sender::new(None) }
    }

    fn lease(&self) -> Lease {
        self.usage.users.fetch_add(1, Ordering::Relaxed);
        self.usage.touch();
        Lease { live: Arc::clone(&self.live), usage: Arc::clone(&self.usage), died: self.died.subscribe() }
    }

    async fn end(self, why: BrowserError) {
        // Whoever waits is told before the rest goes.
        self.died.send_replace(Some(why));
        self.launched.end().await;
    }
}

/// What happens next to a browser that is up.
enum Next {
    Request(Option<Request>),
    Ended,
    Idle,
    Look,
}

/// Owns the browser.
async fn keep(
    options: BrowserOptions,
    mut requests: mpsc::Receiver<Request>,
    state: watch::Sender<BrowserState>,
    closing: CancellationToken,
) {
    let mut kept: Option<Kept> = None;
    let mut failed: Option<(Instant, Failure)> = None;
    // What one had that was ended only because nobody used it.
    let mut left = StorageState::default();
    // Requests do not put it off.
    let mut look = Instant::now() + MEMORY_LOOK;
    loop {
        let next = match &mut kept {
            None => Next::Request(requests.recv().await),
            Some(kept) => {
                let idle = kept.usage.idle_at(options.idle);
                tokio::select! {
                    request = requests.recv() => Next::Request(request),
                    _ = kept.launched.process.exited() => Next::Ended,
                    () = kept.live.connection.closed() => Next::Ended,
                    () = tokio::time::sleep_until(idle.unwrap_or(look)), if idle.is_some() => Next::Idle,
                    () = tokio::time::sleep_until(look) => Next::Look,
                }
            }
        };
        match next {
            Next::Request(Some(Request::Peek(answer))) => {
                let live = kept.as_ref().map(|kept| Arc::clone(&kept.live));
                let _nobody_waits = answer.send(live);
            }
            Next::Request(Some(Request::Use(answer))) => {
                if kept.is_none() {
                    kept = start(&options, &state, &mut failed, &closing).await;
                    if let Some(kept) = &kept {
                        // Whoever closes it does not wait for that.
                        let brought = storage::bring_back(&kept.live, &left);
                        let _all_or_a_part = closing.run_until_cancelled(brought).await;
                        left = StorageState::default();
                    }
                }
                let lease = match (&kept, &failed) {
                    (Some(kept), _) => Ok(kept.lease()),
                    (None, Some((_, failure))) => Err(failure.clone().into()),
                    (None, None) => Err(BrowserError::Closed),
                };
                // Whoever asked may be gone, and then it is not used.
                let _nobody_waits = answer.send(lease);
            }
            Next::Request(Some(Request::Close(answer))) => {
                end(kept.take(), BrowserError::Closed, &state, BrowserState::Closed).await;
                let _nobody_waits = answer.send(());
                return;
            }
            Next::Request(None) => {
                return end(kept.take(), BrowserError::Closed, &state, BrowserState::Closed).await;
            }
            Next::Ended => {
                let why = match &mut kept {
                    // Its status comes a moment after its last word.
                    Some(kept) => words_of(within(EXIT, kept.launched.process.exited()).await),
                    None => String::new(),
                };
                tracing::warn!("the browser has ended: {why}");
                end(kept.take(), BrowserError::Died(why), &state, BrowserState::Idle).await;
            }
            Next::Idle => {
                let idle = kept.as_ref().and_then(|kept| kept.usage.idle_at(options.idle));
                if idle.is_some_and(|at| at <= Instant::now()) {
                    tracing::info!("the browser is ended because nobody uses it");
                    if let Some(kept) = &kept {
                        left = storage::keep(&kept.live).await;
                    }
                    let why = BrowserError::Died("nobody used it".to_owned());
                    end(kept.take(), why, &state, BrowserState::Idle).await;
                }
            }
            Next::Look => {
                look = Instant::now() + MEMORY_LOOK;
                let pid = kept.as_ref().map(|kept| kept.launched.process.pid());
                if let Some(used) = pid.map(memory).filter(|used| *used > options.memory_limit) {
                    let mib = |bytes: u64| bytes / 1024 / 1024;
                    let (used, limit) = (mib(used), mib(options.memory_limit));
                    let why = format!("it used {used} MiB of memory, more than its limit of {limit} MiB");
                    tracing::warn!("the browser is ended: {why}");
                    end(kept.take(), BrowserError::Died(why), &state, BrowserState::Idle).await;
                }
            }
        }
    }
}

async fn start(
    options: &BrowserOptions,
    state: &watch::Sender<BrowserState>,
    failed: &mut Option<(Instant, Failure)>,
    closing: &CancellationToken,
) -> Option<Kept> {
    // Many that wait do not start it many times.
    if failed.as_ref().is_some_and(|(when, _)| when.elapsed() < START_AGAIN) {
        return None;
    }
    state.send_replace(BrowserState::Starting);
    match launch::launch(options, closing).await {
        Ok(launched) => {
            *failed = None;
            state.send_replace(BrowserState::Ready {
                version: launched.version.clone(),
                pid: launched.process.pid(),
                sandboxed: launched.sandboxed,
            });
            Some(Kept::new(launched, options))
        }
        // Whoever waits for it is told that it is closed.
        Err(_) if closing.is_cancelled() => None,
        Err(failure) => {
            tracing::warn!("the browser cannot be started: {} ({})", failure.reason, failure.remedy);
            state.send_replace(BrowserState::Failed { reason: failure.reason.clone(), remedy: failure.remedy.clone() });
            *failed = Some((Instant::now(), failure));
            None
        }
    }
}

async fn end(kept: Option<Kept>, why: BrowserError, state: &watch::Sender<BrowserState>, then: BrowserState) {
    if let Some(kept) = kept {
        kept.end(why).await;
    }
    state.send_replace(then);
}

/// How a browser ended, as people say it.
fn words_of(exit: Option<Exit>) -> String {
    match exit.map(|exit| (exit.code, exit.signal)) {
        None => "it does not talk any more".to_owned(),
        Some((Some(code), _)) => format!("it ended with exit code {code}"),
        Some((None, Some(signal))) => format!("it was killed by signal {signal}"),
        Some((None, None)) => "it ended".to_owned(),
    }
}

/// The private memory of a process and of all below it, in bytes.
fn memory(pid: u32) -> u64 {
    let mut all = gloveport_sys::process::descendants(pid);
    all.push(pid);
    all.into_iter().filter_map(gloveport_sys::process::resident).map(|(_, private)| private).sum()
}

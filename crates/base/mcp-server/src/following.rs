//! A command, followed for a while.

use std::time::Duration;

use gloveport_protocol::exec::{ExecEnd, ExecEvent};
use gloveport_screen::Excerpt;
use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::computer::{Failure, Follow};

/// Bytes of output in an answer.
const SHOWN: usize = 30_000;
/// What is there already has this time to come, however short a call waits.
const GRACE: Duration = Duration::from_millis(100);
/// A program that has answered, and writes nothing for this time, waits for the next line.
const QUIET: Duration = Duration::from_millis(300);
/// Pause between two reports of progress, the bytes of output in each, and how long sending one may take.
const REPORT_PAUSE: Duration = Duration::from_millis(100);
const REPORTED: usize = 2000;
const REPORT_LIMIT: Duration = Duration::from_secs(1);

/// What a command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    Line,
    /// A line that its terminal does not show.
    Secret,
}

/// What was seen of a command.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Of what it wrote, the beginning and the end.
    output: Excerpt,
    /// Offset behind what was seen.
    pub(crate) next: u64,
    /// It waits for input.
    pub(crate) waits: Option<WaitsFor>,
    /// It has ended.
    pub(crate) end: Option<ExecEnd>,
    /// It has done something.
    pub(crate) has_begun: bool,
    /// The call was cancelled.
    pub(crate) is_cancelled: bool,
    /// Bytes that are no longer kept by the sandbox.
    pub(crate) lost: u64,
}

impl Seen {
    /// What a terminal would show.
    pub(crate) fn text(&self) -> String {
        self.output.text(|count| format!("[... {count} bytes are left out; shell_output with `offset` shows them ...]"))
    }

    /// Bytes that [`text`](Self::text) leaves out.
    pub(crate) const fn left_out(&self) -> u64 {
        self.output.left_out()
    }
}

/// Follows one command for one call.
pub(crate) struct Following<'a> {
    stop: CancellationToken,
    progress: Option<Progress>,
    stream: Box<dyn Follow + 'a>,
    seen: Seen,
    /// Bytes after which enough was seen.
    most: Option<u64>,
}

impl<'a> Following<'a> {
    /// Follows from an offset on. With `is_page`, only what fits into an answer is read.
    pub(crate) fn new(
        stream: Box<dyn Follow + 'a>,
        from: u64,
        is_page: bool,
        context: &RequestContext<RoleServer>,
    ) -> Self {
        let seen = Seen {
            output: Excerpt::new(if is_page { SHOWN } else { SHOWN / 2 }),
            next: from,
            waits: None,
            end: None,
            has_begun: false,
            is_cancelled: false,
            lost: 0,
        };
        let most = is_page.then_some(SHOWN as u64);
        Self { stop: context.ct.clone(), progress: Progress::of(context), stream, seen, most }
    }

    /// Until it ends, waits for input, or the time is over.
    pub(crate) async fn until_end(mut self, wait: Duration) -> Result<Seen, Failure> {
        let deadline = Instant::now() + wait.max(GRACE);
        while self.step(deadline).await? && self.seen.waits.is_none() {}
        Ok(self.seen)
    }

    /// Until it ends, or the time is over.
    pub(crate) async fn ended(mut self, wait: Duration) -> Result<Seen, Failure> {
        let deadline = Instant::now() + wait;
        while self.step(deadline).await? {}
        Ok(self.seen)
    }

    /// What was there before something is typed.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + GRACE;
        while self.step(deadline).await? && self.seen.waits.is_none() {}
        Ok(())
    }

    /// After a line was typed: until it ends, waits for the next one, or the time is over.
    pub(crate) async fn answered(mut self, wait: Duration) -> Result<Seen, Failure> {
        let (before, deadline) = (self.seen.next, Instant::now() + wait.max(GRACE));
        let waited = self.seen.waits.take();
        loop {
            // Whoever reads on without a pause was never seen to do anything else.
            let is_quiet = waited.is_some() && self.seen.next > before;
            let until = if is_quiet { deadline.min(Instant::now() + QUIET) } else { deadline };
            if !self.step(until).await? {
                if is_quiet && self.seen.end.is_none() && Instant::now() < deadline {
                    self.seen.waits = waited;
                }
                return Ok(self.seen);
            }
            if self.seen.waits.is_some() && self.seen.next > before {
                return Ok(self.seen);
            }
        }
    }

    /// The next thing that it does. False if there is nothing more to wait for.
    async fn step(&mut self, deadline: Instant) -> Result<bool, Failure> {
        let event = tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                self.seen.is_cancelled = true;
                return Ok(false);
            }
            event = self.stream.next() => event?,
            () = sleep_until(deadline) => return Ok(false),
        };
        let seen = &mut self.seen;
        seen.has_begun = true;
        match event {
            Some(ExecEvent::Output { offset, bytes }) => {
                let room = self.most.map_or(u64::MAX, |most| most - seen.output.kept() as u64);
                let taken = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
                let bytes = bytes.get(..taken).unwrap_or_default();
                seen.output.push(bytes);
                seen.next = offset + taken as u64;
                seen.waits = None;
                if let Some(progress) = &mut self.progress {
                    progress.wrote(bytes, seen.next).await;
                }
                return Ok(taken as u64 != room);
            }
            Some(ExecEvent::Gap { from, to }) => {
                seen.lost += to.saturating_sub(from);
                seen.next = to;
            }
            Some(ExecEvent::Waiting(waits)) => seen.waits = waits.then_some(WaitsFor::Line),
            Some(ExecEvent::WaitingForSecret) => seen.waits = Some(WaitsFor::Secret),
            Some(ExecEvent::Ended(end)) => {
                seen.end = Some(end);
                seen.waits = None;
                return Ok(false);
            }
            None => return Ok(false),
        }
        Ok(true)
    }
}

/// Tells the client what comes.
struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// What was not told yet.
    new: Excerpt,
    told: Option<Instant>,
}

impl Progress {
    /// If the client wants to know.
    fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self { peer: context.peer.clone(), token, new: Excerpt::new(REPORTED / 2), told: None })
    }

    async fn wrote(&mut self, bytes: &[u8], so_far: u64) {
        self.new.push(bytes);
        let now = Instant::now();
        if self.told.is_some_and(|told| now < told + REPORT_PAUSE) {
            return;
        }
        self.told = Some(now);
        let new = std::mem::replace(&mut self.new, Excerpt::new(REPORTED / 2));
        // Clients know progress as a number that grows.
        #[expect(clippy::cast_precision_loss, reason = "no command writes 2^53 bytes")]
        let mut report = ProgressNotificationParam::new(self.token.clone(), so_far as f64);
        report.message = Some(new.text(|count| format!("[... {count} bytes ...]")));
        // A client that is slow to read, or gone, gets the whole in the result, or nothing.
        let _told = timeout(REPORT_LIMIT, self.peer.notify_progress(report)).await;
    }
}

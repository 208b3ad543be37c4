//! What a connection is doing, and until when it may.

use std::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::Instant;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for a request.
    Idle,
    /// The head of a request arrives.
    Head,
    /// A request is worked on, or its answer is given.
    Busy,
    /// It speaks another protocol, which has its own limits on what is read.
    Upgraded,
}

/// Shared by the stream, which sees bytes, and the service, which sees requests. Both run in the connection's task, so
/// the atomics only satisfy the types.
#[derive(Debug)]
pub(super) struct Activity {
    base: Instant,
    idle_timeout: Duration,
    phase: AtomicU8,
    /// End of the phase in microseconds after `base`; without a meaning while the connection is busy.
    deadline: AtomicU64,
    stopping: AtomicBool,
}

impl Activity {
    pub(super) fn new(idle_timeout: Duration) -> Self {
        let activity = Self {
            base: Instant::now(),
            idle_timeout,
            phase: AtomicU8::new(0),
            deadline: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        };
        activity.idle();
        activity
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Idle,
            1 => Phase::Head,
            2 => Phase::Busy,
            _ => Phase::Upgraded,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.base + Duration::from_micros(self.deadline.load(Relaxed))
    }

    /// The connection waits for a request from now on.
    pub(super) fn idle(&self) {
        self.enter(0, self.idle_timeout);
    }

    /// The head of a request arrives from now on.
    pub(super) fn head(&self, limit: Duration) {
        self.enter(1, limit);
    }

    /// A request is complete enough to be worked on.
    pub(super) fn busy(&self) {
        self.phase.store(2, Relaxed);
    }

    /// No request comes any more.
    pub(super) fn upgraded(&self) {
        self.phase.store(3, Relaxed);
    }

    fn enter(&self, phase: u8, limit: Duration) {
        if self.phase() == Phase::Upgraded {
            return;
        }
        let end = self.base.elapsed().saturating_add(limit);
        self.deadline.store(u64::try_from(end.as_micros()).unwrap_or(u64::MAX >> 16), Relaxed);
        self.phase.store(phase, Relaxed);
    }

    /// No further request is waited for.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}

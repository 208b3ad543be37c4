//! Something that no event tells: it is looked at again and again until it is certain.

use std::time::Duration;

use tokio::time::Instant;

/// Pause between looks at something doubtful.
pub(super) const VERIFY_PAUSE: Duration = Duration::from_micros(500);
/// What holds for this long, with nothing new from the shell, is certain: its last output is on its way for a moment,
/// and the longer the busier the machine is.
const CERTAIN_AFTER: Duration = Duration::from_millis(10);

/// Something that has to be looked at again and again until it is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doubt {
    since: Instant,
    next: Instant,
    /// Since when it holds, at every look.
    holds_since: Option<Instant>,
    certain_after: Duration,
}

impl Doubt {
    /// A doubt that is looked at for the first time after a pause.
    pub(super) fn looked_at_after(pause: Duration, now: Instant) -> Self {
        Self { since: now, next: now + pause, holds_since: None, certain_after: CERTAIN_AFTER }
    }

    /// The same one, certain only when it has held for this long.
    pub(super) fn certain_after(self, certain_after: Duration) -> Self {
        Self { certain_after, ..self }
    }

    /// When to look.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Whether it is time to look; it is looked at again after a pause.
    pub(super) fn due(&mut self, now: Instant) -> bool {
        let due = self.next <= now;
        if due {
            self.next = now + VERIFY_PAUSE;
        }
        due
    }

    /// Whether it is certain by now.
    pub(super) fn is_certain(&mut self, now: Instant, holds: bool) -> bool {
        let since = holds.then(|| *self.holds_since.get_or_insert(now));
        self.holds_since = since;
        since.is_some_and(|since| now.duration_since(since) >= self.certain_after)
    }

    /// Something happened that speaks against it: it has to hold from the beginning.
    pub(super) fn begin_again(&mut self) {
        self.holds_since = None;
    }

    /// It cannot be so for now: it is doubted anew from this moment on.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.since = now;
        self.holds_since = None;
    }

    /// It does not become certain any more.
    pub(super) fn is_over(&self, now: Instant, limit: Duration) -> bool {
        now.duration_since(self.since) >= limit
    }
}

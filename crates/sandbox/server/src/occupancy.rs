//! When a server was used last.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Paths whose requests are about the server's state, and no use of it.
const ABOUT: [&str; 5] = ["/alive", "/server_info", "/ready", "/metrics", "/v1/sandbox"];

/// When a server was used last. Requests about its state do not count.
#[derive(Debug)]
pub struct Occupancy {
    base: Instant,
    /// How long nobody may use it before it ends, if it ends so.
    limit: Option<Duration>,
    /// Requests and streams that are not over.
    open: AtomicUsize,
    /// When the last one was over, in microseconds after `base`.
    last: AtomicU64,
}

impl Default for Occupancy {
    fn default() -> Self {
        Self::limited(None)
    }
}

impl Occupancy {
    /// That of a server that ends when nobody has used it for so long. Whoever has both ends it.
    #[must_use]
    pub fn limited(limit: Option<Duration>) -> Self {
        Self { base: Instant::now(), limit, open: AtomicUsize::new(0), last: AtomicU64::new(0) }
    }

    /// How long nobody may use the server before it ends, if it ends so.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Time since the server was used last, or since it was made; zero while it is used.
    pub fn idle(&self) -> Duration {
        if self.open.load(Relaxed) > 0 {
            return Duration::ZERO;
        }
        self.base.elapsed().saturating_sub(Duration::from_micros(self.last.load(Relaxed)))
    }

    /// It is used until the value is dropped.
    pub fn occupy(self: &Arc<Self>) -> Occupied {
        self.open.fetch_add(1, Relaxed);
        Occupied(Arc::clone(self))
    }

    /// It is used by a request of this path, unless that is only about its state.
    pub(crate) fn occupy_for(self: &Arc<Self>, path: &str) -> Option<Occupied> {
        (!ABOUT.contains(&path)).then(|| self.occupy())
    }

    /// Counts as a use that is over at once.
    pub fn touch(&self) {
        let now = u64::try_from(self.base.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last.fetch_max(now, Relaxed);
    }
}

/// Something that uses a server.
#[derive(Debug)]
pub struct Occupied(Arc<Occupancy>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.touch();
        self.0.open.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_idle_from_the_end_of_its_last_use_on() {
        let occupancy = Arc::new(Occupancy::default());
        let (one, other) = (occupancy.occupy_for("/execute_action"), occupancy.occupy_for("/v1/exec"));
        drop(one);
        assert_eq!(occupancy.idle(), Duration::ZERO);
        let ended = Instant::now();
        drop(other);
        // It counts in whole microseconds.
        assert!(occupancy.idle() <= ended.elapsed() + Duration::from_micros(1));
        for path in ABOUT {
            assert!(occupancy.occupy_for(path).is_none(), "{path}");
        }
    }
}

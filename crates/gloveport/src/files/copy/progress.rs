//! How far a copy is, for people.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A copy that takes no longer shows nothing.
const SILENCE: Duration = Duration::from_secs(1);

/// A bar on the terminal. Clones are the same bar.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    /// Whether it is still hidden and may be shown.
    waits: Arc<AtomicBool>,
}

impl Progress {
    pub(crate) fn new(visible: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bytes} ({bytes_per_sec}) {elapsed}") {
            bar.set_style(style);
        }
        Self { bar, began: Instant::now(), waits: Arc::new(AtomicBool::new(visible)) }
    }

    /// How many bytes there will be.
    pub(crate) fn expect(&self, bytes: u64) {
        self.bar.set_length(bytes);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} ({bytes_per_sec}) {eta} left") {
            self.bar.set_style(style);
        }
    }

    /// So many bytes more are copied.
    pub(crate) fn add(&self, bytes: usize) {
        if self.waits.load(Relaxed) && self.began.elapsed() > SILENCE && self.waits.swap(false, Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        }
        self.bar.inc(bytes as u64);
    }

    /// Everything is copied.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

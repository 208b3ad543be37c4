//! What a build says, for people.

use std::time::{Duration, Instant};

use gloveport_image::Progress;
use indicatif::ProgressBar;

use crate::{
    output::{moving_line, tell},
    visible,
};

/// Most of a line that is shown on a terminal.
const WIDTH: usize = 100;

/// One line that moves on a terminal, all lines elsewhere; on standard error, as standard output is for the name.
pub(super) struct Report {
    bar: Option<ProgressBar>,
    quiet: bool,
    began: Instant,
}

impl Report {
    pub(super) fn new(quiet: bool) -> Self {
        let bar = if quiet { None } else { moving_line() };
        Self { bar, quiet, began: Instant::now() }
    }

    pub(super) fn progress(&self) -> Progress {
        match (&self.bar, self.quiet) {
            (_, true) => Progress::silent(),
            (Some(bar), false) => {
                let bar = bar.clone();
                Progress::to(move |line| {
                    bar.set_message(visible::one_line(line).chars().take(WIDTH).collect::<String>());
                })
            }
            (None, false) => Progress::to(tell),
        }
    }

    /// The line is gone. Answers how long it took.
    pub(super) fn finish(&self) -> Duration {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.began.elapsed()
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.finish();
    }
}

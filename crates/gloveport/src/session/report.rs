//! How far the start of a session is, for people.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gloveport_provider::{Phase, PhaseTiming, Progress};
use indicatif::ProgressBar;

use crate::{
    output::{moving_line, tell},
    visible,
};

/// A line on the terminal while something is being made, and one that tells how long it took.
pub(super) struct Report {
    bar: Option<ProgressBar>,
    quiet: bool,
    began: Instant,
}

impl Report {
    /// Tells nothing if `quiet`. Only a terminal gets a line that moves.
    pub(super) fn new(quiet: bool) -> Self {
        let bar = if quiet { None } else { moving_line() };
        Self { bar, quiet, began: Instant::now() }
    }

    /// What the provider tells its phases to.
    pub(super) fn progress(&self) -> Progress {
        let Some(bar) = self.bar.clone() else { return Progress::silent() };
        Progress::to(Arc::new(move |report| {
            let detail = if report.detail.is_empty() {
                String::new()
            } else {
                format!(": {}", visible::one_line(report.detail))
            };
            bar.set_message(format!("{}{detail}", report.phase.text()));
        }))
    }

    /// The line is gone.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// The line is gone, and what took how long is told.
    pub(super) fn finish(&self, timings: &[PhaseTiming]) {
        self.clear();
        if !self.quiet {
            // Standard output is for the id.
            tell(&summary(self.began.elapsed(), timings));
        }
    }
}

fn summary(whole: Duration, timings: &[PhaseTiming]) -> String {
    let is_alive = timings.last().is_some_and(|timing| timing.phase == Phase::Alive);
    let parts: Vec<String> = timings
        .iter()
        .filter(|timing| timing.phase != Phase::Alive && !timing.took.is_zero())
        .map(|timing| format!("{} {}", timing.phase.text(), time(timing.took)))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{} after {}{parts}", if is_alive { "ready" } else { "made" }, time(whole))
}

/// Milliseconds below a second, else seconds.
fn time(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_tells_each_phase_with_its_time() {
        let timing = |phase, began, took| PhaseTiming {
            phase,
            began: Duration::from_millis(began),
            took: Duration::from_millis(took),
        };
        let mut timings = vec![timing(Phase::Creating, 0, 12), timing(Phase::Waiting, 12, 1_260)];
        let whole = Duration::from_millis(1_272);
        assert_eq!(
            summary(whole, &timings),
            "made after 1.3 s: making the sandbox 12 ms, waiting for its server 1.3 s"
        );
        timings.push(timing(Phase::Alive, 1_272, 1));
        assert_eq!(
            summary(whole, &timings),
            "ready after 1.3 s: making the sandbox 12 ms, waiting for its server 1.3 s"
        );
        assert_eq!(summary(Duration::from_millis(3), &[]), "made after 3 ms");
    }
}

//! One command: what was sent for it, and when it is complete.
//!
//! The shell shows one prompt (its own, or the one that asks for more of an unfinished command) for each line that it
//! reads. So the number of prompts that must come is known when a text was typed to the shell, and the last of them is
//! the end of the command. It is not known when a program may have read a part of what was typed: then the shell must
//! also be seen waiting for somebody to type.

use std::time::Duration;

use tempfile::TempPath;
use tokio::time::Instant;

use super::{PROBE_PAUSE, REPLACED_PAUSE, SAMPLE_PAUSE};
use crate::{probe::Meter, session::Usage};

/// Pauses between looks at a shell whose prompt may not be the last one.
const VERIFY_PAUSE: Duration = Duration::from_micros(500);
/// A shell that does not let us see what it waits for is believed after this long at its prompt.
const VERIFY_LIMIT: Duration = Duration::from_millis(300);

#[derive(Debug, Default)]
pub(crate) struct Command {
    text: String,
    /// Prompts that must come until all that was typed is read.
    expected: i64,
    /// A program may have read some of it.
    uncertain: bool,
    /// The shell waits for more of an unfinished command.
    continuation: bool,
    /// A prompt came that may be the last one, first seen at this time.
    verifying: Option<(Instant, Instant)>,
    probe_at: Option<Instant>,
    replaced_at: Option<Instant>,
    sample_at: Option<Instant>,
    meter: Option<Meter>,
    /// The text, when it is handed over in a file.
    file: Option<TempPath>,
    /// Attempts to install the lost hook again.
    rearmed: u32,
    /// The text is known to be complete, so the shell does not wait for more of it.
    whole: bool,
    /// The shell replaced itself and was taught to report: what it showed until then is of no interest.
    taught: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Complete,
    Running,
}

impl Command {
    /// A text that was typed to the shell at its prompt.
    pub(crate) fn typed(text: &str, lines: usize, whole: bool, file: Option<TempPath>) -> Self {
        Self {
            text: text.to_owned(),
            expected: i64::try_from(lines).unwrap_or(i64::MAX),
            file,
            whole,
            replaced_at: Some(Instant::now() + REPLACED_PAUSE),
            ..Self::default()
        }
    }

    /// Watches the command: its memory, and whether it waits for input.
    pub(crate) fn watch(&mut self, meter: Option<Meter>) {
        let now = Instant::now();
        self.probe_at = Some(now + PROBE_PAUSE);
        if meter.is_some() {
            self.sample_at = Some(now + SAMPLE_PAUSE);
            self.meter = meter;
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The shell waits for more of an unfinished command.
    pub(crate) fn at_continuation(&self) -> bool {
        self.continuation && self.expected <= 0
    }

    /// Lines were typed while the command runs.
    pub(crate) fn input_typed(&mut self, lines: usize) {
        if self.at_continuation() {
            self.expected += i64::try_from(lines).unwrap_or(0);
        } else {
            self.uncertain = true;
        }
    }

    /// A key was typed that interrupts or stops the program; the kernel has thrown away what was not read yet.
    pub(crate) fn interrupted(&mut self) {
        self.expected = 1;
        self.uncertain = false;
    }

    /// The shell asks for more.
    pub(crate) fn continued(&mut self) {
        self.expected -= 1;
        self.continuation = true;
        if self.expected <= 0 && self.probe_at.is_some() {
            self.probe_at = Some(Instant::now());
        }
    }

    /// The shell is at a prompt of its own.
    pub(crate) fn prompted(&mut self) -> Verdict {
        self.expected -= 1;
        self.continuation = false;
        if self.expected <= 0 && !self.uncertain {
            return Verdict::Complete;
        }
        let now = Instant::now();
        self.verifying = Some((now, now));
        Verdict::Running
    }

    /// Output after a prompt: something runs again.
    pub(crate) fn output_seen(&mut self) {
        if self.probe_at.is_some() {
            self.probe_at = Some(Instant::now() + PROBE_PAUSE);
        }
    }

    /// Whether the last prompt was the end, for a command of which that is uncertain.
    pub(crate) fn verdict(&mut self, now: Instant, shell_waits: impl Fn() -> bool) -> Verdict {
        let Some((since, next)) = &mut self.verifying else { return Verdict::Running };
        if *next > now {
            return Verdict::Running;
        }
        if shell_waits() || now.duration_since(*since) >= VERIFY_LIMIT {
            return Verdict::Complete;
        }
        *next = now + VERIFY_PAUSE;
        Verdict::Running
    }

    pub(crate) fn next_look(&self) -> Option<Instant> {
        let verifying = self.verifying.map(|(_, next)| next);
        [verifying, self.probe_at, self.replaced_at, self.sample_at].into_iter().flatten().min()
    }

    pub(crate) fn look_due(&self, now: Instant) -> bool {
        self.next_look().is_some_and(|next| next <= now)
    }

    /// Whether it is time to look for a program that waits for input.
    pub(crate) fn probe_due(&mut self, now: Instant) -> bool {
        due(&mut self.probe_at, now, PROBE_PAUSE * 2)
    }

    /// Whether it is time to look for a shell that replaced itself.
    pub(crate) fn replacement_due(&mut self, now: Instant) -> bool {
        due(&mut self.replaced_at, now, REPLACED_PAUSE * 5)
    }

    pub(crate) fn sample(&mut self, now: Instant) {
        if due(&mut self.sample_at, now, SAMPLE_PAUSE) {
            if let Some(meter) = &mut self.meter {
                meter.sample();
            }
        }
    }

    /// Whether the hook may be installed once more.
    pub(crate) fn may_rearm(&mut self) -> bool {
        self.rearmed += 1;
        self.rearmed <= 2
    }

    /// The shell that took the place of ours was taught to report.
    pub(crate) fn taught(&mut self, file: TempPath) {
        self.file = Some(file);
        self.taught = true;
        self.expected = 1;
        self.uncertain = false;
    }

    /// Whether a shell that reads its next command and did not report can only have lost its hook.
    pub(crate) fn must_be_over(&self) -> bool {
        self.whole && !self.uncertain && !self.taught
    }

    pub(crate) fn was_taught(&self) -> bool {
        self.taught
    }

    /// Ends the command and tells what it used.
    pub(crate) fn finish(&mut self) -> Option<Usage> {
        std::mem::take(self).meter.map(Meter::finish)
    }
}

/// Whether a time is reached; it is then set anew.
fn due(at: &mut Option<Instant>, now: Instant, pause: Duration) -> bool {
    if at.is_some_and(|at| at <= now) {
        *at = Some(now + pause);
        return true;
    }
    false
}

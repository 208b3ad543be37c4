//! When the processes of a running command are looked at, whatever stage it is in, and what it uses.

use std::time::Duration;

use tokio::time::Instant;

use crate::{probe::Meter, request::Usage};

/// Pause between looks at a quiet foreground program when somebody wants to know whether it waits for input.
const PROBE_PAUSE: Duration = Duration::from_millis(40);
/// Pause before a quiet shell is examined for having replaced itself by another program.
const REPLACED_PAUSE: Duration = Duration::from_millis(200);
/// Pause before the processes of a quiet command are searched for a shell at its prompt.
const NESTED_PAUSE: Duration = Duration::from_millis(80);
/// Pause between samples of memory.
const SAMPLE_PAUSE: Duration = Duration::from_millis(50);

/// The looks at a command.
#[derive(Debug)]
pub(super) struct Watch {
    probe_at: Option<Instant>,
    replaced_at: Instant,
    nested_at: Instant,
    meter: Option<(Meter, Instant)>,
}

impl Watch {
    pub(super) fn begin() -> Self {
        let now = Instant::now();
        Self { probe_at: None, replaced_at: now + REPLACED_PAUSE, nested_at: now + NESTED_PAUSE, meter: None }
    }

    /// Somebody wants to know whether the program waits for input, and perhaps what it uses.
    pub(super) fn closely(&mut self, meter: Option<Meter>) {
        let now = Instant::now();
        self.probe_at = Some(now + PROBE_PAUSE);
        if let Some(meter) = meter {
            self.meter = Some((meter, now + SAMPLE_PAUSE));
        }
    }

    /// Something new was shown: only what is quiet is looked at.
    pub(super) fn output_seen(&mut self) {
        let now = Instant::now();
        if self.probe_at.is_some() {
            self.probe_at = Some(now + PROBE_PAUSE);
        }
        self.nested_at = now + NESTED_PAUSE;
    }

    /// When to look next for a program that waits for input, if somebody wants to know.
    pub(super) fn probe_at(&mut self, at: Instant) {
        if let Some(probe_at) = &mut self.probe_at {
            *probe_at = at;
        }
    }

    /// When to look.
    pub(super) fn next_look(&self) -> Instant {
        let next = self.replaced_at.min(self.nested_at);
        let sample = self.meter.as_ref().map(|(_, at)| *at);
        self.probe_at.into_iter().chain(sample).fold(next, Instant::min)
    }

    /// Whether it is time to look for a program that waits for input.
    pub(super) fn probe_due(&mut self, now: Instant) -> bool {
        self.probe_at.as_mut().is_some_and(|at| due(at, now, PROBE_PAUSE * 2))
    }

    /// Whether it is time to look for a shell that replaced itself.
    pub(super) fn replacement_due(&mut self, now: Instant) -> bool {
        due(&mut self.replaced_at, now, REPLACED_PAUSE * 5)
    }

    /// Whether it is time to look for a shell inside of the one that runs the command.
    pub(super) fn nested_due(&mut self, now: Instant) -> bool {
        due(&mut self.nested_at, now, NESTED_PAUSE * 5)
    }

    /// Takes a sample of the memory if it is time to.
    pub(super) fn sample(&mut self, now: Instant) {
        if let Some((meter, at)) = &mut self.meter
            && due(at, now, SAMPLE_PAUSE)
        {
            meter.sample();
        }
    }

    /// What the command used, if that is of interest.
    pub(super) fn finish(self) -> Option<Usage> {
        self.meter.map(|(meter, _)| meter.finish())
    }
}

/// Whether a time is reached; it is then set anew.
fn due(at: &mut Instant, now: Instant, pause: Duration) -> bool {
    let due = *at <= now;
    if due {
        *at = now + pause;
    }
    due
}

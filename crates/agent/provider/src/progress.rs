//! How far the making of a sandbox is.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

/// A step on the way to a sandbox whose server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// An existing one is looked for.
    Finding,
    /// The image is pulled or built (`STATUS$BUILDING_RUNTIME`).
    PreparingImage,
    /// The engine makes it (`STATUS$STARTING_RUNTIME`).
    Creating,
    /// A paused one is resumed (`STATUS$STARTING_RUNTIME`).
    Resuming,
    /// The engine runs it; only engines tell this that start it apart from making it (`STATUS$RUNTIME_STARTED`).
    Started,
    /// Its server is waited for (`STATUS$STARTING_RUNTIME`).
    Waiting,
    /// Its server answers.
    Alive,
}

impl Phase {
    /// What is being done, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Finding => "looking for the sandbox",
            Self::PreparingImage => "preparing the image",
            Self::Creating => "making the sandbox",
            Self::Resuming => "resuming the sandbox",
            Self::Started => "the sandbox runs",
            Self::Waiting => "waiting for its server",
            Self::Alive => "ready",
        }
    }
}

/// What a callback is told.
#[derive(Clone, Copy, Debug)]
pub struct PhaseReport<'a> {
    /// The phase that begins.
    pub phase: Phase,
    /// Time since the beginning of all.
    pub elapsed: Duration,
    /// More for people; may be empty.
    pub detail: &'a str,
}

/// How long a phase took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseTiming {
    /// The phase.
    pub phase: Phase,
    /// From the beginning of all to its own.
    pub began: Duration,
    /// Its length; that of the latest one grows.
    pub took: Duration,
}

/// Is told each phase as it begins. It must not block.
pub type ProgressCallback = Arc<dyn Fn(&PhaseReport<'_>) + Send + Sync>;

/// Most phases that are remembered; an engine may repeat some.
const MOST: usize = 256;

/// Tells a callback how far something is, and remembers how long each phase took.
pub struct Progress {
    began: Instant,
    callback: Option<ProgressCallback>,
    phases: Mutex<Vec<(Phase, Duration)>>,
}

impl Progress {
    /// Tells this callback.
    pub fn to(callback: ProgressCallback) -> Self {
        Self { began: Instant::now(), callback: Some(callback), phases: Mutex::default() }
    }

    /// Tells nobody, and only remembers.
    pub fn silent() -> Self {
        Self { began: Instant::now(), callback: None, phases: Mutex::default() }
    }

    /// A phase begins; the one before has ended.
    pub fn enter(&self, phase: Phase, detail: &str) {
        let elapsed = self.began.elapsed();
        {
            let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
            if phases.len() < MOST {
                phases.push((phase, elapsed));
            }
        }
        tracing::debug!(?phase, ?elapsed, detail, "sandbox");
        if let Some(callback) = &self.callback {
            callback(&PhaseReport { phase, elapsed, detail });
        }
    }

    /// The phases so far, in their order.
    pub fn timings(&self) -> Vec<PhaseTiming> {
        let phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ends = phases.iter().skip(1).map(|(_, began)| *began).chain([self.began.elapsed()]);
        phases
            .iter()
            .zip(ends)
            .map(|((phase, began), end)| PhaseTiming { phase: *phase, began: *began, took: end.saturating_sub(*began) })
            .collect()
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("phases", &self.timings()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_is_told_once_and_ends_where_the_next_begins() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let progress = {
            let told = Arc::clone(&told);
            Progress::to(Arc::new(move |report| told.lock().unwrap().push((report.phase, report.detail.to_owned()))))
        };
        progress.enter(Phase::Creating, "a");
        progress.enter(Phase::Waiting, "");
        progress.enter(Phase::Alive, "");
        let expected = [(Phase::Creating, "a"), (Phase::Waiting, ""), (Phase::Alive, "")];
        assert_eq!(*told.lock().unwrap(), expected.map(|(phase, detail)| (phase, detail.to_owned())));
        let timings = progress.timings();
        assert_eq!(timings.iter().map(|timing| timing.phase).collect::<Vec<_>>(), expected.map(|(phase, _)| phase));
        for pair in timings.windows(2) {
            assert_eq!(pair[0].began + pair[0].took, pair[1].began);
        }
    }
}

//! Times of one thing done many times.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Times of one thing done many times.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sample {
    /// Median in milliseconds.
    pub(crate) p50_ms: f64,
    /// 99th percentile in milliseconds.
    pub(crate) p99_ms: f64,
    /// How many.
    pub(crate) count: usize,
}

impl Sample {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
        };
        Self { p50_ms: at(50), p99_ms: at(99), count: times.len() }
    }
}

pub(crate) fn repeat(count: usize, mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Sample> {
    let mut times = Vec::with_capacity(count);
    for _round in 0..count {
        let began = Instant::now();
        work()?;
        times.push(began.elapsed());
    }
    Ok(Sample::new(times))
}

/// The same done with two things in turn, so that what the machine does besides meets both.
pub(crate) fn in_turn<T>(
    one: &mut T,
    other: &mut T,
    count: usize,
    mut work: impl FnMut(&mut T) -> anyhow::Result<()>,
) -> anyhow::Result<(Sample, Sample)> {
    let (mut first, mut second) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for _round in 0..count {
        for (thing, times) in [(&mut *one, &mut first), (&mut *other, &mut second)] {
            let began = Instant::now();
            work(thing)?;
            times.push(began.elapsed());
        }
    }
    Ok((Sample::new(first), Sample::new(second)))
}

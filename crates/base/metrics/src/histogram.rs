//! Durations, by how many are below each of some bounds.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::{Text, float};

/// A histogram of durations.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    buckets: Vec<AtomicU64>,
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    /// Nothing yet. `bounds` are the upper bounds of the buckets in seconds, in ascending order.
    pub fn new(bounds: &'static [f64]) -> Self {
        let buckets = bounds.iter().map(|_| AtomicU64::default()).collect();
        Self { bounds, buckets, count: AtomicU64::default(), micros: AtomicU64::default() }
    }

    /// Counts a duration.
    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let at = self.bounds.iter().position(|bound| seconds <= *bound);
        if let Some(bucket) = at.and_then(|at| self.buckets.get(at)) {
            bucket.fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.micros.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Writes its samples with these labels, unless there was nothing. The header of `name` is written before.
    pub fn write(&self, text: &mut Text, name: &str, labels: &str) {
        let count = self.count();
        if count == 0 {
            return;
        }
        let (bucket, comma) = (format!("{name}_bucket"), if labels.is_empty() { "" } else { "," });
        let mut below = 0;
        for (bound, counter) in self.bounds.iter().zip(&self.buckets) {
            below += counter.load(Relaxed);
            text.sample(&bucket, &format!("{labels}{comma}le=\"{bound}\""), below);
        }
        text.sample(&bucket, &format!("{labels}{comma}le=\"+Inf\""), count);
        text.sample(&format!("{name}_sum"), labels, float(self.micros.load(Relaxed)) / 1e6);
        text.sample(&format!("{name}_count"), labels, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKETS: [f64; 4] = [0.000_5, 0.001, 0.05, 600.0];

    #[test]
    fn buckets_count_everything_below_them() {
        let histogram = Histogram::new(&BUCKETS);
        let written = |labels: &str| {
            let mut text = Text::default();
            histogram.write(&mut text, "t", labels);
            text.into_string()
        };
        assert_eq!(written(""), "");
        for millis in [1, 20, 20_000, 700_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let expected = [
            "gloveport_t_bucket{kind=\"run\",le=\"0.0005\"} 0",
            "gloveport_t_bucket{kind=\"run\",le=\"0.001\"} 1",
            "gloveport_t_bucket{kind=\"run\",le=\"0.05\"} 2",
            "gloveport_t_bucket{kind=\"run\",le=\"600\"} 3",
            "gloveport_t_bucket{kind=\"run\",le=\"+Inf\"} 4",
            "gloveport_t_sum{kind=\"run\"} 720.021",
            "gloveport_t_count{kind=\"run\"} 4",
        ];
        assert_eq!(written("kind=\"run\"").lines().collect::<Vec<_>>(), expected);
        assert!(written("").contains("gloveport_t_bucket{le=\"0.05\"} 2\n"));
    }
}

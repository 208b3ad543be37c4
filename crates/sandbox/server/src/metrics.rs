//! What is counted, and its text form for Prometheus.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use http::StatusCode;

use crate::usage::float;

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];
/// Kinds of actions that have a histogram of their own; the others share one.
const KINDS: [&str; 8] = ["run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "other"];
/// Groups of routes.
const GROUPS: [&str; 6] = ["v0", "v1", "health", "docs", "plugins", "unknown"];

/// The group that a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    V0,
    V1,
    Health,
    Docs,
    Plugins,
    Unknown,
}

impl Group {
    pub(crate) fn of(path: &str) -> Self {
        match path {
            "/execute_action"
            | "/alive"
            | "/server_info"
            | "/list_files"
            | "/upload_file"
            | "/download_files"
            | "/update_mcp_server"
            | "/vscode/connection_token" => Self::V0,
            "/ready" | "/metrics" => Self::Health,
            "/docs" | "/openapi.json" => Self::Docs,
            path if path.starts_with("/mcp/") => Self::V0,
            path if path.starts_with("/v1/") => Self::V1,
            path if path.starts_with("/plugins/") => Self::Plugins,
            _ => Self::Unknown,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::V0 => 0,
            Self::V1 => 1,
            Self::Health => 2,
            Self::Docs => 3,
            Self::Plugins => 4,
            Self::Unknown => 5,
        }
    }
}

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By group and by the first digit of the status.
    requests: [[AtomicU64; 5]; 6],
    durations: [Histogram; 8],
    actions_in_flight: AtomicUsize,
    actions_abandoned: AtomicU64,
    pub(crate) requests_in_flight: AtomicUsize,
    pub(crate) connections: AtomicUsize,
    pub(crate) connections_refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

/// An action that is executed. Dropped without an end it counts as abandoned by its client.
#[derive(Debug)]
pub(crate) struct ActionTimer<'a> {
    metrics: &'a Metrics,
    kind: &'static str,
    began: Instant,
    ended: bool,
}

impl ActionTimer<'_> {
    pub(crate) fn end(mut self) {
        self.ended = true;
        let index = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or(KINDS.len() - 1);
        if let Some(histogram) = self.metrics.durations.get(index) {
            histogram.observe(self.began.elapsed());
        }
    }
}

impl Drop for ActionTimer<'_> {
    fn drop(&mut self) {
        self.metrics.actions_in_flight.fetch_sub(1, Relaxed);
        if !self.ended {
            self.metrics.actions_abandoned.fetch_add(1, Relaxed);
        }
    }
}

impl Histogram {
    fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(bucket) = BUCKETS.iter().position(|bound| seconds <= *bound).and_then(|at| self.buckets.get(at)) {
            bucket.fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.micros.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }
}

impl Metrics {
    /// Counts one answer.
    pub(crate) fn answered(&self, group: Group, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.requests.get(group.index()).and_then(|group| group.get(class)) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Begins to measure an action.
    pub(crate) fn action(&self, kind: &'static str) -> ActionTimer<'_> {
        self.actions_in_flight.fetch_add(1, Relaxed);
        ActionTimer { metrics: self, kind, began: Instant::now(), ended: false }
    }

    /// Writes the counters of this registry.
    pub(crate) fn write(&self, text: &mut Text) {
        text.header("requests_total", "counter", "Answers by route group and status class.");
        for (group, classes) in GROUPS.iter().zip(&self.requests) {
            for (class, counter) in (1..).zip(classes) {
                let count = counter.load(Relaxed);
                if count > 0 {
                    let labels = format!("group=\"{group}\",status=\"{class}xx\"");
                    text.sample("requests_total", &labels, float(count));
                }
            }
        }
        text.header("action_duration_seconds", "histogram", "Time from an action to its observation, by kind.");
        for (kind, histogram) in KINDS.iter().zip(&self.durations) {
            histogram.write(text, kind);
        }
        text.gauge("actions_in_flight", "Actions that are executed or wait.", self.actions_in_flight.load(Relaxed));
        let abandoned = self.actions_abandoned.load(Relaxed);
        text.counter("actions_abandoned_total", "Actions whose client went away before their end.", float(abandoned));
        text.gauge("requests_in_flight", "Requests that are worked on.", self.requests_in_flight.load(Relaxed));
        text.gauge("connections_open", "Open connections.", self.connections.load(Relaxed));
        let refused = self.connections_refused.load(Relaxed);
        text.counter("connections_refused_total", "Connections beyond the bound.", float(refused));
    }
}

impl Histogram {
    fn write(&self, text: &mut Text, kind: &str) {
        let count = self.count.load(Relaxed);
        if count == 0 {
            return;
        }
        let mut below = 0;
        for (bound, bucket) in BUCKETS.iter().zip(&self.buckets) {
            below += bucket.load(Relaxed);
            let labels = format!("kind=\"{kind}\",le=\"{bound}\"");
            text.sample("action_duration_seconds_bucket", &labels, float(below));
        }
        text.sample("action_duration_seconds_bucket", &format!("kind=\"{kind}\",le=\"+Inf\""), float(count));
        let labels = format!("kind=\"{kind}\"");
        text.sample("action_duration_seconds_sum", &labels, float(self.micros.load(Relaxed)) / 1e6);
        text.sample("action_duration_seconds_count", &labels, float(count));
    }
}

/// The text form.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl Text {
    fn header(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a `String` cannot fail.
        let _written = write!(self.0, "# HELP gloveport_{name} {help}\n# TYPE gloveport_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: f64) {
        let _written = if labels.is_empty() {
            writeln!(self.0, "gloveport_{name} {value}")
        } else {
            writeln!(self.0, "gloveport_{name}{{{labels}}} {value}")
        };
    }

    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: usize) {
        self.measure(name, help, float(value as u64));
    }

    pub(crate) fn measure(&mut self, name: &str, help: &str, value: f64) {
        self.header(name, "gauge", help);
        self.sample(name, "", value);
    }

    pub(crate) fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.header(name, "counter", help);
        self.sample(name, "", value);
    }

    pub(crate) fn info(&mut self, name: &str, help: &str, labels: &str) {
        self.header(name, "gauge", help);
        self.sample(name, labels, 1.0);
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_everything_below_them() {
        let metrics = Metrics::default();
        for millis in [1, 20, 20_000, 700_000] {
            metrics.durations[0].observe(Duration::from_millis(millis));
        }
        let mut text = Text::default();
        metrics.durations[0].write(&mut text, "run");
        let text = text.into_string();
        for line in [
            "gloveport_action_duration_seconds_bucket{kind=\"run\",le=\"0.0005\"} 0",
            "gloveport_action_duration_seconds_bucket{kind=\"run\",le=\"0.001\"} 1",
            "gloveport_action_duration_seconds_bucket{kind=\"run\",le=\"0.05\"} 2",
            "gloveport_action_duration_seconds_bucket{kind=\"run\",le=\"600\"} 3",
            "gloveport_action_duration_seconds_bucket{kind=\"run\",le=\"+Inf\"} 4",
            "gloveport_action_duration_seconds_sum{kind=\"run\"} 720.021",
            "gloveport_action_duration_seconds_count{kind=\"run\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn every_route_belongs_to_a_group() {
        for route in crate::router::routes() {
            assert_ne!(Group::of(route.path), Group::Unknown, "{}", route.path);
        }
    }

    #[test]
    fn an_action_without_an_end_counts_as_abandoned() {
        let metrics = Metrics::default();
        drop(metrics.action("run"));
        metrics.action("run").end();
        assert_eq!(metrics.actions_abandoned.load(Relaxed), 1);
        assert_eq!(metrics.durations[0].count.load(Relaxed), 1);
        assert_eq!(metrics.actions_in_flight.load(Relaxed), 0);
    }
}

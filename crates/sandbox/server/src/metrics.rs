//! What is counted.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

use gloveport_metrics::{Histogram, Text, float};
use http::StatusCode;

use crate::{agent_server, swerex::face};

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];
/// Kinds of actions that have a histogram of their own; the others share one.
const KINDS: [&str; 8] = ["run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "other"];
/// Groups of routes.
const GROUPS: [&str; 8] = ["v0", "v1", "health", "docs", "plugins", "swerex", "agent_server", "unknown"];

/// The group that a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    V0,
    V1,
    Health,
    Docs,
    Plugins,
    SweRex,
    AgentServer,
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
            path if face::owns(path) => Self::SweRex,
            path if agent_server::face::owns(path) => Self::AgentServer,
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
            Self::SweRex => 5,
            Self::AgentServer => 6,
            Self::Unknown => 7,
        }
    }
}

/// All counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// By group and by the first digit of the status.
    requests: [[AtomicU64; 5]; 8],
    durations: [Histogram; 8],
    actions_in_flight: AtomicUsize,
    actions_abandoned: AtomicU64,
    pub(crate) requests_in_flight: AtomicUsize,
    pub(crate) connections: AtomicUsize,
    pub(crate) connections_refused: AtomicU64,
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

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: <[[AtomicU64; 5]; 8]>::default(),
            durations: std::array::from_fn(|_| Histogram::new(&BUCKETS)),
            actions_in_flight: AtomicUsize::default(),
            actions_abandoned: AtomicU64::default(),
            requests_in_flight: AtomicUsize::default(),
            connections: AtomicUsize::default(),
            connections_refused: AtomicU64::default(),
        }
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
            histogram.write(text, "action_duration_seconds", &format!("kind=\"{kind}\""));
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(metrics.durations[0].count(), 1);
        assert_eq!(metrics.actions_in_flight.load(Relaxed), 0);
    }
}

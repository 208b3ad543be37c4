//! What is counted. Labels are routes, states and results: nothing that clients choose.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use gloveport_metrics::{Histogram, Text, float};
use http::StatusCode;

/// Upper bounds of the buckets of requests, in seconds.
const REQUEST: [f64; 12] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0, 600.0];
/// The same for starts of sandboxes.
const START: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 180.0];
/// How a request for a sandbox can end.
const RESULTS: [&str; 3] = ["ok", "refused", "failed"];

/// All counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    routes: Mutex<BTreeMap<String, Arc<Route>>>,
    starts: [Histogram; RESULTS.len()],
    engine_errors: AtomicU64,
    connections: Arc<AtomicUsize>,
    connections_total: AtomicU64,
    handshakes_failed: AtomicU64,
    websockets: Arc<AtomicUsize>,
    /// Bytes of bodies and WebSockets on their way to sandboxes.
    inward: Arc<AtomicU64>,
    /// The same from sandboxes.
    outward: Arc<AtomicU64>,
    wakes: AtomicU64,
}

#[derive(Debug)]
struct Route {
    /// By the first digit of the status.
    answers: [AtomicU64; 5],
    durations: Histogram,
}

/// Something that is open as long as this lives.
#[derive(Debug)]
pub(crate) struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            routes: Mutex::default(),
            starts: std::array::from_fn(|_| Histogram::new(&START)),
            engine_errors: AtomicU64::default(),
            connections: Arc::default(),
            connections_total: AtomicU64::default(),
            handshakes_failed: AtomicU64::default(),
            websockets: Arc::default(),
            inward: Arc::default(),
            outward: Arc::default(),
            wakes: AtomicU64::default(),
        }
    }
}

impl Metrics {
    /// Counts an answer of a route, and the time until its head.
    pub(crate) fn answered(&self, route: &str, status: StatusCode, took: Duration) {
        let counted = {
            let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(counted) = routes.get(route) {
                Arc::clone(counted)
            } else {
                let new = Arc::new(Route { answers: <[AtomicU64; 5]>::default(), durations: Histogram::new(&REQUEST) });
                routes.insert(route.to_owned(), Arc::clone(&new));
                new
            }
        };
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = counted.answers.get(class) {
            counter.fetch_add(1, Relaxed);
        }
        counted.durations.observe(took);
    }

    /// Counts a request for a sandbox.
    pub(crate) fn started(&self, status: StatusCode, took: Duration) {
        let [ok, refused, failed] = &self.starts;
        let result = if status.is_success() {
            ok
        } else if status.is_client_error() {
            refused
        } else {
            failed
        };
        result.observe(took);
    }

    /// The engine did not do what it was asked to.
    pub(crate) fn engine_failed(&self) {
        self.engine_errors.fetch_add(1, Relaxed);
    }

    /// A client has not become one over TLS.
    pub(crate) fn handshake_failed(&self) {
        self.handshakes_failed.fetch_add(1, Relaxed);
    }

    /// A paused sandbox is woken.
    pub(crate) fn woke(&self) {
        self.wakes.fetch_add(1, Relaxed);
    }

    /// A connection of a client.
    pub(crate) fn connection(&self) -> Open {
        self.connections_total.fetch_add(1, Relaxed);
        Open::new(&self.connections)
    }

    /// A WebSocket.
    pub(crate) fn websocket(&self) -> Open {
        Open::new(&self.websockets)
    }

    /// Counters of bytes to sandboxes and from them.
    pub(crate) fn bytes(&self) -> [Arc<AtomicU64>; 2] {
        [Arc::clone(&self.inward), Arc::clone(&self.outward)]
    }

    /// Writes all of it.
    pub(crate) fn write(&self, text: &mut Text) {
        let routes: Vec<(String, Arc<Route>)> = {
            let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
            routes.iter().map(|(name, route)| (name.clone(), Arc::clone(route))).collect()
        };
        text.header("gateway_requests_total", "counter", "Answers by route and status class.");
        for (name, route) in &routes {
            for (class, counter) in (1..).zip(&route.answers) {
                let count = counter.load(Relaxed);
                if count > 0 {
                    text.sample("gateway_requests_total", &format!("route=\"{name}\",status=\"{class}xx\""), count);
                }
            }
        }
        let name = "gateway_request_duration_seconds";
        text.header(name, "histogram", "Time until the head of the answer, by route.");
        for (route, counted) in &routes {
            counted.durations.write(text, name, &format!("route=\"{route}\""));
        }
        let name = "gateway_start_duration_seconds";
        text.header(name, "histogram", "Time of requests for a sandbox, by result: ok, refused (4xx), failed (5xx).");
        for (result, counted) in RESULTS.iter().zip(&self.starts) {
            counted.write(text, name, &format!("result=\"{result}\""));
        }
        let name = "gateway_bytes_total";
        text.header(name, "counter", "Bytes of bodies and WebSockets that passed: in to sandboxes, out of them.");
        for (direction, counter) in [("in", &self.inward), ("out", &self.outward)] {
            text.sample(name, &format!("direction=\"{direction}\""), counter.load(Relaxed));
        }
        text.gauge(
            "gateway_connections_open",
            "Open connections of clients, WebSockets apart.",
            self.connections.load(Relaxed),
        );
        text.gauge("gateway_websockets_open", "Open WebSockets.", self.websockets.load(Relaxed));
        for (name, help, counter) in [
            ("gateway_connections_total", "Connections of clients.", &self.connections_total),
            ("gateway_tls_failures_total", "Connections that failed before TLS stood.", &self.handshakes_failed),
            ("gateway_engine_errors_total", "Answers that say that the engine failed.", &self.engine_errors),
            ("gateway_wakes_total", "Paused sandboxes that a request woke.", &self.wakes),
        ] {
            text.counter(name, help, float(counter.load(Relaxed)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_route_and_class_and_what_is_open_while_it_is() {
        let metrics = Metrics::default();
        for (route, status) in [("/list", 200), ("/list", 401), ("sandbox", 503), ("/list", 204)] {
            metrics.answered(route, StatusCode::from_u16(status).unwrap(), Duration::from_millis(2));
        }
        metrics.started(StatusCode::CONFLICT, Duration::from_secs(1));
        let (open, closed) = (metrics.websocket(), metrics.websocket());
        drop(closed);
        let mut text = Text::default();
        metrics.write(&mut text);
        drop(open);
        let text = text.into_string();
        for line in [
            "gloveport_gateway_requests_total{route=\"/list\",status=\"2xx\"} 2",
            "gloveport_gateway_requests_total{route=\"/list\",status=\"4xx\"} 1",
            "gloveport_gateway_requests_total{route=\"sandbox\",status=\"5xx\"} 1",
            "gloveport_gateway_request_duration_seconds_count{route=\"/list\"} 3",
            "gloveport_gateway_start_duration_seconds_bucket{result=\"refused\",le=\"1\"} 1",
            "gloveport_gateway_websockets_open 1",
            "gloveport_gateway_bytes_total{direction=\"in\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("result=\"ok\""), "{text}");
        assert_eq!(metrics.websockets.load(Relaxed), 0);
    }
}

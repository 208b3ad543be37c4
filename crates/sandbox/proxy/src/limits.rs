//! What is waited for, and for how long.

use std::time::Duration;

/// What is waited for, and for how long.
#[derive(Debug, Clone)]
pub struct ProxyLimits {
    /// Time for a connection to the service; then status 504.
    pub connect: Duration,
    /// Time in which neither a byte of the request travels nor the head of the answer comes; then status 504, or 408 if
    /// it is the client that sends nothing.
    pub head: Duration,
    /// Time in which nothing travels after one side of an upgraded connection has ended its direction.
    pub half_closed: Duration,
    /// Time for the head of a request, and until there is one; only where this crate listens itself.
    pub idle: Duration,
    /// Time in which a client takes nothing that there is for it; only where this crate listens itself.
    pub write: Duration,
    /// Connections; more wait in the queue of the listener. Only where this crate listens itself.
    pub connections: usize,
    /// Time to finish answers when a listener stops.
    pub drain: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_mins(5),
            half_closed: Duration::from_mins(1),
            idle: Duration::from_secs(75),
            write: Duration::from_mins(2),
            connections: 256,
            drain: Duration::from_millis(500),
        }
    }
}

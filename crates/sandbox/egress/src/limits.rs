//! Bounds of a gate.

use std::time::Duration;

/// Bounds of a gate.
#[derive(Clone, Debug)]
pub struct EgressLimits {
    /// Connections at once through the proxy, and as many through each forward. The proxy tells those that come then
    /// to try again; forwards close them.
    pub connections: usize,
    /// Bytes of a request's or an answer's head; at least 8 KiB.
    pub header_bytes: usize,
    /// Time for the head of a request.
    pub header_time: Duration,
    /// Time until a target is connected to, with looking up its name.
    pub connect: Duration,
    /// Time in which nothing goes through a connection of the proxy, neither way.
    pub idle: Duration,
    /// The same for forwards, behind which a command may run for hours without a word.
    pub forward_idle: Duration,
    /// Time from its start in which the gate waits for a sandbox that cannot be connected to yet.
    pub start: Duration,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            header_bytes: 64 * 1024,
            header_time: Duration::from_secs(30),
            connect: Duration::from_secs(15),
            idle: Duration::from_mins(15),
            forward_idle: Duration::from_hours(24),
            start: Duration::from_mins(1),
        }
    }
}

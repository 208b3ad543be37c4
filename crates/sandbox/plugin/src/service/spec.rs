//! What a service is, where it is reached, and when it is healthy.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

/// What a service is.
#[derive(Debug, Clone)]
pub struct ServiceSpec {
    /// Name, for logs.
    pub name: String,
    /// Command that is run once before the first start.
    pub set_up: Option<Vec<OsString>>,
    /// Time for it.
    pub set_up_limit: Duration,
    /// The command. `{port}`, `{socket}`, `{workspace}` and `{base}` in its words are replaced.
    pub command: Vec<OsString>,
    /// Variables beside those of the sandbox; replaced likewise.
    pub environment: BTreeMap<String, String>,
    /// Where it listens.
    pub listens: Listens,
    /// When it is healthy.
    pub health: Health,
    /// Time from its start until it is healthy.
    pub start_limit: Duration,
    /// Time without a use after which it is stopped; it is started again by the next use.
    pub idle_stop: Option<Duration>,
    /// Time that it has to end by itself when it is to be stopped.
    pub end_grace: Duration,
    /// Whether it is started with the sandbox, or by its first use.
    pub eager: bool,
}

impl ServiceSpec {
    /// Time to end by itself if nothing else is said.
    pub const END_GRACE: Duration = Duration::from_secs(1);
}

/// Where a service listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listens {
    /// On this port of the loopback address.
    Port(u16),
    /// On a free port, which it is told as `{port}`.
    AnyPort,
    /// At a socket, which it is told as `{socket}`.
    Socket,
    /// Nowhere.
    Nowhere,
}

/// When a service is healthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It accepts connections.
    Accepts,
    /// It answers this path with a status below 500.
    Http(String),
    /// It runs, and still does after a fifth of a second.
    Runs,
}

/// Where a running service is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A port of the loopback address.
    Port(u16),
    /// A socket, which [`connect_socket`](crate::connect_socket) connects to.
    Socket(PathBuf),
}

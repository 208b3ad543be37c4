//! What can be set on a server.

use std::{fmt, sync::Arc, time::Duration};

use crate::{occupancy::Occupancy, viewer::Viewer};
use gloveport_origins::Origins;
use gloveport_proxy::origin::Names;

pub(crate) use crate::{
    agent_server::options::{AgentServerOptions, Deferred, EditorPlace, HostedAgent},
    key::SessionKey,
};

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Key that requests must carry; `None` for a server that is open to everybody who reaches it.
    pub session_key: Option<SessionKey>,
    /// Others that are as good, for clients of OpenHands' SDK 1.x.
    pub other_keys: Vec<SessionKey>,
    /// By which names, beside addresses and `localhost`, a server without a key is asked.
    pub names: Names,
    /// What becomes of a request by any other name to a server without a key.
    pub strange_names: StrangeNames,
    /// Whose pages may use the native interface from a browser. They need the key, so without one this has no effect.
    pub origins: Origins,
    /// Bounds for clients.
    pub limits: ServerLimits,
    /// Version that the documents and metrics show.
    pub version: &'static str,
    /// Is kept up to date about when the server is used.
    pub occupancy: Arc<Occupancy>,
    /// Is told of a pause before its caller is, and of its end.
    pub pause_listener: Option<PauseListener>,
    /// Shows files to browsers on this machine, below `/viewer/`.
    pub viewer: Option<Viewer>,
    /// Whose clients it serves.
    pub wire: Wire,
}

impl ServerOptions {
    /// Whether this is a key of the server.
    pub(crate) fn has_key(&self, presented: &[u8]) -> bool {
        // All are compared, whichever it is.
        let all = self.session_key.iter().chain(&self.other_keys);
        all.fold(false, |found, key| key.matches(presented) | found)
    }
}

/// Whose clients a server serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Wire {
    /// Those of OpenHands 0.62, and our own.
    #[default]
    OpenHands,
    /// Those of SWE-ReX.
    SweRex,
    /// Those of OpenHands' SDK 1.x.
    AgentServer(AgentServerOptions),
    /// The same, once the server is told its settings.
    Deferred(Deferred),
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            session_key: None,
            other_keys: Vec::new(),
            names: Names::default(),
            strange_names: StrangeNames::Refused,
            origins: Origins::default(),
            limits: ServerLimits::default(),
            version: env!("CARGO_PKG_VERSION"),
            occupancy: Arc::default(),
            pause_listener: None,
            viewer: None,
            wire: Wire::default(),
        }
    }
}

/// What becomes of a request to a server without a key by a name that is not known to be the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrangeNames {
    /// It is refused.
    Refused,
    /// It is answered if a program sent it. Callers in containers and clusters have names for a server that it cannot
    /// know; a name that was made to lead here (DNS rebinding) is of use to pages only.
    OfPrograms,
}

/// Is told whether the sandbox is paused. It must not block.
#[derive(Clone)]
pub struct PauseListener(Arc<dyn Fn(bool) + Send + Sync>);

impl PauseListener {
    /// Tells this function.
    pub fn new(tell: impl Fn(bool) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn tell(&self, paused: bool) {
        (self.0)(paused);
    }
}

impl fmt::Debug for PauseListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PauseListener(..)")
    }
}

/// What clients may take up.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Largest body of a request with JSON, in bytes; larger ones are answered with status 413.
    pub json_body: usize,
    /// Longest command and cell, and largest body of a native request with JSON, in bytes; longer ones are answered with
    /// status 413.
    pub command: usize,
    /// Longest text that the editor looks for or puts in, in bytes; longer ones are answered with status 413. Beside the
    /// text it needs lines and a difference of it.
    pub edit: usize,
    /// Largest body of an upload, in bytes; larger ones are answered with status 413.
    pub upload_body: u64,
    /// Time that an upload may stand still; then status 408. It may take as long as it likes in all.
    pub upload_pause: Duration,
    /// Uploads and downloads at the same time; more wait for their turn.
    pub transfers: usize,
    /// Time that they wait; then status 503.
    pub transfer_wait: Duration,
    /// What an uploaded archive may become.
    pub archive: gloveport_archive::ArchiveLimits,
    /// Time for the head of a request, counted from its first byte; then status 408.
    pub header_timeout: Duration,
    /// Time for the body of a request, beside one second for each 64 KiB that arrived; then status 408.
    pub body_timeout: Duration,
    /// Time that a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// Time that a client may take no byte of an answer.
    pub write_timeout: Duration,
    /// Open connections; more are answered with status 503 and closed.
    pub connections: usize,
    /// Open connections that have not shown yet that they may be here; with one more the oldest of them is closed.
    pub strangers: usize,
    /// Requests that are worked on at the same time; more are answered with status 503.
    pub requests: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            json_body: 64 * 1024 * 1024,
            command: 4 * 1024 * 1024,
            edit: 16 * 1024 * 1024,
            upload_body: 16 << 30,
            upload_pause: Duration::from_mins(1),
            transfers: 16,
            transfer_wait: Duration::from_secs(30),
            archive: gloveport_archive::ArchiveLimits::default(),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_mins(2),
            connections: 4096,
            strangers: 512,
            requests: 2048,
        }
    }
}

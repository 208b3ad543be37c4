//! What a client can be told.

use std::{fmt, sync::Arc, time::Duration};

use gloveport_protocol::{BoxFuture, SESSION_KEY_HEADER};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;

use crate::{ClientError, Pool, Recovery, call::Carry};

/// How a client reaches a server, and how long it waits.
#[derive(Clone)]
pub struct ClientOptions {
    /// URL of the server; `http://` may be left out.
    pub url: String,
    /// The key of the session, sent as `X-Session-API-Key`.
    pub session_key: Option<String>,
    /// More headers for every request, as names and values.
    pub headers: Vec<(String, String)>,
    /// Hard limit of actions that have none (`action-execution-client` 4).
    pub sandbox_timeout: Duration,
    /// How long each kind of request may pause.
    pub limits: RequestLimits,
    /// Most bytes of an answer that is held in memory.
    pub max_answer: usize,
    /// Most bytes of a copy that is stored in a file on this machine.
    pub max_copy: u64,
    /// The connections to use; none are those that the process shares.
    pub pool: Option<Pool>,
    /// What is done about failures that repeating does not cure (`action-execution-client` 2.3).
    pub recovery: Option<Arc<dyn Recovery>>,
    /// What carries the requests into a sandbox whose server is an `agent-server`; none where they go to the server itself.
    pub relay: Option<Arc<dyn Carry>>,
    /// How the client waits before it sends a request again.
    pub pause: Arc<dyn Pause>,
    /// Ends all repetitions when the process shuts down.
    pub shutdown: CancellationToken,
}

impl ClientOptions {
    /// The defaults of `action-execution-client`, for the server at this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            session_key: None,
            headers: Vec::new(),
            sandbox_timeout: Duration::from_mins(2),
            limits: RequestLimits::default(),
            max_answer: 256 * 1024 * 1024,
            max_copy: 16 * 1024 * 1024 * 1024,
            pool: None,
            recovery: None,
            relay: None,
            pause: Arc::new(Clock),
            shutdown: CancellationToken::new(),
        }
    }

    /// With the key of the session.
    #[must_use]
    pub fn with_key(self, key: Option<&str>) -> Self {
        Self { session_key: key.map(str::to_owned), ..self }
    }

    /// All headers that every request has.
    pub(crate) fn header_map(&self) -> Result<HeaderMap, ClientError> {
        let mut map = HeaderMap::new();
        let key = self.session_key.as_deref().map(|key| (SESSION_KEY_HEADER, key));
        for (name, value) in self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(key) {
            let invalid = || ClientError::Header { name: name.to_owned() };
            let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
            value.set_sensitive(true);
            map.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value);
        }
        Ok(map)
    }
}

impl fmt::Debug for ClientOptions {
    /// Leaves out what is secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientOptions")
            .field("url", &self.url)
            .field("session_key", &self.session_key.is_some())
            .field("sandbox_timeout", &self.sandbox_timeout)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How long a request may pause, by kind (`action-execution-client` 3).
///
/// A limit is not for the whole request: it begins anew with each piece of the body that is sent and with each piece of
/// the answer that comes. The HTTP library does not tell apart the wait for a free connection, the making of one and
/// the wait for the head of the answer, so these three share one limit, where the reference gives each its own. Making
/// a connection takes at most 10 s beside that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// `GET /alive`.
    pub alive: Duration,
    /// Added to the time limit of an action, so that its end arrives as an observation.
    pub action_margin: Duration,
    /// `POST /list_files`.
    pub list: Duration,
    /// `POST /upload_file`.
    pub upload: Duration,
    /// `GET /download_files`.
    pub download: Duration,
    /// `POST /update_mcp_server`.
    pub mcp: Duration,
    /// `GET /vscode/connection_token`.
    pub token: Duration,
    /// Everything else, such as the requests of the native interface.
    pub other: Duration,
    /// The stream of a native command or a watch. The server sends at least a comment every 15 s.
    pub stream: Duration,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            alive: Duration::from_secs(5),
            action_margin: Duration::from_secs(5),
            list: Duration::from_secs(10),
            upload: Duration::from_mins(5),
            download: Duration::from_secs(30),
            mcp: Duration::from_mins(1),
            token: Duration::from_secs(10),
            other: Duration::from_mins(1),
            stream: Duration::from_secs(40),
        }
    }
}

/// How a client waits before it sends a request again. Tests do not want to wait.
pub trait Pause: Send + Sync {
    /// Ends after this time.
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()>;
}

/// Waits as long as it is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock;

impl Pause for Clock {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

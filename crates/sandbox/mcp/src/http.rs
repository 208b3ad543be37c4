//! The two ways in over HTTP. Who may ask has been checked before.

use std::{fmt, io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse as _, Response},
};
use http::{Method, Request, StatusCode};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService,
        session::local::{LocalSessionManager, SessionConfig},
    },
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{proxy::Proxy, session::Session, sse::Streams};

/// Largest body of a message, in bytes.
pub const MOST_BODY: usize = 64 * 1024 * 1024;
/// Clients at the same time, for each of the two ways.
pub(crate) const MOST_CLIENTS: usize = 256;
/// Time after which a client over streamable HTTP that sends nothing has left.
const IDLE: Duration = Duration::from_hours(1);

/// A server over the transport "streamable HTTP", in a session for each client.
pub struct Streamable<S: ServerHandler>(StreamableHttpService<S, LocalSessionManager>);

impl<S: ServerHandler> fmt::Debug for Streamable<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Streamable").finish_non_exhaustive()
    }
}

impl<S: ServerHandler> Streamable<S> {
    /// Clients for each of which `make` makes a server, until `stop` is cancelled. Who may ask has been checked before.
    pub fn new(make: impl Fn() -> io::Result<S> + Send + Sync + 'static, stop: &CancellationToken) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config = SessionConfig::default();
        sessions.session_config.keep_alive = Some(IDLE);
        // Clients of revisions before 2025-11-25 take the empty event that tells when to come back for a broken message.
        sessions.session_config.sse_retry = None;
        // Names and origins are checked where all requests come in.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(MOST_BODY)
            .with_sse_retry(None)
            .with_cancellation_token(stop.child_token());
        Self(StreamableHttpService::new(make, Arc::new(sessions), config))
    }

    /// Any request.
    pub async fn handle(&self, request: Request<Body>) -> Response {
        let leaves = request.method() == Method::DELETE;
        let mut response = self.0.handle(request).await.map(Body::new);
        if leaves && response.status() == StatusCode::ACCEPTED {
            // Clients know a session as ended by one of 200 and 204.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        response
    }
}

/// The face of a proxy towards clients.
pub struct Face {
    proxy: Arc<Proxy>,
    streams: Arc<Streams>,
    streamable: Streamable<Session>,
    stop: CancellationToken,
}

impl fmt::Debug for Face {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Face").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}

impl Face {
    /// The face of this proxy, until `stop` is cancelled.
    pub fn new(proxy: Arc<Proxy>, stop: CancellationToken) -> Self {
        let served = Arc::clone(&proxy);
        let make = move || {
            let is_full = served.audience.size() >= 2 * MOST_CLIENTS;
            if is_full {
                Err(io::Error::other("too many MCP clients are connected"))
            } else {
                Ok(Session::new(&served))
            }
        };
        let streamable = Streamable::new(make, &stop);
        Self { proxy, streams: Arc::default(), streamable, stop }
    }

    /// The proxy behind it.
    pub fn proxy(&self) -> &Arc<Proxy> {
        &self.proxy
    }

    /// `GET /mcp/sse`.
    pub fn open_stream(&self) -> Response {
        self.streams.open(&self.proxy, &self.stop)
    }

    /// `POST /mcp/messages/?session_id=…`.
    pub async fn take_message(&self, session: Option<&str>, body: &Bytes) -> Response {
        self.streams.take(session, body).await
    }

    /// Any request of the transport "streamable HTTP".
    pub async fn streamable(&self, request: Request<Body>) -> Response {
        self.streamable.handle(request).await
    }
}

/// An answer to a client that asks wrongly.
pub(crate) fn refusal(status: StatusCode, text: &'static str) -> Response {
    (status, axum::Json(json!({"detail": text}))).into_response()
}

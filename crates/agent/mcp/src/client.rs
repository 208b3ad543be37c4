//! One connection to one server.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    Peer, RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult, JsonObject, Tool},
    service::{ClientInitializeError, RunningService},
};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout},
};

use crate::{
    CallError, ConnectError, Server,
    fate::Fate,
    handler::Handler,
    http::{connections, streamable},
    listing,
    oauth::{Bearer, Tokens},
    sse,
    stdio::Program,
};

/// How long a server may take to be connected, and to agree on the protocol (runtime-interface 14.3); and again to list
/// its tools.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// How long the end of a connection may take before it is left to itself.
pub const CLOSE_LIMIT: Duration = Duration::from_secs(15);

/// A connected server. Dropping it ends the connection in the background, and a program with all that it started.
pub struct Client {
    server: Server,
    peer: Peer<RoleClient>,
    service: AsyncMutex<Option<RunningService<RoleClient, Handler>>>,
    fate: Arc<Fate>,
    tools: AsyncMutex<Option<Arc<[Tool]>>>,
    tools_changed: Arc<AtomicBool>,
    used: Mutex<Instant>,
}

impl Client {
    /// Starts or reaches a server, and agrees with it on the protocol, within [`CONNECT_LIMIT`].
    ///
    /// Must be called within a tokio runtime. If this is given up, what was started ends.
    pub async fn connect(server: &Server) -> Result<Self, ConnectError> {
        Self::connect_within(server, CONNECT_LIMIT).await
    }

    /// [`connect`](Self::connect) with another limit.
    pub async fn connect_within(server: &Server, limit: Duration) -> Result<Self, ConnectError> {
        let (fate, handler) = (Arc::<Fate>::default(), Handler::default());
        let tools_changed = Arc::clone(&handler.tools_changed);
        let started = timeout(limit, Box::pin(start(server, handler, &fate))).await;
        let silent = |_| ConnectError::Silent { server: server.name(), limit, last: fate.last_words() };
        let service = started.map_err(silent)??;
        Ok(Self {
            server: server.clone(),
            peer: service.peer().clone(),
            service: AsyncMutex::new(Some(service)),
            fate,
            tools: AsyncMutex::default(),
            tools_changed,
            used: Mutex::new(Instant::now()),
        })
    }

    /// The server.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// All else that MCP offers: resources, prompts, completion. What comes of it is not bounded in time.
    pub const fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// The last 64 KiB that the server's program wrote to its standard error; empty for others.
    pub fn stderr(&self) -> String {
        self.fate.written()
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// How long nothing was asked of the server.
    pub fn idle(&self) -> Duration {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// The tools of the server, which are asked for once, and again when the server says that they have changed.
    pub async fn tools(&self) -> Result<Arc<[Tool]>, CallError> {
        self.listed(false).await
    }

    /// The tools of the server as they are now.
    pub async fn refresh_tools(&self) -> Result<Arc<[Tool]>, CallError> {
        self.listed(true).await
    }

    async fn listed(&self, again: bool) -> Result<Arc<[Tool]>, CallError> {
        let mut kept = self.tools.lock().await;
        let has_changed = self.tools_changed.swap(false, Ordering::AcqRel);
        if let Some(tools) = kept.as_ref().filter(|_| !again && !has_changed) {
            return Ok(Arc::clone(tools));
        }
        *kept = None;
        let listing = Box::pin(listing::tools(&self.server, &self.peer, &self.fate));
        let tools: Arc<[Tool]> = self.within(Some(CONNECT_LIMIT), listing).await?.into();
        *kept = Some(Arc::clone(&tools));
        Ok(tools)
    }

    /// Calls a tool. With a limit, the server is asked to stop when it is over, and so it is when this is given up.
    pub async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        limit: Option<Duration>,
    ) -> Result<CallToolResult, CallError> {
        let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let calling = Box::pin(async {
            self.peer.call_tool(request).await.map_err(|error| CallError::of(&self.server, error, &self.fate))
        });
        self.within(limit, calling).await
    }

    async fn within<T>(
        &self,
        limit: Option<Duration>,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        self.touch();
        let done = match limit {
            Some(limit) => timeout(limit, work)
                .await
                .unwrap_or_else(|_| Err(CallError::Timeout { server: self.server.name(), limit })),
            None => work.await,
        };
        self.touch();
        done
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Ends the connection, and a program with all that it started, within [`CLOSE_LIMIT`]. A second call does nothing.
    pub async fn close(&self) {
        let Some(mut service) = self.service.lock().await.take() else { return };
        match service.close_with_timeout(CLOSE_LIMIT).await {
            Ok(Some(_)) => {}
            Ok(None) => {
                tracing::warn!(server = self.server.name(), "the connection to an MCP server did not end in time");
            }
            Err(error) => tracing::error!(server = self.server.name(), %error, "an MCP connection failed by a defect"),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Client")
            .field("server", &self.server)
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

async fn start(
    server: &Server,
    handler: Handler,
    fate: &Arc<Fate>,
) -> Result<RunningService<RoleClient, Handler>, ConnectError> {
    let failed = |error: ClientInitializeError| ConnectError::of_start(server, &error, fate);
    match server {
        Server::Stdio(stdio) => handler.serve(Program::start(stdio, fate)?).await.map_err(failed),
        Server::Sse(http) => handler.serve(sse::EventStream::open(http, fate).await?).await.map_err(failed),
        Server::Http(http) => match Tokens::of(http).await? {
            Some(tokens) => {
                let started = handler.serve(streamable(http, Bearer::new(tokens)?)?).await;
                started.map_err(failed).map_err(ConnectError::after_login)
            }
            None => handler.serve(streamable(http, connections()?)?).await.map_err(failed),
        },
    }
}

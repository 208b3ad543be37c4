//! The endpoints that are neither actions nor copies.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gloveport_protocol::{ConnectionToken, ListFilesRequest, McpServerEntry, ServerInfo, UpdateMcpResponse};
use serde_json::Value;
use tokio::{
    sync::{Mutex, Semaphore},
    time::Instant,
};

use crate::{ClientError, ClientOptions, Files, call::Call, session::Session};

/// Longest wait between two questions whether a server is alive.
const ALIVE_PAUSE: Duration = Duration::from_secs(2);
/// The first such wait; each is twice as long as the one before.
const FIRST_ALIVE_PAUSE: Duration = Duration::from_millis(10);

/// A sandbox's server.
///
/// One action at a time is in flight; everything else may go on beside it. Clones are cheap and share that.
#[derive(Debug, Clone)]
pub struct ActionExecutionClient {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) session: Arc<Session>,
    pub(crate) sandbox_timeout: Duration,
    /// Held by the action in flight (`action-execution-client` 4).
    pub(crate) in_flight: Semaphore,
    /// Milliseconds since 1970; 0 before the first action.
    last_execution: AtomicU64,
    token: Mutex<Option<String>>,
    /// Whether the server has the native routes for trees.
    pub(crate) tar_routes: OnceLock<bool>,
}

impl ActionExecutionClient {
    /// A client for one server. Nothing is sent yet.
    pub fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        Ok(Self {
            shared: Arc::new(Shared {
                session: Arc::new(Session::new(options)?),
                sandbox_timeout: options.sandbox_timeout,
                in_flight: Semaphore::new(1),
                last_execution: AtomicU64::new(0),
                token: Mutex::new(None),
                tar_routes: OnceLock::new(),
            }),
        })
    }

    /// URL of the server, with a slash at its end.
    pub fn url(&self) -> &str {
        self.session().base().as_str()
    }

    /// The native file interface.
    pub fn files(&self) -> Files {
        Files::new(Arc::clone(&self.shared.session))
    }

    /// Whether the server answers `GET /alive` with a success; its body is not looked into.
    pub async fn alive(&self) -> Result<(), ClientError> {
        self.session().request(&Call::get("alive", self.session().limits.alive)).await.map(drop)
    }

    /// Like [`alive`](Self::alive), but asks only once, whatever goes wrong: for whoever waits for a server and asks
    /// again anyway.
    pub async fn probe(&self) -> Result<(), ClientError> {
        self.session().once(&Call::get("alive", self.session().limits.alive)).await.map(drop)
    }

    /// Asks until the server is alive. The last failure is the result when it is not within the limit.
    ///
    /// The first questions follow each other quickly, so that a server that starts in 40 ms is not waited for for two
    /// seconds; later ones come every 2 s, as those of the reference do.
    pub async fn wait_until_alive(&self, limit: Duration) -> Result<(), ClientError> {
        let deadline = Instant::now() + limit;
        let mut pause = FIRST_ALIVE_PAUSE;
        loop {
            let call = Call::get("alive", self.session().limits.alive.min(limit));
            let Err(error) = self.session().once(&call).await else { return Ok(()) };
            if Instant::now() + pause >= deadline || self.session().shutdown.is_cancelled() {
                return Err(error);
            }
            tokio::select! {
                () = self.session().pause.pause(pause) => {}
                () = self.session().shutdown.cancelled() => return Err(error),
            }
            pause = (pause * 2).min(ALIVE_PAUSE);
        }
    }

    /// How long the server runs, and what it uses.
    pub async fn server_info(&self) -> Result<ServerInfo, ClientError> {
        self.json(&Call::get("server_info", self.session().limits.other)).await
    }

    /// The entries of a directory, directories first and with a slash at their end; none is the directory that the
    /// server was started with. A directory that is missing has no entries (`action-execution-client` 5.3).
    pub async fn list_files(&self, path: Option<&str>) -> Result<Vec<String>, ClientError> {
        // The reference leaves the key out.
        let body = match path {
            Some(path) => serde_json::to_value(ListFilesRequest { path: Some(path.to_owned()) }).unwrap_or_default(),
            None => Value::Object(serde_json::Map::new()),
        };
        let call = Call::post("list_files", &body, Some(self.session().limits.list))?;
        self.json(&call).await.map_err(|error| match error {
            ClientError::Silent { .. } => ClientError::Timeout("List files operation timed out".to_owned()),
            other => other,
        })
    }

    /// The token of the web editor; empty if the server has none. A token is remembered
    /// (`action-execution-client` 6).
    pub async fn vscode_token(&self) -> Result<String, ClientError> {
        let mut known = self.shared.token.lock().await;
        if let Some(token) = &*known {
            return Ok(token.clone());
        }
        let call = Call::get("vscode/connection_token", self.session().limits.token);
        let ConnectionToken { token } = self.json(&call).await?;
        known.clone_from(&token);
        Ok(token.unwrap_or_default())
    }

    /// Gives the server the list of MCP servers to run, sorted by name (`action-execution-client` 7.1).
    pub async fn update_mcp_servers(&self, servers: &[McpServerEntry]) -> Result<UpdateMcpResponse, ClientError> {
        let mut sorted: Vec<_> = servers.iter().collect();
        sorted.sort_by(|one, other| one.name.cmp(&other.name));
        let call = Call::post("update_mcp_server", &sorted, Some(self.session().limits.mcp))?;
        let answer: UpdateMcpResponse = self.json(&call).await?;
        if !answer.router_error_log.is_empty() {
            tracing::warn!(errors = answer.router_error_log, "some MCP servers could not be set up");
        }
        Ok(answer)
    }

    /// Closes the client. A request afterwards is logged as an error, and opens it again (`action-execution-client` 1).
    pub fn close(&self) {
        self.session().close();
    }

    /// When the last action ended or failed; none before the first.
    pub fn last_execution(&self) -> Option<SystemTime> {
        match self.shared.last_execution.load(Ordering::Relaxed) {
            0 => None,
            millis => Some(UNIX_EPOCH + Duration::from_millis(millis)),
        }
    }

    pub(crate) fn stamp(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.shared.last_execution.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn session(&self) -> &Session {
        &self.shared.session
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, call: &Call<'_>) -> Result<T, ClientError> {
        let body = self.session().request(call).await?;
        self.session().parse(call.path, &body)
    }
}

//! The session: one sandbox, and what a backend does around its actions (runtime-interface 2, 3, 8).

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gloveport_config::{Config, McpStdioServer};
use gloveport_event_stream::{EventStream, FileStore, SubscriberId};
use gloveport_mcp_client::{Pool, TokenStore};
use gloveport_protocol::{McpServerEntry, Secret};
use gloveport_security::Gate;
use tempfile::TempPath;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio_util::sync::CancellationToken;

use crate::{
    Connector, InitialEnvironment, RuntimeError, RuntimeStatus, SandboxConnection, StatusReporter,
    git_providers::{GitProviders, Refresh},
    llm_edit::LlmEditor,
};

/// A session. Clones are the same session; it is closed when the last one is dropped.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) session: Arc<Session>,
}

pub(crate) struct Session {
    pub(crate) config: Config,
    pub(crate) sid: String,
    pub(crate) user_id: Option<String>,
    pub(crate) stream: Option<EventStream>,
    pub(crate) file_store: Option<Arc<dyn FileStore>>,
    pub(crate) status: Arc<StatusReporter>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) llm_editor: Option<LlmEditor>,
    pub(crate) providers: GitProviders,
    pub(crate) refresh: Option<Refresh>,
    /// Events of the stream that this session itself put there, and what is to be done about them.
    pub(crate) own: Mutex<HashMap<i64, Handling>>,
    /// The stdio servers that run in the sandbox.
    pub(crate) mcp_servers: AsyncMutex<Vec<McpServerEntry>>,
    /// Those that were asked for beyond the configuration where nothing but this process starts servers.
    pub(crate) mcp_extra: AsyncMutex<Vec<McpStdioServer>>,
    /// Connections to MCP servers, for the next call.
    pub(crate) mcp_clients: Pool,
    pub(crate) mcp_tokens: Option<TokenStore>,
    /// Ends everything that waits.
    pub(crate) stop: CancellationToken,
    pub(crate) git_scripts: OnceCell<crate::git::Scripts>,
    /// Is cancelled when the session is connected.
    pub(crate) ready: CancellationToken,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) connection: OnceLock<Arc<dyn SandboxConnection>>,
    pub(crate) connected: OnceCell<()>,
    pub(crate) closing: OnceCell<Result<(), Arc<RuntimeError>>>,
    pub(crate) plugins: Vec<String>,
    pub(crate) environment: Arc<InitialEnvironment>,
    pub(crate) attach_to_existing: bool,
}

/// What is to be done about an event that the session itself has added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// Nothing: whoever added it executes it.
    Done,
    /// It is executed without being asked about again.
    Cleared,
}

impl Runtime {
    /// The sandbox, once the session is connected to it.
    pub(crate) fn connection(&self) -> Result<&Arc<dyn SandboxConnection>, RuntimeError> {
        if self.session.stop.is_cancelled() {
            return Err(RuntimeError::Closed);
        }
        self.session.connection.get().ok_or(RuntimeError::NotConnected)
    }

    /// Whether `connect` is done.
    pub fn is_initialized(&self) -> bool {
        self.session.connected.initialized()
    }

    /// The session's id.
    pub fn sid(&self) -> &str {
        &self.session.sid
    }

    /// The user whose conversation it is.
    pub fn user_id(&self) -> Option<&str> {
        self.session.user_id.as_deref()
    }

    /// The configuration of the session.
    pub fn config(&self) -> &Config {
        &self.session.config
    }

    /// The latest status; none before the first.
    pub fn status(&self) -> Option<RuntimeStatus> {
        self.session.status.latest()
    }

    /// The directory in the sandbox that holds the work.
    pub fn workspace_root(&self) -> &str {
        let told = self.session.connection.get().and_then(|connection| connection.workspace());
        told.unwrap_or(&self.session.config.workspace_mount_path_in_sandbox)
    }

    /// Whether the sandbox was asked for this plugin.
    pub fn has_plugin(&self, name: &str) -> bool {
        self.session.plugins.iter().any(|plugin| plugin == name)
    }

    /// The key that the sandbox asks for.
    pub fn session_api_key(&self) -> Option<Secret> {
        self.session.connection.get()?.session_key()
    }

    /// What is in a directory of the sandbox: names, directories with `/` at the end; without a path where the tools
    /// started.
    pub async fn list_files(&self, path: Option<&str>) -> Result<Vec<String>, RuntimeError> {
        self.connection()?.list_files(path).await
    }

    /// Copies a file or, `recursive`, a tree of this machine into a directory of the sandbox.
    pub async fn copy_to(&self, source: &Path, destination: &str, recursive: bool) -> Result<(), RuntimeError> {
        self.connection()?.copy_to(source, destination, recursive).await
    }

    /// All regular files below a directory of the sandbox, as a zip file that is removed with its path.
    pub async fn copy_from(&self, path: &str) -> Result<TempPath, RuntimeError> {
        self.connection()?.copy_from(path).await
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("sid", &self.session.sid)
            .field("status", &self.session.status.latest())
            .field("initialized", &self.is_initialized())
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Remembers what to do about an event that the session itself adds to the stream.
    pub(crate) fn expect_event(&self, id: i64, handling: Handling) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(id, handling);
    }

    pub(crate) fn take_expected(&self, id: i64) -> Option<Handling> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.cancel();
        if self.closing.initialized() {
            return;
        }
        // Without `close` the sandbox is given back in the background.
        let Ok(handle) = tokio::runtime::Handle::try_current() else { return };
        let (stream, sid) = (self.stream.take(), std::mem::take(&mut self.sid));
        let (connector, gate) = (Arc::clone(&self.connector), Arc::clone(&self.gate));
        handle.spawn(async move {
            if let Some(stream) = stream {
                stream.unsubscribe(SubscriberId::Runtime, &sid).await;
            }
            if let Err(error) = connector.end().await {
                tracing::error!(sid, %error, "the sandbox of the session was not given up as it should");
            }
            gate.close().await;
        });
    }
}

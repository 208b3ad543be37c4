//! What a session needs of a sandbox beside the execution of actions, and who gives it.

mod in_process;
mod server;

use std::{fmt, path::Path, sync::Arc};

use gloveport_protocol::{ActionExecutor, BoxFuture, McpServerEntry, Secret};
use tempfile::TempPath;

use crate::{RuntimeError, StatusReporter};

pub use in_process::InProcess;
pub use server::ServerAt;

/// A sandbox whose tools answer.
pub trait SandboxConnection: ActionExecutor {
    /// What is in a directory: names, directories with `/` at the end; without a path the directory in which the
    /// tools started. What is missing is empty.
    fn list_files<'a>(&'a self, path: Option<&'a str>) -> BoxFuture<'a, Result<Vec<String>, RuntimeError>>;

    /// Copies a file or, `recursive`, a tree of this machine into a directory of the sandbox
    /// (action-execution-client 5.1).
    fn copy_to<'a>(
        &'a self,
        source: &'a Path,
        destination: &'a str,
        recursive: bool,
    ) -> BoxFuture<'a, Result<(), RuntimeError>>;

    /// All regular files below a directory of the sandbox, as a zip file that is removed with its path.
    fn copy_from<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<TempPath, RuntimeError>>;

    /// Where MCP servers run that are started in the sandbox, if it has such a place.
    fn mcp(&self) -> Option<&dyn McpHost> {
        None
    }

    /// Whether the sandbox is the user's own machine and home directory, in which a session leaves no settings.
    fn is_own_home(&self) -> bool {
        false
    }

    /// The key that the sandbox asks for.
    fn session_key(&self) -> Option<Secret> {
        None
    }
}

/// A sandbox server that runs MCP servers and serves them all as one (action-execution-client 7).
pub trait McpHost: Send + Sync {
    /// Makes these the servers that run. What it says about failures is in the answer.
    fn update<'a>(&'a self, servers: &'a [McpServerEntry]) -> BoxFuture<'a, Result<String, RuntimeError>>;

    /// Where all of them are served, by server-sent events.
    fn url(&self) -> String;
}

/// Gives a session its sandbox.
pub trait Connector: Send + Sync {
    /// Makes the sandbox, or finds it, and waits until its tools answer.
    fn connect<'a>(
        &'a self,
        request: ConnectRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn SandboxConnection>, RuntimeError>>;

    /// Gives up the sandbox. It is called once, and also after a `connect` that failed or was given up.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// What a connector is told.
pub struct ConnectRequest<'a> {
    /// The session.
    pub sid: &'a str,
    /// Only what already runs is used.
    pub attach_to_existing: bool,
    /// Is told how far it is (runtime-interface 4, table of `connect`).
    pub status: &'a StatusReporter,
}

impl fmt::Debug for ConnectRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectRequest").field("sid", &self.sid).field("attach", &self.attach_to_existing).finish()
    }
}

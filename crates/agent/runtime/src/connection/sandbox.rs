//! What a session needs of a sandbox beside the execution of actions.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use gloveport_protocol::{
    ActionExecutor, BoxFuture, McpServerEntry, Secret,
    exec::{ExecEnd, ExecRequest},
};
use tempfile::TempPath;

use crate::RuntimeError;

/// Is told each line of output, with its end, on the thread that reads it. It must not block.
pub type ShellStream = Arc<dyn Fn(&str) + Send + Sync>;

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

    /// The directory in the sandbox that holds the work, where the sandbox says it; none is the configured one.
    fn workspace(&self) -> Option<&str> {
        None
    }

    /// Takes variables for its tools, with their names as they are. False where the shell has to be told.
    fn keep_variables(&self, _variables: &BTreeMap<String, Secret>) -> bool {
        false
    }

    /// Whether it answers calls of MCP tools itself. Otherwise the session calls them.
    fn answers_mcp(&self) -> bool {
        false
    }

    /// What agents are told about it; mostly nothing.
    fn instructions(&self) -> String {
        String::new()
    }

    /// Runs a command and tells its output as it comes. `None` where that is not possible, and nothing was run.
    fn exec<'a>(
        &'a self,
        _request: ExecRequest,
        _output: &'a mut (dyn FnMut(&[u8]) + Send),
    ) -> BoxFuture<'a, Result<Option<ExecEnd>, RuntimeError>> {
        Box::pin(async { Ok(None) })
    }

    /// Tells the output of commands line by line; `None` ends it. False where that is not possible.
    fn stream_shell(&self, _stream: Option<ShellStream>) -> bool {
        false
    }

    /// The token of the web editor; empty if there is none.
    fn vscode_token(&self) -> BoxFuture<'_, Result<String, RuntimeError>> {
        Box::pin(async { Ok(String::new()) })
    }
}

/// A sandbox server that runs MCP servers and serves them all as one (action-execution-client 7).
pub trait McpHost: Send + Sync {
    /// Makes these the servers that run. What it says about failures is in the answer.
    fn update<'a>(&'a self, servers: &'a [McpServerEntry]) -> BoxFuture<'a, Result<String, RuntimeError>>;

    /// Where all of them are served, by server-sent events.
    fn url(&self) -> String;
}

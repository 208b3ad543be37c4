//! A sandbox that is no sandbox: the tools of this process, with files kept in one directory (local-and-cli-runtime B).

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_cli_runtime::{CliOptions, CliRuntime};
use gloveport_config::Config;
use gloveport_protocol::{ActionEvent, ActionExecutor, BoxFuture, ExecuteError, Observation, Secret};
use gloveport_sys::Spawner;
use tempfile::TempPath;
use tokio::sync::OnceCell;

use super::{ConnectRequest, Connector, SandboxConnection, ShellStream};
use crate::{Runtime, RuntimeError, RuntimeStatus, StatusLevel, blocking};

/// Executes actions in this process, confined to the workspace of the configuration or, without one, to a temporary one.
///
/// Settings of the user are left alone: a session neither writes to `~/.bashrc` nor to the global git configuration, and
/// its variables are those of its commands only.
#[derive(Debug)]
pub struct Cli {
    workspace: Option<PathBuf>,
    timeout: f64,
    spawner: Spawner,
    running: OnceCell<Arc<CliRuntime>>,
}

impl Cli {
    /// As the configuration says: `workspace_base` and `sandbox.timeout`.
    pub fn from_config(config: &Config) -> Self {
        Self {
            workspace: config.workspace_base.as_ref().map(PathBuf::from),
            timeout: u32::try_from(config.sandbox.timeout).map_or(f64::INFINITY, f64::from),
            spawner: Spawner::Direct,
            running: OnceCell::new(),
        }
    }

    /// The defaults, with this workspace.
    pub fn in_directory(workspace: impl Into<PathBuf>) -> Self {
        Self::from_config(&Config::default()).within(workspace)
    }

    /// With this workspace instead.
    #[must_use]
    pub fn within(self, workspace: impl Into<PathBuf>) -> Self {
        Self { workspace: Some(workspace.into()), ..self }
    }

    /// With somebody who owns the processes also if this one is killed.
    #[must_use]
    pub fn owned_by(self, spawner: Spawner) -> Self {
        Self { spawner, ..self }
    }

    /// Removes the temporary workspaces of a conversation, and tells how many there were (B2).
    ///
    /// # Errors
    ///
    /// The directory for temporary files can not be read. What can not be removed is in the log.
    pub async fn delete(conversation_id: &str) -> Result<usize, RuntimeError> {
        let id = conversation_id.to_owned();
        blocking(move || {
            gloveport_cli_runtime::delete_workspaces(&id).map_err(|source| RuntimeError::File {
                action: "read",
                path: std::env::temp_dir(),
                source,
            })
        })
        .await
    }

    fn open(&self, sid: &str) -> Result<Arc<CliRuntime>, RuntimeError> {
        let options = match &self.workspace {
            Some(workspace) => CliOptions::new(workspace),
            None => CliOptions::temporary(sid)?,
        };
        Ok(CliRuntime::open(CliOptions { timeout: self.timeout, spawner: self.spawner.clone(), ..options })?)
    }
}

impl Connector for Cli {
    fn connect<'a>(
        &'a self,
        request: ConnectRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn SandboxConnection>, RuntimeError>> {
        Box::pin(async move {
            request.status.set(StatusLevel::Info, RuntimeStatus::StartingRuntime, "");
            let runtime = Arc::clone(self.running.get_or_try_init(async || self.open(request.sid)).await?);
            let root = runtime.workspace_root().display().to_string();
            request.status.set(StatusLevel::Info, RuntimeStatus::RuntimeStarted, "");
            Ok(Arc::new(Confined { runtime, root }) as Arc<dyn SandboxConnection>)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(runtime) = self.running.get() {
                runtime.close().await;
            }
        })
    }
}

/// The tools of this process, and the workspace that they stay in.
struct Confined {
    runtime: Arc<CliRuntime>,
    root: String,
}

impl fmt::Debug for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confined").field("root", &self.root).finish_non_exhaustive()
    }
}

impl ActionExecutor for Confined {
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        self.runtime.execute(event)
    }
}

impl SandboxConnection for Confined {
    fn list_files<'a>(&'a self, path: Option<&'a str>) -> BoxFuture<'a, Result<Vec<String>, RuntimeError>> {
        let (runtime, path) = (Arc::clone(&self.runtime), path.map(str::to_owned));
        Box::pin(blocking(move || Ok(runtime.list_files(path.as_deref())?)))
    }

    fn copy_to<'a>(
        &'a self,
        source: &'a Path,
        destination: &'a str,
        recursive: bool,
    ) -> BoxFuture<'a, Result<(), RuntimeError>> {
        let (runtime, source, destination) = (Arc::clone(&self.runtime), source.to_owned(), destination.to_owned());
        Box::pin(blocking(move || Ok(runtime.copy_to(&source, &destination, recursive)?)))
    }

    fn copy_from<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<TempPath, RuntimeError>> {
        let (runtime, path) = (Arc::clone(&self.runtime), path.to_owned());
        Box::pin(blocking(move || Ok(runtime.copy_from(&path)?)))
    }

    fn is_own_home(&self) -> bool {
        true
    }

    fn workspace(&self) -> Option<&str> {
        Some(&self.root)
    }

    fn keep_variables(&self, variables: &BTreeMap<String, Secret>) -> bool {
        self.runtime.add_env_vars(variables);
        true
    }

    fn instructions(&self) -> String {
        self.runtime.additional_agent_instructions()
    }

    fn stream_shell(&self, stream: Option<ShellStream>) -> bool {
        self.runtime.subscribe_to_shell_stream(stream);
        true
    }
}

impl Runtime {
    /// What agents are told about the place that they work in; empty for most runtimes.
    pub fn additional_agent_instructions(&self) -> Result<String, RuntimeError> {
        Ok(self.connection()?.instructions())
    }

    /// Who is told the output of commands line by line; `None` ends it. False where output can not be told that way.
    pub fn subscribe_to_shell_stream(&self, stream: Option<ShellStream>) -> Result<bool, RuntimeError> {
        Ok(self.connection()?.stream_shell(stream))
    }
}

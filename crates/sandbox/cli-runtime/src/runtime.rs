//! Which tool an action is for, and what belongs to all of them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use gloveport_protocol::{
    Action, ActionEvent, ActionExecutor, BoxFuture, ErrorObservation, ExecuteError, Observation, RunAction, Secret,
};
use gloveport_sys::Spawner;
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    command::{Command, GRACE, Start},
    commands::{CommandLimits, Commands},
    error::CliError,
    files::Files,
    paths::Workspace,
};

/// What names of temporary workspaces begin with; the session's id and a blank-free rest follow.
const PREFIX: &str = "openhands_workspace_";

/// How a runtime is made.
#[derive(Debug, Clone)]
pub struct CliOptions {
    /// Where commands start and files are; made if it is missing.
    pub workspace: PathBuf,
    /// The environment of every command.
    pub environment: Vec<(OsString, OsString)>,
    /// Time limit of a command whose action has none, in seconds (`sandbox.timeout`).
    pub timeout: f64,
    /// How long a command that waits for input may be silent before it is given back.
    pub patience: Duration,
    /// Who starts and owns processes.
    pub spawner: Spawner,
    /// Where the standard input of commands comes from.
    pub input: CommandInput,
    /// Whether MCP servers are configured.
    pub has_mcp_servers: bool,
}

/// Where the standard input of commands comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandInput {
    /// From actions with `is_input`, over a terminal of the command.
    Terminal,
    /// It is that of this process. No command is given back.
    Inherited,
}

impl CliOptions {
    /// The defaults, with this process's environment.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            environment: std::env::vars_os().collect(),
            timeout: 120.0,
            patience: Duration::from_secs(2),
            spawner: Spawner::Direct,
            input: CommandInput::Terminal,
            has_mcp_servers: false,
        }
    }

    /// A new temporary workspace for a session, which [`delete_workspaces`] finds.
    ///
    /// # Errors
    ///
    /// It can not be made.
    pub fn temporary(sid: &str) -> Result<Self, CliError> {
        let prefix = workspace_prefix(sid);
        let made = tempfile::Builder::new().prefix(&prefix).tempdir();
        let made = made.map_err(|source| CliError::Workspace { path: std::env::temp_dir().join(&prefix), source })?;
        Ok(Self::new(made.keep()))
    }
}

/// Is told each line of output, with its end, on the thread that reads it. It must not block.
pub type ShellStream = Arc<dyn Fn(&str) + Send + Sync>;

/// Who is told the output.
#[derive(Clone, Default)]
pub(crate) struct Listener(Arc<Mutex<Option<ShellStream>>>);

impl Listener {
    pub(crate) fn current(&self) -> Option<ShellStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.current().is_some()).finish()
    }
}

/// Executes actions on this machine, with files kept in one workspace. Dropping it ends its commands as
/// [`close`](Self::close) does, without a wait.
#[derive(Debug)]
pub struct CliRuntime {
    workspace: Workspace,
    files: Arc<Files>,
    commands: Commands,
    options: CliOptions,
    /// Variables over those of the options.
    variables: Mutex<BTreeMap<String, Secret>>,
    listener: Listener,
    is_closed: AtomicBool,
    closing: CancellationToken,
    followers: TaskTracker,
}

impl CliRuntime {
    /// Opens the workspace.
    ///
    /// # Errors
    ///
    /// The workspace can not be made or used.
    pub fn open(options: CliOptions) -> Result<Arc<Self>, CliError> {
        let workspace = Workspace::open(&options.workspace)?;
        Ok(Arc::new(Self {
            files: Arc::new(Files::new(workspace.clone())),
            workspace,
            commands: Commands::default(),
            options,
            variables: Mutex::default(),
            listener: Listener::default(),
            is_closed: AtomicBool::new(false),
            closing: CancellationToken::new(),
            followers: TaskTracker::new(),
        }))
    }

    /// The workspace as an absolute path.
    pub fn workspace_root(&self) -> &Path {
        self.workspace.path()
    }

    /// What agents are told about this runtime (B12).
    pub fn additional_agent_instructions(&self) -> String {
        format!(
            "Your working directory is {}. You can only read and write files in this directory.\n\nYou are working \
             directly on the user's machine. In most cases, the working environment is already set up.",
            self.workspace_root().display()
        )
    }

    /// Sets variables for all commands that are started from now on; names stay as they are. This process's own
    /// environment does not change.
    pub fn add_env_vars(&self, variables: &BTreeMap<String, Secret>) {
        let mut known = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(variables.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// Who is told the output of commands, line by line; replaces who was told before.
    pub fn subscribe_to_shell_stream(&self, stream: Option<ShellStream>) {
        *self.listener.0.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }

    /// Ends all commands and what they left running. The workspace stays.
    pub async fn close(&self) {
        self.is_closed.store(true, Relaxed);
        self.closing.cancel();
        self.followers.close();
        if tokio::time::timeout(GRACE * 4, self.followers.wait()).await.is_err() {
            tracing::warn!("processes of commands did not end in time");
        }
    }

    pub(crate) fn workspace(&self) -> Result<&Workspace, CliError> {
        if self.is_closed() { Err(CliError::NotInitialized) } else { Ok(&self.workspace) }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }

    async fn dispatch(&self, event: &ActionEvent) -> Result<Observation, ExecuteError> {
        match &event.action {
            Action::Run(action) => Ok(self.run(action, event.timeout).await),
            Action::Read(_) | Action::Write(_) | Action::Edit(_) => self.file_action(event.action.clone()).await,
            Action::RunIpython(_) => Ok(failed("Executing IPython cells is not implemented in CLIRuntime. ")),
            Action::Browse(_) | Action::BrowseInteractive(_) => {
                Ok(failed("Browser functionality is not implemented in CLIRuntime"))
            }
            Action::CallToolMcp(_) if !self.options.has_mcp_servers => Ok(failed("No MCP servers configured")),
            Action::CallToolMcp(_) => Ok(failed("No MCP clients could be created - check server configurations")),
            other => Err(ExecuteError::NotRunnable { kind: other.kind() }),
        }
    }

    /// Executes an action on files where it holds up nothing else. A panic in it is an error of this action alone.
    async fn file_action(&self, action: Action) -> Result<Observation, ExecuteError> {
        if self.is_closed() {
            return Ok(failed("Runtime not initialized"));
        }
        let (files, kind) = (Arc::clone(&self.files), action.kind());
        let (sender, receiver) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let result = match &action {
                Action::Read(action) => Ok(files.read(action)),
                Action::Write(action) => Ok(files.write(action)),
                Action::Edit(action) => files.edit(action),
                other => Err(ExecuteError::NotRunnable { kind: other.kind() }),
            };
            // Its caller may have left.
            let _left = sender.send(result);
        });
        receiver.await.unwrap_or_else(|_| {
            tracing::error!(kind, "a file action failed by a defect of the runtime");
            Err(ExecuteError::Failed("the file action failed by a defect of the runtime".to_owned()))
        })
    }

    async fn run(&self, action: &RunAction, timeout: Option<f64>) -> Observation {
        if self.is_closed() {
            return failed(format!("Runtime not initialized for command: {}", action.command));
        }
        let seconds = timeout.filter(|seconds| *seconds > 0.0).unwrap_or(self.options.timeout);
        let limits = CommandLimits { seconds, patience: self.options.patience };
        let root = self.workspace_root().display().to_string();
        if action.is_input {
            return self.commands.input(action, limits, &root).await;
        }
        if action.command.trim().is_empty()
            && let Some(command) = self.commands.given_back()
        {
            return self.commands.more(command, action, limits, &root).await;
        }
        // Questions of the runtime about a repository name its directory.
        let directory = match action.cwd.as_deref().filter(|_| action.is_static) {
            Some(directory) => self.workspace_root().join(directory),
            None => self.workspace_root().to_owned(),
        };
        let start = Start {
            text: &action.command,
            directory: &directory,
            environment: self.environment(),
            deadline: limits.deadline(),
            input: self.options.input,
            spawner: &self.options.spawner,
            listener: self.listener.clone(),
            closing: self.closing.clone(),
        };
        match Command::start(start).await {
            Ok((command, running)) => {
                self.followers.spawn(running.follow());
                self.commands.first_wait(command, action, limits, &root).await
            }
            Err(error) => failed(format!("Error running command \"{}\": {error}", action.command)),
        }
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        let is_set = |name: &OsString| name.to_str().is_some_and(|name| variables.contains_key(name));
        let base = self.options.environment.iter().filter(|(name, _)| !is_set(name)).cloned();
        base.chain(variables.iter().map(|(name, value)| (name.into(), value.expose().into()))).collect()
    }
}

impl Drop for CliRuntime {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl ActionExecutor for CliRuntime {
    fn execute<'a>(&'a self, event: &'a ActionEvent) -> BoxFuture<'a, Result<Observation, ExecuteError>> {
        Box::pin(self.dispatch(event))
    }
}

/// Removes the temporary workspaces of a session (B2). What fails is reported, and the rest is removed.
///
/// # Errors
///
/// The directory for temporary files can not be read.
pub fn delete_workspaces(sid: &str) -> io::Result<usize> {
    let prefix = workspace_prefix(sid);
    let mut removed = 0;
    for entry in fs::read_dir(std::env::temp_dir())? {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix));
        // A link with such a name is somebody else's.
        if !is_ours || !entry.file_type()?.is_dir() {
            continue;
        }
        match fs::remove_dir_all(entry.path()) {
            Ok(()) => removed += 1,
            Err(error) => tracing::warn!(%error, path = %entry.path().display(), "a workspace can not be removed"),
        }
    }
    Ok(removed)
}

/// A session's id may have characters that a name can not have.
fn workspace_prefix(sid: &str) -> String {
    format!("{PREFIX}{}_", sid.replace(['/', '\0'], "-"))
}

fn failed(content: impl Into<String>) -> Observation {
    Observation::Error(ErrorObservation::new(content.into()))
}

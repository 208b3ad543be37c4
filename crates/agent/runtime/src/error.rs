//! Why a session could not do something (runtime-interface 16).

use std::{io, path::PathBuf};

use gloveport_archive::ArchiveError;
#[cfg(all(feature = "in-process", target_os = "linux"))]
use gloveport_cli_runtime::CliError;
use gloveport_client::{ClientError, causes};
use gloveport_event_stream::{AddEventError, HistoryError, SharedError, SubscribeError};
#[cfg(all(feature = "in-process", target_os = "linux"))]
use gloveport_executor::{ExecError, ExecutorError};
use gloveport_mcp_client::ToolError;
use gloveport_protocol::ExecuteError;
use gloveport_provider::ProviderError;
use gloveport_security::{AnalyzerError, GateError};

use crate::{
    environment::EnvironmentPlace,
    git_providers::GitProviderError,
    llm_edit::{LlmEditError, LlmError},
};

/// Any other error as the cause of one.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a session could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// There is no sandbox yet.
    #[error("the session is not connected; call `connect` first")]
    NotConnected,
    /// The session is over.
    #[error("the session is closed")]
    Closed,
    /// The sandbox cannot be had for now.
    #[error("{what}{}", because(source.as_ref()))]
    Unavailable {
        /// What is missing.
        what: String,
        /// Why.
        source: Option<Cause>,
    },
    /// The sandbox is gone, or its server does not answer.
    #[error("{what}{}", because(source.as_ref()))]
    Disconnected {
        /// What is gone.
        what: String,
        /// Why, as far as it is known.
        source: Option<Cause>,
    },
    /// There is no such sandbox.
    #[error("{0}")]
    NotFound(String),
    /// The tools that are confined to a directory refuse something, or could not do it.
    #[cfg(all(feature = "in-process", target_os = "linux"))]
    #[error(transparent)]
    Confined(#[from] CliError),
    /// The provider of the sandbox could not do something.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The session's sandbox has no provider that could do this.
    #[error("{0} needs a sandbox that a provider hosts; this session's has none")]
    NotHosted(&'static str),
    /// A setting that cannot be passed over without making the sandbox less safe than it says.
    #[error("the runtime `{runtime}` cannot do what `{key}` says: {reason}")]
    Setting {
        /// The key of the configuration, with its section.
        key: &'static str,
        /// The runtime.
        runtime: String,
        /// What cannot be done, and what to do instead.
        reason: String,
    },
    /// A variable of the backend has a value that is none.
    #[error("the variable `{name}` must be {must}, not `{value}`")]
    BackendVariable {
        /// The variable.
        name: &'static str,
        /// What it must be.
        must: &'static str,
        /// What it is.
        value: String,
    },
    /// The tools in this process could not be started.
    #[cfg(all(feature = "in-process", target_os = "linux"))]
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// An action gave no observation.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// A request to the sandbox failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The file to be copied does not exist.
    #[error("Source file {} does not exist", .0.display())]
    SourceMissing(PathBuf),
    /// A file of this machine.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried: "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A zip file could not be made or read.
    #[error(transparent)]
    Archive(Box<ArchiveError>),
    /// A variable was not set.
    #[error("Failed to add env vars [{}] to {}: {content}", names.join(", "), place.as_str())]
    Environment {
        /// The variables.
        names: Vec<String>,
        /// Where they should be.
        place: EnvironmentPlace,
        /// What the sandbox says, without the values.
        content: String,
    },
    /// No shell accepts the name.
    #[error("`{name}` cannot be the name of an environment variable: use letters, digits and `_`, and no digit first")]
    VariableName {
        /// The name.
        name: String,
    },
    /// No process accepts the value.
    #[error("the value of the environment variable `{name}` has a NUL character, which no process accepts")]
    VariableValue {
        /// The variable.
        name: String,
    },
    /// Neither a token nor a repository.
    #[error("Missing either Git token or valid repository")]
    NoRepository,
    /// The provider does not give the repository.
    #[error("Git provider authentication issue when getting remote URL")]
    GitAuthentication {
        /// Why.
        source: Cause,
    },
    /// The connections to git providers cannot be made.
    #[error(transparent)]
    GitProvider(#[from] GitProviderError),
    /// The configured address of the model that edits is none.
    #[error("`base_url` of the model that edits ([llm.draft_editor], or else [llm]) is not a URL: {source}")]
    ModelAddress {
        /// What is wrong.
        source: Cause,
    },
    /// The model that edits cannot be reached.
    #[error(transparent)]
    Model(#[from] LlmError),
    /// An edit by a model failed.
    #[error(transparent)]
    Edit(#[from] LlmEditError),
    /// The name of a branch would be taken for an option.
    #[error("`{0}` cannot be the name of a branch")]
    Branch(String),
    /// The changes of a file cannot be shown.
    #[error("error_in_git_diff: {0}")]
    GitDiff(String),
    /// The history could not be written.
    #[error(transparent)]
    AddEvent(#[from] AddEventError),
    /// The history could not be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// Another session with this id listens to the stream.
    #[error(transparent)]
    Subscribe(#[from] SubscribeError),
    /// The server of the sandbox executes actions only.
    #[error(
        "the server of this session has only the OpenHands interface; a directory, variables or a shell of a command's own \
         need a gloveport server"
    )]
    OnlyActions,
    /// The command cannot be started.
    #[cfg(all(feature = "in-process", target_os = "linux"))]
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// An event was not added to a history that others write, too.
    #[error(transparent)]
    Shared(#[from] SharedError),
    /// The session has no event stream.
    #[error("the session has no event stream, which {0} needs")]
    NoStream(&'static str),
    /// The security analyzer could not be made.
    #[error(transparent)]
    Analyzer(#[from] AnalyzerError),
    /// No MCP server has the tool that was to be called.
    #[error(transparent)]
    McpTool(#[from] ToolError),
    /// An action that should be let pass or refused.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// A task of the session failed by a defect.
    #[error("a part of the session failed by a defect: {0}")]
    Defect(#[from] tokio::task::JoinError),
}

impl From<ArchiveError> for RuntimeError {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(Box::new(error))
    }
}

impl RuntimeError {
    /// Whether the sandbox is out of reach, for which a backend shows a session as disconnected
    /// (runtime-interface 3, 16).
    pub const fn is_unavailable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Disconnected { .. } | Self::NotFound(_) => true,
            Self::Provider(error) => error.is_temporary(),
            _ => false,
        }
    }

    /// Whether the sandbox did not answer: it may rest, start anew, or be gone.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        match self {
            Self::Execute(error) => is_network(error),
            _ => self.is_unavailable(),
        }
    }
}

fn because(source: Option<&Cause>) -> String {
    source.map(|source| format!(": {}", causes(&**source))).unwrap_or_default()
}

/// The name that the interface has for an error, in front of its text in a status (runtime-interface 5, 16).
pub(crate) fn type_name(error: &ExecuteError) -> &'static str {
    match error {
        ExecuteError::Timeout { .. } => "AgentRuntimeTimeoutError",
        ExecuteError::Disconnected(_) => "AgentRuntimeDisconnectedError",
        ExecuteError::Unreachable(_) => "ConnectError",
        ExecuteError::ConnectionLost(_) => "ReadError",
        ExecuteError::Status { .. } => "RequestHTTPError",
        ExecuteError::RetriesExhausted { .. } => "RetryError",
        ExecuteError::NotRunnable { .. } => "AttributeError",
        ExecuteError::BlockingWithoutTimeout | ExecuteError::PluginMissing(_) | ExecuteError::Failed(_) => {
            "RuntimeError"
        }
    }
}

/// Whether the connection to the sandbox failed, as opposed to the action (runtime-interface 5).
pub(crate) const fn is_network(error: &ExecuteError) -> bool {
    matches!(error, ExecuteError::Unreachable(_) | ExecuteError::ConnectionLost(_) | ExecuteError::Disconnected(_))
}

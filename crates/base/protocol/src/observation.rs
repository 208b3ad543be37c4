//! What came of an action (actions-and-observations 4).

mod run;
mod types;

use serde_json::{Map, Value};

pub use run::{CommandMetadata, RunObservation};
pub use types::{
    AgentStateChangedObservation, BrowseObservation, CondenseObservation, DelegateObservation, DownloadObservation,
    EditObservation, ErrorObservation, LoopDetectionObservation, McpObservation, MicroagentKnowledge, ReadObservation,
    RecallObservation, RunIpythonObservation, SuccessObservation, TaskTrackingObservation, ThinkObservation,
    UserRejectedObservation, WriteObservation,
};

use crate::error::FieldError;
use crate::fields::{Arguments, WireStruct};
use crate::values::RecallType;

/// An observation of any kind.
///
/// The executing side gives the first seven and `error`.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// Output of the shell.
    Run(RunObservation),
    /// Output of a notebook cell.
    RunIpython(RunIpythonObservation),
    /// Content of a file.
    Read(ReadObservation),
    /// A file was written.
    Write(WriteObservation),
    /// A file was changed, or the editor says why not.
    Edit(EditObservation),
    /// What the browser shows.
    Browse(BrowseObservation),
    /// The action failed in a way the agent can act upon.
    Error(ErrorObservation),
    /// The browser downloaded a file.
    Download(DownloadObservation),
    /// Nothing.
    Null,
    /// The action succeeded.
    Success(SuccessObservation),
    /// The user refused the action.
    UserRejected(UserRejectedObservation),
    /// Output of a condensation.
    Condense(CondenseObservation),
    /// A thought was logged.
    Think(ThinkObservation),
    /// The agent is in a loop.
    LoopDetection(LoopDetectionObservation),
    /// The controller changed its state.
    AgentStateChanged(AgentStateChangedObservation),
    /// Another agent finished.
    Delegate(DelegateObservation),
    /// Context or knowledge.
    Recall(RecallObservation),
    /// Result of an MCP tool.
    Mcp(McpObservation),
    /// The list of tasks.
    TaskTracking(TaskTrackingObservation),
}

/// The kinds with a class, by their names on the wire.
pub(crate) const KINDS: [&str; 19] = [
    "run",
    "run_ipython",
    "read",
    "write",
    "edit",
    "browse",
    "error",
    "download",
    "null",
    "success",
    "user_rejected",
    "condense",
    "think",
    "loop_detection",
    "agent_state_changed",
    "delegate",
    "recall",
    "mcp",
    "task_tracking",
];

impl Observation {
    /// Name on the wire.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::RunIpython(_) => "run_ipython",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Edit(_) => "edit",
            Self::Browse(_) => "browse",
            Self::Error(_) => "error",
            Self::Download(_) => "download",
            Self::Null => "null",
            Self::Success(_) => "success",
            Self::UserRejected(_) => "user_rejected",
            Self::Condense(_) => "condense",
            Self::Think(_) => "think",
            Self::LoopDetection(_) => "loop_detection",
            Self::AgentStateChanged(_) => "agent_state_changed",
            Self::Delegate(_) => "delegate",
            Self::Recall(_) => "recall",
            Self::Mcp(_) => "mcp",
            Self::TaskTracking(_) => "task_tracking",
        }
    }

    /// What happened, for a person (actions-and-observations 4.1).
    pub fn message(&self) -> String {
        match self {
            Self::Run(run) => {
                format!("Command `{}` executed with exit code {}.", run.command, run.metadata.exit_code)
            }
            Self::RunIpython(_) => "Code executed in IPython cell.".to_owned(),
            Self::Read(read) => format!("I read the file {}.", read.path),
            Self::Write(write) => format!("I wrote to the file {}.", write.path),
            Self::Edit(edit) => format!("I edited the file {}.", edit.path),
            Self::Browse(browse) => format!("Visited {}", browse.url),
            Self::Download(download) => format!("Downloaded the file at location: {}", download.file_path),
            Self::Null => "No observation".to_owned(),
            Self::Error(_)
            | Self::Success(_)
            | Self::UserRejected(_)
            | Self::Condense(_)
            | Self::Think(_)
            | Self::Mcp(_)
            | Self::TaskTracking(_) => self.content().to_owned(),
            Self::LoopDetection(_) | Self::AgentStateChanged(_) | Self::Delegate(_) => String::new(),
            Self::Recall(recall) => match recall.recall_type {
                RecallType::WorkspaceContext => "Added workspace context",
                RecallType::Knowledge => "Added microagent knowledge",
            }
            .to_owned(),
        }
    }

    /// The main text.
    pub fn content(&self) -> &str {
        match self {
            Self::Run(observation) => &observation.content,
            Self::RunIpython(observation) => &observation.content,
            Self::Read(observation) => &observation.content,
            Self::Write(observation) => &observation.content,
            Self::Edit(observation) => &observation.content,
            Self::Browse(observation) => &observation.content,
            Self::Error(observation) => &observation.content,
            Self::Download(observation) => &observation.content,
            Self::Null => "",
            Self::Success(observation) => &observation.content,
            Self::UserRejected(observation) => &observation.content,
            Self::Condense(observation) => &observation.content,
            Self::Think(observation) => &observation.content,
            Self::LoopDetection(observation) => &observation.content,
            Self::AgentStateChanged(observation) => &observation.content,
            Self::Delegate(observation) => &observation.content,
            Self::Recall(observation) => &observation.content,
            Self::Mcp(observation) => &observation.content,
            Self::TaskTracking(observation) => &observation.content,
        }
    }

    /// The top-level `success`, which only these two kinds have (actions-and-observations 2.2).
    pub(crate) fn success(&self) -> Option<bool> {
        match self {
            Self::Run(run) => Some(run.success()),
            Self::RunIpython(_) => Some(true),
            _ => None,
        }
    }

    /// Builds the observation of a kind from its `extras` with `content` among them.
    pub(crate) fn from_fields(kind: &'static str, fields: &Map<String, Value>) -> Result<Self, FieldError> {
        Ok(match kind {
            "run" => Self::Run(WireStruct::from_map(fields)?),
            "run_ipython" => Self::RunIpython(WireStruct::from_map(fields)?),
            "read" => Self::Read(WireStruct::from_map(fields)?),
            "write" => Self::Write(WireStruct::from_map(fields)?),
            "edit" => Self::Edit(WireStruct::from_map(fields)?),
            "browse" => Self::Browse(WireStruct::from_map(fields)?),
            "error" => Self::Error(WireStruct::from_map(fields)?),
            "download" => Self::Download(WireStruct::from_map(fields)?),
            "success" => Self::Success(WireStruct::from_map(fields)?),
            "user_rejected" => Self::UserRejected(WireStruct::from_map(fields)?),
            "condense" => Self::Condense(WireStruct::from_map(fields)?),
            "think" => Self::Think(WireStruct::from_map(fields)?),
            "loop_detection" => Self::LoopDetection(WireStruct::from_map(fields)?),
            "agent_state_changed" => Self::AgentStateChanged(WireStruct::from_map(fields)?),
            "delegate" => Self::Delegate(WireStruct::from_map(fields)?),
            "recall" => Self::Recall(WireStruct::from_map(fields)?),
            "mcp" => Self::Mcp(WireStruct::from_map(fields)?),
            "task_tracking" => Self::TaskTracking(WireStruct::from_map(fields)?),
            _ => {
                Arguments::check("NullObservation", fields, &["content"], &[])?;
                Self::Null
            }
        })
    }

    /// The fields that go into `extras`.
    pub(crate) fn to_extras(&self) -> Map<String, Value> {
        let mut fields = match self {
            Self::Run(observation) => observation.to_map(),
            Self::RunIpython(observation) => observation.to_map(),
            Self::Read(observation) => observation.to_map(),
            Self::Write(observation) => observation.to_map(),
            Self::Edit(observation) => observation.to_map(),
            Self::Browse(observation) => observation.to_map(),
            Self::Error(observation) => observation.to_map(),
            Self::Download(observation) => observation.to_map(),
            Self::Null => Map::new(),
            Self::Success(observation) => observation.to_map(),
            Self::UserRejected(observation) => observation.to_map(),
            Self::Condense(observation) => observation.to_map(),
            Self::Think(observation) => observation.to_map(),
            Self::LoopDetection(observation) => observation.to_map(),
            Self::AgentStateChanged(observation) => observation.to_map(),
            Self::Delegate(observation) => observation.to_map(),
            Self::Recall(observation) => observation.to_map(),
            Self::Mcp(observation) => observation.to_map(),
            Self::TaskTracking(observation) => observation.to_map(),
        };
        fields.shift_remove("content");
        fields
    }
}

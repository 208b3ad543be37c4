//! What the caller wants done (actions-and-observations 3).

mod editing;
pub(crate) mod names;
mod types;

use serde_json::{Map, Value};

pub use types::{
    BrowseAction, BrowseInteractiveAction, CallToolMcpAction, ChangeAgentStateAction, CondensationAction,
    DelegateAction, EditAction, FinishAction, InsertLine, LoopRecoveryAction, MessageAction, ReadAction, RecallAction,
    RejectAction, RunAction, RunIpythonAction, SystemAction, TaskTrackingAction, ThinkAction, WriteAction,
};

use crate::error::FieldError;
use crate::fields::{Arguments, WireStruct};
use crate::python;
use crate::truncate::CONTENT_LIMIT;
use crate::values::{ConfirmationState, SecurityRisk};

/// An action of any kind.
///
/// The first eight kinds can be executed; only `call_tool_mcp` of them never reaches the executing side.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Run a command in the shell, or feed the one that runs.
    Run(RunAction),
    /// Run a cell in the notebook kernel.
    RunIpython(RunIpythonAction),
    /// Read a file.
    Read(ReadAction),
    /// Write a file.
    Write(WriteAction),
    /// Change a file with the editor.
    Edit(EditAction),
    /// Open a page in the browser.
    Browse(BrowseAction),
    /// Drive the browser.
    BrowseInteractive(BrowseInteractiveAction),
    /// Call a tool of an MCP server; the caller does this itself.
    CallToolMcp(CallToolMcpAction),
    /// Say something.
    Message(MessageAction),
    /// The agent's system prompt.
    System(SystemAction),
    /// Do nothing.
    Null,
    /// Log a thought.
    Think(ThinkAction),
    /// End the task.
    Finish(FinishAction),
    /// Refuse the task.
    Reject(RejectAction),
    /// Hand a task to another agent.
    Delegate(DelegateAction),
    /// Fetch context or knowledge.
    Recall(RecallAction),
    /// Move the agent's controller to another state.
    ChangeAgentState(ChangeAgentStateAction),
    /// Drop events from the agent's view.
    Condensation(CondensationAction),
    /// Ask for a condensation.
    CondensationRequest,
    /// Show or change the list of tasks.
    TaskTracking(TaskTrackingAction),
    /// Choose a way out of a loop.
    LoopRecovery(LoopRecoveryAction),
}

impl Action {
    /// Name on the wire.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::RunIpython(_) => "run_ipython",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Edit(_) => "edit",
            Self::Browse(_) => "browse",
            Self::BrowseInteractive(_) => "browse_interactive",
            Self::CallToolMcp(_) => "call_tool_mcp",
            Self::Message(_) => "message",
            Self::System(_) => "system",
            Self::Null => "null",
            Self::Think(_) => "think",
            Self::Finish(_) => "finish",
            Self::Reject(_) => "reject",
            Self::Delegate(_) => "delegate",
            Self::Recall(_) => "recall",
            Self::ChangeAgentState(_) => "change_agent_state",
            Self::Condensation(_) => "condensation",
            Self::CondensationRequest => "condensation_request",
            Self::TaskTracking(_) => "task_tracking",
            Self::LoopRecovery(_) => "loop_recovery",
        }
    }

    /// What the action is about, for a person (actions-and-observations 3.1).
    pub fn message(&self) -> String {
        match self {
            Self::Run(action) => format!("Running command: {}", action.command),
            Self::RunIpython(action) => format!("Running Python code interactively: {}", action.code),
            Self::Read(action) => format!("Reading file: {}", action.path),
            Self::Write(action) => format!("Writing file: {}", action.path),
            Self::Edit(_) | Self::LoopRecovery(_) => String::new(),
            Self::Browse(action) => format!("I am browsing the URL: {}", action.url),
            Self::BrowseInteractive(action) => {
                format!("I am interacting with the browser:\n```\n{}\n```", action.browser_actions)
            }
            Self::CallToolMcp(action) => format!(
                "I am interacting with the MCP server with name:\n```\n{}\n```\nand arguments:\n```\n{}\n```",
                action.name,
                python::repr_object(&action.arguments)
            ),
            Self::Message(action) => action.content.clone(),
            Self::System(action) => action.content.clone(),
            Self::Null => "No action".to_owned(),
            Self::Think(action) => format!("I am thinking...: {}", action.thought),
            Self::Finish(action) if action.thought.is_empty() => "All done! What's next on the agenda?".to_owned(),
            Self::Finish(action) => action.thought.clone(),
            Self::Reject(action) => reject_message(action),
            Self::Delegate(action) => format!("I'm asking {} for help with this task.", action.agent),
            Self::Recall(action) => format!("Retrieving content for: {}", python::bounded(&action.query, 50)),
            Self::ChangeAgentState(action) => format!("Agent state changed to {}", action.agent_state),
            Self::Condensation(action) => condensation_message(action),
            Self::CondensationRequest => "Requesting a condensation of the conversation history.".to_owned(),
            Self::TaskTracking(action) => match action.task_list.len() {
                0 => "Clearing the task list.".to_owned(),
                1 => "Managing 1 task item.".to_owned(),
                count => format!("Managing {count} task items."),
            },
        }
    }

    /// Whether actions of this kind can be executed at all.
    pub const fn is_runnable(&self) -> bool {
        matches!(
            self,
            Self::Run(_)
                | Self::RunIpython(_)
                | Self::Read(_)
                | Self::Write(_)
                | Self::Edit(_)
                | Self::Browse(_)
                | Self::BrowseInteractive(_)
                | Self::CallToolMcp(_)
        )
    }

    /// Whether the output bypasses the agent; true only for a `run` that says so.
    pub const fn hidden(&self) -> bool {
        match self {
            Self::Run(action) => action.hidden,
            _ => false,
        }
    }

    /// Whether the user let it pass; nothing for kinds that do not carry this (security 1).
    pub const fn confirmation_state(&self) -> Option<ConfirmationState> {
        match self {
            Self::Run(action) => Some(action.confirmation_state),
            Self::RunIpython(action) => Some(action.confirmation_state),
            _ => None,
        }
    }

    /// How dangerous it is held to be; nothing for kinds that do not carry this (security 1).
    pub const fn security_risk(&self) -> Option<SecurityRisk> {
        match self {
            Self::Run(action) => Some(action.security_risk),
            Self::RunIpython(action) => Some(action.security_risk),
            Self::Read(action) => Some(action.security_risk),
            Self::Write(action) => Some(action.security_risk),
            Self::Edit(action) => Some(action.security_risk),
            Self::Browse(action) => Some(action.security_risk),
            Self::BrowseInteractive(action) => Some(action.security_risk),
            Self::CallToolMcp(action) => Some(action.security_risk),
            Self::Message(action) => Some(action.security_risk),
            _ => None,
        }
    }

    /// Says how dangerous it is held to be. Kinds that do not carry this stay as they are.
    pub fn set_security_risk(&mut self, risk: SecurityRisk) {
        match self {
            Self::Run(action) => action.security_risk = risk,
            Self::RunIpython(action) => action.security_risk = risk,
            Self::Read(action) => action.security_risk = risk,
            Self::Write(action) => action.security_risk = risk,
            Self::Edit(action) => action.security_risk = risk,
            Self::Browse(action) => action.security_risk = risk,
            Self::BrowseInteractive(action) => action.security_risk = risk,
            Self::CallToolMcp(action) => action.security_risk = risk,
            Self::Message(action) => action.security_risk = risk,
            _ => {}
        }
    }

    /// Blanks why the agent acts, as for an action that is published a second time (security 4).
    pub fn clear_thought(&mut self) {
        let thought = match self {
            Self::Run(action) => &mut action.thought,
            Self::RunIpython(action) => &mut action.thought,
            Self::Read(action) => &mut action.thought,
            Self::Write(action) => &mut action.thought,
            Self::Edit(action) => &mut action.thought,
            Self::Browse(action) => &mut action.thought,
            Self::BrowseInteractive(action) => &mut action.thought,
            Self::CallToolMcp(action) => &mut action.thought,
            _ => return,
        };
        thought.clear();
    }

    /// Why the agent acts; empty when it gave no reason or the kind has none.
    pub fn thought(&self) -> &str {
        match self {
            Self::Run(action) => &action.thought,
            Self::RunIpython(action) => &action.thought,
            Self::Read(action) => &action.thought,
            Self::Write(action) => &action.thought,
            Self::Edit(action) => &action.thought,
            Self::Browse(action) => &action.thought,
            Self::BrowseInteractive(action) => &action.thought,
            Self::CallToolMcp(action) => &action.thought,
            Self::Think(action) => &action.thought,
            Self::Finish(action) => &action.thought,
            Self::Reject(action) => &action.thought,
            Self::Delegate(action) => &action.thought,
            Self::Recall(action) => &action.thought,
            Self::ChangeAgentState(action) => &action.thought,
            Self::TaskTracking(action) => &action.thought,
            Self::Message(_)
            | Self::System(_)
            | Self::Null
            | Self::Condensation(_)
            | Self::CondensationRequest
            | Self::LoopRecovery(_) => "",
        }
    }

    /// Builds the action of a kind from its normalised `args`.
    pub(crate) fn from_args(kind: &'static str, args: &Map<String, Value>) -> Result<Self, FieldError> {
        Ok(match kind {
            "run" => Self::Run(WireStruct::from_map(args)?),
            "run_ipython" => Self::RunIpython(WireStruct::from_map(args)?),
            "read" => Self::Read(WireStruct::from_map(args)?),
            "write" => Self::Write(WireStruct::from_map(args)?),
            "edit" => Self::Edit(WireStruct::from_map(args)?),
            "browse" => Self::Browse(WireStruct::from_map(args)?),
            "browse_interactive" => Self::BrowseInteractive(WireStruct::from_map(args)?),
            "call_tool_mcp" => Self::CallToolMcp(WireStruct::from_map(args)?),
            "message" => Self::Message(WireStruct::from_map(args)?),
            "system" => Self::System(WireStruct::from_map(args)?),
            "think" => Self::Think(WireStruct::from_map(args)?),
            "finish" => Self::Finish(WireStruct::from_map(args)?),
            "reject" => Self::Reject(WireStruct::from_map(args)?),
            "delegate" => Self::Delegate(WireStruct::from_map(args)?),
            "recall" => Self::Recall(WireStruct::from_map(args)?),
            "change_agent_state" => Self::ChangeAgentState(WireStruct::from_map(args)?),
            "condensation" => Self::Condensation(WireStruct::from_map(args)?),
            "condensation_request" => {
                Arguments::check("CondensationRequestAction", args, &[], &[])?;
                Self::CondensationRequest
            }
            "task_tracking" => Self::TaskTracking(WireStruct::from_map(args)?),
            "loop_recovery" => Self::LoopRecovery(WireStruct::from_map(args)?),
            _ => {
                Arguments::check("NullAction", args, &[], &[])?;
                Self::Null
            }
        })
    }

    /// The `args` object.
    pub(crate) fn to_args(&self) -> Map<String, Value> {
        match self {
            Self::Run(action) => action.to_map(),
            Self::RunIpython(action) => action.to_map(),
            Self::Read(action) => action.to_map(),
            Self::Write(action) => action.to_map(),
            Self::Edit(action) => action.to_map(),
            Self::Browse(action) => action.to_map(),
            Self::BrowseInteractive(action) => action.to_map(),
            Self::CallToolMcp(action) => action.to_map(),
            Self::Message(action) => action.to_map(),
            Self::System(action) => action.to_map(),
            Self::Null | Self::CondensationRequest => Map::new(),
            Self::Think(action) => action.to_map(),
            Self::Finish(action) => action.to_map(),
            Self::Reject(action) => action.to_map(),
            Self::Delegate(action) => action.to_map(),
            Self::Recall(action) => action.to_map(),
            Self::ChangeAgentState(action) => action.to_map(),
            Self::Condensation(action) => action.to_map(),
            Self::TaskTracking(action) => action.to_map(),
            Self::LoopRecovery(action) => action.to_map(),
        }
    }
}

fn reject_message(action: &RejectAction) -> String {
    let text = "Task is rejected by the agent.";
    match action.outputs.get("reason") {
        None => text.to_owned(),
        Some(Value::String(reason)) => format!("{text} Reason: {reason}"),
        Some(reason) => format!("{text} Reason: {}", python::repr(reason)),
    }
}

/// The list of events is cut after [`CONTENT_LIMIT`] characters, since two numbers can name a range of any size.
fn condensation_message(action: &CondensationAction) -> String {
    if let Some(summary) = action.summary.as_deref().filter(|summary| !summary.is_empty()) {
        return format!("Summary: {summary}");
    }
    let mut list = String::from("[");
    let mut push = |id: i64| {
        if list.len() > 1 {
            list.push_str(", ");
        }
        list.push_str(&id.to_string());
        list.len() < CONTENT_LIMIT
    };
    match (&action.forgotten_event_ids, action.forgotten_events_start_id, action.forgotten_events_end_id) {
        (Some(ids), _, _) => {
            ids.iter().all(|id| push(*id));
        }
        (None, Some(start), Some(end)) => {
            (start..=end).all(&mut push);
        }
        (None, _, _) => {}
    }
    format!("Condenser is dropping the events: {list}].")
}

//! The fields of each kind of action, with their defaults (actions-and-observations 3.2 to 3.8).

use serde_json::{Map, Value};

use crate::error::describe;
use crate::fields::{WireField, wire_name, wire_struct};
use crate::values::{ConfirmationState, FileEditSource, FileReadSource, RecallType, SecurityRisk};

wire_struct! {
    /// `run`: a command for the shell (actions-and-observations 3.2).
    RunAction = "CmdRunAction" {
        required {
            /// The command; empty fetches more output of the running one.
            command: String,
        }
        optional {
            /// The text or keys go to the running process.
            is_input: bool = false,
            /// Why the agent acts.
            thought: String = String::new(),
            /// Only the hard timeout ends the wait, not a lack of output.
            blocking: bool = false,
            /// Runs in a fresh, separate shell.
            is_static: bool = false,
            /// Where a static command starts.
            cwd: Option<String> = None,
            /// The output bypasses the agent and is not truncated; echoed in the observation.
            hidden: bool = false,
            /// Ignored on execution.
            confirmation_state: ConfirmationState = ConfirmationState::Confirmed,
            /// Ignored on execution.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
        }
    }
}

wire_struct! {
    /// `run_ipython`: a cell for the notebook kernel (actions-and-observations 3.3).
    RunIpythonAction = "IPythonRunCellAction" {
        required {
            /// The cell.
            code: String,
        }
        optional {
            /// Why the agent acts.
            thought: String = String::new(),
            /// Appends the lines about working directory and interpreter to the output.
            include_extra: bool = true,
            /// Ignored on execution.
            confirmation_state: ConfirmationState = ConfirmationState::Confirmed,
            /// Ignored on execution.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
            /// Ignored on execution.
            kernel_init_code: String = String::new(),
        }
    }
}

wire_struct! {
    /// `read`: a file to be read (actions-and-observations 3.4).
    ReadAction = "FileReadAction" {
        required {
            /// The file.
            path: String,
        }
        optional {
            /// First line, counted from 0.
            start: i64 = 0,
            /// Line after the last one, counted from 0; -1 is the end of the file.
            end: i64 = -1,
            /// Why the agent acts.
            thought: String = String::new(),
            /// Ignored on execution.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
            /// Plain or through the editor.
            impl_source: FileReadSource = FileReadSource::Default,
            /// First and last line for the editor, both counted from 1 and included. What is no pair of integers gets
            /// its error text from the editor.
            view_range: Option<Vec<Value>> = None,
        }
    }
}

wire_struct! {
    /// `write`: a file to be written (actions-and-observations 3.5).
    WriteAction = "FileWriteAction" {
        required {
            /// The file.
            path: String,
            /// The new lines.
            content: String,
        }
        optional {
            /// First line to replace, counted from 0.
            start: i64 = 0,
            /// Line after the last one to replace, counted from 0; -1 is the end of the file.
            end: i64 = -1,
            /// Why the agent acts.
            thought: String = String::new(),
            /// Ignored on execution.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
        }
    }
}

/// The line after which the editor inserts, as it came: the conversion and its error text are the editor's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertLine {
    /// A line number; 0 is before the first line.
    Number(i64),
    /// A text that should be a line number.
    Text(String),
}

impl WireField for InsertLine {
    fn expected() -> String {
        "an integer or a string".to_owned()
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(Self::Text(text.clone())),
            _ => value.as_i64().map(Self::Number).ok_or_else(|| describe(value)),
        }
    }

    fn to_wire(&self) -> Value {
        match self {
            Self::Number(number) => Value::from(*number),
            Self::Text(text) => Value::String(text.clone()),
        }
    }
}

wire_struct! {
    /// `edit`: a change with the file editor (actions-and-observations 3.6).
    EditAction = "FileEditAction" {
        required {
            /// The file.
            path: String,
        }
        optional {
            /// `view`, `create`, `str_replace`, `insert` or `undo_edit`.
            command: String = String::new(),
            /// The whole file, for `create`.
            file_text: Option<String> = None,
            /// What is replaced, for `str_replace`.
            old_str: Option<String> = None,
            /// What replaces it, for `str_replace`; what is inserted, for `insert`.
            new_str: Option<String> = None,
            /// The line after which `insert` inserts.
            insert_line: Option<InsertLine> = None,
            /// Only for edits by a model, which the caller does itself.
            content: String = String::new(),
            /// Only for edits by a model, which the caller does itself.
            start: i64 = 1,
            /// Only for edits by a model, which the caller does itself.
            end: i64 = -1,
            /// Why the agent acts.
            thought: String = String::new(),
            /// Ignored on execution.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
            /// Who performs the edit; the executing side only knows its editor.
            impl_source: FileEditSource = FileEditSource::OhAci,
        }
    }
}

wire_struct! {
    /// `browse`: a page to be opened (actions-and-observations 3.7).
    BrowseAction = "BrowseURLAction" {
        required {
            /// The address.
            url: String,
        }
        optional {
            /// Why the agent acts.
            thought: String = String::new(),
            /// Ignored on execution.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
            /// The observation carries the accessibility tree.
            return_axtree: bool = false,
        }
    }
}

wire_struct! {
    /// `browse_interactive`: steps for the browser (actions-and-observations 3.7).
    BrowseInteractiveAction = "BrowseInteractiveAction" {
        required {
            /// The steps, as calls: `click('12')`.
            browser_actions: String,
        }
        optional {
            /// Why the agent acts.
            thought: String = String::new(),
            /// Ignored on execution.
            browsergym_send_msg_to_user: String = String::new(),
            /// Ignored on execution.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
            /// The observation carries the accessibility tree.
            return_axtree: bool = false,
        }
    }
}

wire_struct! {
    /// `call_tool_mcp`: a call of an MCP tool (actions-and-observations 3.8).
    CallToolMcpAction = "MCPAction" {
        required {
            /// The tool.
            name: String,
        }
        optional {
            /// Its arguments.
            arguments: Map<String, Value> = Map::new(),
            /// Why the agent acts.
            thought: String = String::new(),
            /// How dangerous the agent thinks this is.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
        }
    }
}

wire_struct! {
    /// `message`: something said by the user or the agent (actions-and-observations 3.8).
    MessageAction = "MessageAction" {
        required {
            /// The text.
            content: String,
        }
        optional {
            /// Files that belong to it.
            file_urls: Option<Vec<String>> = None,
            /// Images that belong to it.
            image_urls: Option<Vec<String>> = None,
            /// The agent waits for an answer.
            wait_for_response: bool = false,
            /// How dangerous the agent thinks this is.
            security_risk: SecurityRisk = SecurityRisk::Unknown,
        }
    }
}

wire_struct! {
    /// `system`: the agent's system prompt (actions-and-observations 3.8).
    SystemAction = "SystemMessageAction" {
        required {
            /// The prompt.
            content: String,
        }
        optional {
            /// The tools offered to the model.
            tools: Option<Vec<Value>> = None,
            /// Version of the backend.
            openhands_version: Option<String> = Some("0.62.0".to_owned()),
            /// The agent's class.
            agent_class: Option<String> = None,
        }
    }
}

wire_struct! {
    /// `think`: a logged thought (actions-and-observations 3.8).
    ThinkAction = "AgentThinkAction" {
        required {}
        optional {
            /// The thought.
            thought: String = String::new(),
        }
    }
}

wire_struct! {
    /// `finish`: the end of the task (actions-and-observations 3.8).
    FinishAction = "AgentFinishAction" {
        required {}
        optional {
            /// The last words to the user.
            final_thought: String = String::new(),
            /// Results of any form.
            outputs: Map<String, Value> = Map::new(),
            /// Why the agent acts.
            thought: String = String::new(),
        }
    }
}

wire_struct! {
    /// `reject`: the agent refuses the task (actions-and-observations 3.8).
    RejectAction = "AgentRejectAction" {
        required {}
        optional {
            /// Results of any form; `reason` is shown.
            outputs: Map<String, Value> = Map::new(),
            /// Why the agent acts.
            thought: String = String::new(),
        }
    }
}

wire_struct! {
    /// `delegate`: another agent is asked (actions-and-observations 3.8).
    DelegateAction = "AgentDelegateAction" {
        required {
            /// The other agent's class.
            agent: String,
            /// What it is given.
            inputs: Map<String, Value>,
        }
        optional {
            /// Why the agent acts.
            thought: String = String::new(),
        }
    }
}

wire_struct! {
    /// `recall`: context or knowledge is fetched (actions-and-observations 3.8).
    RecallAction = "RecallAction" {
        required {
            /// What is fetched.
            recall_type: RecallType,
        }
        optional {
            /// What it is about.
            query: String = String::new(),
            /// Why the agent acts.
            thought: String = String::new(),
        }
    }
}

wire_struct! {
    /// `change_agent_state`: the controller changes its state (actions-and-observations 3.8).
    ChangeAgentStateAction = "ChangeAgentStateAction" {
        required {
            /// The new state: usually a name of [`AgentState`](crate::values::AgentState), but nobody checks.
            agent_state: String,
        }
        optional {
            /// Why the agent acts.
            thought: String = String::new(),
        }
    }
}

wire_struct! {
    /// `condensation`: events leave the agent's view (actions-and-observations 3.8).
    ///
    /// Either the list or both ends of the range are given, and both parts of the summary or none.
    CondensationAction = "CondensationAction" {
        required {}
        optional {
            /// The events.
            forgotten_event_ids: Option<Vec<i64>> = None,
            /// The first event of a range.
            forgotten_events_start_id: Option<i64> = None,
            /// The last event of a range.
            forgotten_events_end_id: Option<i64> = None,
            /// What stands in for the events.
            summary: Option<String> = None,
            /// Where in the view the summary goes.
            summary_offset: Option<i64> = None,
        }
    }
}

impl CondensationAction {
    /// Drops the listed events.
    pub fn of_events(ids: Vec<i64>) -> Self {
        Self { forgotten_event_ids: Some(ids), ..Self::wire_default() }
    }

    /// Drops the events from `start` to `end`, both included.
    pub fn of_range(start: i64, end: i64) -> Self {
        Self { forgotten_events_start_id: Some(start), forgotten_events_end_id: Some(end), ..Self::wire_default() }
    }

    /// Whether the fields fit together; the wire refuses an action whose fields do not.
    pub const fn is_valid(&self) -> bool {
        let by_range = self.forgotten_events_start_id.is_some() && self.forgotten_events_end_id.is_some();
        (self.forgotten_event_ids.is_some() != by_range) && (self.summary.is_some() == self.summary_offset.is_some())
    }
}

wire_struct! {
    /// `task_tracking`: the list of tasks is shown or replaced (actions-and-observations 3.8).
    TaskTrackingAction = "TaskTrackingAction" {
        required {}
        optional {
            /// `view` or `plan`.
            command: String = "view".to_owned(),
            /// The tasks: objects with `id`, `title`, `status`, `notes`.
            task_list: Vec<Value> = Vec::new(),
            /// Why the agent acts.
            thought: String = String::new(),
        }
    }
}

wire_struct! {
    /// `loop_recovery`: the way out of a loop (actions-and-observations 3.8).
    LoopRecoveryAction = "LoopRecoveryAction" {
        required {}
        optional {
            /// 1 asks the user, 2 repeats the last prompt, 3 stops the agent.
            option: i64 = 1,
        }
    }
}

/// All fields of these have defaults.
macro_rules! default_from_wire {
    ($($name:ident),+) => {
        $(impl Default for $name {
            fn default() -> Self {
                Self::wire_default()
            }
        })+
    };
}

default_from_wire!(ThinkAction, FinishAction, RejectAction, TaskTrackingAction, LoopRecoveryAction);

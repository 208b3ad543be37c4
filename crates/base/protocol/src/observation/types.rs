//! The fields of each kind of observation, with their defaults (actions-and-observations 4.4 to 4.8).

use serde_json::{Map, Value};

use crate::error::describe;
use crate::fields::{WireField, WireStruct, wire_name, wire_struct};
use crate::values::{FileEditSource, FileReadSource, RecallType};

wire_struct! {
    /// `run_ipython`: output of a notebook cell (actions-and-observations 4.4).
    RunIpythonObservation = "IPythonRunCellObservation" {
        required {
            /// The output.
            content: String,
            /// The cell.
            code: String,
        }
        optional {
            /// Images as `data:image/png;base64,…`; none is `None`, never an empty list.
            image_urls: Option<Vec<String>> = None,
        }
    }
}

wire_struct! {
    /// `read`: content of a file (actions-and-observations 4.5).
    ReadObservation = "FileReadObservation" {
        required {
            /// The text.
            content: String,
            /// The file.
            path: String,
        }
        optional {
            /// Plain or through the editor.
            impl_source: FileReadSource = FileReadSource::Default,
        }
    }
}

wire_struct! {
    /// `write`: a file was written (actions-and-observations 4.5).
    WriteObservation = "FileWriteObservation" {
        required {
            /// Empty.
            content: String,
            /// The file.
            path: String,
        }
        optional {}
    }
}

wire_struct! {
    /// `edit`: what the editor did (actions-and-observations 4.5).
    EditObservation = "FileEditObservation" {
        required {
            /// What the agent's model gets to read.
            content: String,
        }
        optional {
            /// The file.
            path: String = String::new(),
            /// Whether the file was there before; always false for edits by the editor.
            prev_exist: bool = false,
            /// The action's `old_str`, not the old file.
            old_content: Option<String> = None,
            /// The action's `new_str`, not the new file.
            new_content: Option<String> = None,
            /// Who performed the edit.
            impl_source: FileEditSource = FileEditSource::LlmBasedEdit,
            /// The change as a unified diff.
            diff: Option<String> = None,
            /// Only for edits by a model, which the caller does itself.
            diff_cache as "_diff_cache": Option<String> = None,
        }
    }
}

wire_struct! {
    /// `browse`: what the browser shows (actions-and-observations 4.6).
    BrowseObservation = "BrowserOutputObservation" {
        required {
            /// The page as text.
            content: String,
            /// Its address.
            url: String,
            /// The kind of action that led here: `browse` or `browse_interactive`.
            trigger_by_action: String,
        }
        optional {
            /// The page as `data:image/png;base64,…`.
            screenshot: String = String::new(),
            /// Where the screenshot is stored.
            screenshot_path: Option<String> = None,
            /// The page with marked elements, in the same form.
            set_of_marks: String = String::new(),
            /// Whether the action failed.
            error: bool = false,
            /// Images that belong to the task.
            goal_image_urls: Vec<String> = Vec::new(),
            /// Addresses of all open pages.
            open_pages_urls: Vec<String> = Vec::new(),
            /// Index of the page in front; -1 if unknown.
            active_page_index: i64 = -1,
            /// Never filled.
            dom_object: Map<String, Value> = Map::new(),
            /// The accessibility tree, if the action asked for it.
            axtree_object: Map<String, Value> = Map::new(),
            /// Facts about its elements, if the action asked for it.
            extra_element_properties: Map<String, Value> = Map::new(),
            /// The steps that led here.
            last_browser_action: String = String::new(),
            /// Why they failed.
            last_browser_action_error: String = String::new(),
            /// Id of the focused element.
            focused_element_bid: Option<String> = Some(String::new()),
            /// Whether the text holds visible elements only.
            filter_visible_only: bool = false,
        }
    }
}

wire_struct! {
    /// `error`: why the action failed (actions-and-observations 4.7).
    ErrorObservation = "ErrorObservation" {
        required {
            /// The reason.
            content: String,
        }
        optional {
            /// Empty on the executing side.
            error_id: String = String::new(),
        }
    }
}

wire_struct! {
    /// `download`: the browser downloaded a file (actions-and-observations 4.7).
    DownloadObservation = "FileDownloadObservation" {
        required {
            /// What happened.
            content: String,
            /// Where the file is.
            file_path: String,
        }
        optional {}
    }
}

wire_struct! {
    /// `success`: the action succeeded (actions-and-observations 4.1).
    SuccessObservation = "SuccessObservation" {
        required {
            /// The text.
            content: String,
        }
        optional {}
    }
}

wire_struct! {
    /// `user_rejected`: the user refused the action (actions-and-observations 4.1).
    UserRejectedObservation = "UserRejectObservation" {
        required {
            /// The text.
            content: String,
        }
        optional {}
    }
}

wire_struct! {
    /// `condense`: output of a condensation (actions-and-observations 4.1).
    CondenseObservation = "AgentCondensationObservation" {
        required {
            /// The text.
            content: String,
        }
        optional {}
    }
}

wire_struct! {
    /// `think`: a thought was logged (actions-and-observations 4.1).
    ThinkObservation = "AgentThinkObservation" {
        required {
            /// The text.
            content: String,
        }
        optional {}
    }
}

wire_struct! {
    /// `loop_detection`: the agent is in a loop (actions-and-observations 4.1).
    LoopDetectionObservation = "LoopDetectionObservation" {
        required {
            /// The text.
            content: String,
        }
        optional {}
    }
}

wire_struct! {
    /// `agent_state_changed`: the controller changed its state (actions-and-observations 4.1).
    AgentStateChangedObservation = "AgentStateChangedObservation" {
        required {
            /// Empty.
            content: String,
            /// The new state: usually a name of [`AgentState`](crate::values::AgentState), but nobody checks.
            agent_state: String,
        }
        optional {
            /// Why.
            reason: String = String::new(),
        }
    }
}

wire_struct! {
    /// `delegate`: another agent finished (actions-and-observations 4.1).
    DelegateObservation = "AgentDelegateObservation" {
        required {
            /// What it says.
            content: String,
            /// Its results.
            outputs: Map<String, Value>,
        }
        optional {}
    }
}

wire_struct! {
    /// One text of a microagent (actions-and-observations 4.8).
    MicroagentKnowledge = "MicroagentKnowledge" {
        required {
            /// The microagent.
            name: String,
            /// The word that called it up.
            trigger: String,
            /// Its text.
            content: String,
        }
        optional {}
    }
}

impl WireField for MicroagentKnowledge {
    fn expected() -> String {
        "an object with name, trigger and content".to_owned()
    }

    fn from_wire(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or_else(|| describe(value))?;
        Self::from_map(members).map_err(|error| format!("an object that does not fit: {error}"))
    }

    fn to_wire(&self) -> Value {
        Value::Object(self.to_map())
    }
}

wire_struct! {
    /// `recall`: context or knowledge (actions-and-observations 4.8).
    RecallObservation = "RecallObservation" {
        required {
            /// The text.
            content: String,
            /// Which of the two it is.
            recall_type: RecallType,
        }
        optional {
            /// The repository.
            repo_name: String = String::new(),
            /// Where it is.
            repo_directory: String = String::new(),
            /// Its branch.
            repo_branch: String = String::new(),
            /// Its instructions to agents.
            repo_instructions: String = String::new(),
            /// Addresses of the sandbox, with their ports.
            runtime_hosts: Map<String, Value> = Map::new(),
            /// More instructions to the agent.
            additional_agent_instructions: String = String::new(),
            /// Today.
            date: String = String::new(),
            /// Names of secrets, with what they are for.
            custom_secrets_descriptions: Map<String, Value> = Map::new(),
            /// Instructions for this conversation.
            conversation_instructions: String = String::new(),
            /// Where the agent works.
            working_dir: String = String::new(),
            /// Texts of microagents.
            microagent_knowledge: Vec<MicroagentKnowledge> = Vec::new(),
        }
    }
}

wire_struct! {
    /// `mcp`: result of an MCP tool (actions-and-observations 4.1).
    McpObservation = "MCPObservation" {
        required {
            /// The result.
            content: String,
        }
        optional {
            /// The tool.
            name: String = String::new(),
            /// What it was called with.
            arguments: Map<String, Value> = Map::new(),
        }
    }
}

wire_struct! {
    /// `task_tracking`: the list of tasks (actions-and-observations 4.1).
    TaskTrackingObservation = "TaskTrackingObservation" {
        required {
            /// The list as text.
            content: String,
        }
        optional {
            /// The command that gave it.
            command: String = String::new(),
            /// The tasks.
            task_list: Vec<Value> = Vec::new(),
        }
    }
}

//! `[agent]` and its named groups (configuration 3 and 4).

use crate::{free_form::FreeForm, key::section};

/// Why the tables of an agent have no variable.
const NESTED: &str = "a table inside of [agent] is a named group";

section! {
    /// What an agent may use. `[agent]` holds for all; `[agent.NAME]` changes it for one.
    pub struct AgentConfig = "agent" {
        /// Offer the tools of the terminal interface.
        cli_mode: bool = false;
        /// Name of the group `[llm.NAME]` with the model; unset: `[llm]`.
        llm_config: Option<String> = None, example = "\"small\"";
        /// Python class of the agent.
        classpath: Option<String> = None, example = "\"my_package.MyAgent\"";
        /// File with the system prompt.
        system_prompt_filename: String = "system_prompt.j2".into();
        /// Offer the browser.
        enable_browsing: bool = true;
        /// Offer the editor that lets a model write the edit.
        enable_llm_editor: bool = false;
        /// Offer the editor with exact replacements.
        enable_editor: bool = true;
        /// Offer IPython.
        enable_jupyter: bool = true;
        /// Offer the shell.
        enable_cmd: bool = true;
        /// Offer the tool for thoughts.
        enable_think: bool = true;
        /// Offer the tool that ends the task.
        enable_finish: bool = true;
        /// Offer the tool that asks for a shorter history.
        enable_condensation_request: bool = false;
        /// Add knowledge about the repository and the sandbox to the prompt.
        enable_prompt_extensions: bool = true;
        /// Offer the tools of the configured MCP servers.
        enable_mcp: bool = true;
        /// Microagents to leave out.
        disabled_microagents: Vec<String> = Vec::new();
        /// Truncate the history if it does not fit the model.
        enable_history_truncation: bool = true;
        /// Show pages with marks on clickable elements.
        enable_som_visual_browsing: bool = true;
        /// Offer the list of planned tasks.
        enable_plan_mode: bool = true;
        /// How the history is shortened. Accepted, not used by gloveport.
        condenser: FreeForm = FreeForm::default(), file_only = NESTED, example = "{ type = \"noop\" }";
        /// How models are chosen. Accepted, not used by gloveport.
        model_routing: FreeForm = FreeForm::default(), file_only = NESTED,
            example = "{ router_name = \"noop_router\" }";
        /// Settings of your own.
        extended: FreeForm = FreeForm::default(), file_only = NESTED, example = "{ colour = \"green\" }";
        /// Runtime that the agent works in; the session sets it.
        runtime: Option<String> = None, example = "\"docker\"";
    }
}

//! The root: `[core]`, and all other sections (configuration 4).

use std::collections::BTreeMap;

use gloveport_protocol::Secret;

use super::{AgentConfig, CliConfig, KubernetesConfig, LlmConfig, SandboxConfig, SecurityConfig};
use crate::{free_form::FreeForm, key::section, mcp::McpConfig};

/// What replaces the keys for the workspace.
const USE_VOLUMES: &str = "use `volumes` in [sandbox]";

/// Name of the base group of models.
pub(crate) const BASE_LLM: &str = "llm";

/// Name of the base group of agents.
pub(crate) const BASE_AGENT: &str = "agent";

section! {
    /// Everything that is not in a section of its own.
    pub struct Config = "core" {
        /// Engine that hosts sandboxes.
        runtime: String = "docker".into();
        /// Default agent.
        default_agent: String = "CodeActAgent".into();
        /// Where events and settings are kept: `local`, `s3`, `google_cloud`; anything else: in memory.
        file_store: String = "local".into();
        /// Directory, or bucket, of that store.
        file_store_path: String = "~/.openhands".into();
        /// URL that is notified of every change in the store.
        file_store_web_hook_url: Option<String> = None, example = "\"https://example.com/hook\"";
        /// Headers for that URL. Their values are never shown.
        file_store_web_hook_headers: Option<BTreeMap<String, Secret>> = None,
            example = "{ Authorization = \"…\" }";
        /// Combine several changes into one notification.
        file_store_web_hook_batch: bool = false;
        /// Provide a browser in the sandbox.
        enable_browser: bool = true;
        /// Write all events of a session into this file, or into this directory as `SESSION.json`.
        save_trajectory_path: Option<String> = None, example = "\"trajectories\"";
        /// Also write screenshots.
        save_screenshots_in_trajectory: bool = false;
        /// File with events to replay.
        replay_trajectory_path: Option<String> = None, example = "\"trajectories/session.json\"";
        /// Key for the search engine; one that starts with `tvly-` adds an MCP server for it.
        search_api_key: Option<Secret> = None, example = "\"tvly-…\"";
        /// Directory on the host to work in.
        workspace_base: Option<String> = None, deprecated = USE_VOLUMES, example = "\"./workspace\"";
        /// Directory in the sandbox to work in.
        workspace_mount_path_in_sandbox: String = "/workspace".into();
        /// Directory on the host that is mounted.
        workspace_mount_path: Option<String> = None, deprecated = USE_VOLUMES, example = "\"/home/me/project\"";
        /// `FROM:TO`, changes the path of the mount if gloveport and the engine see different paths.
        workspace_mount_rewrite: Option<String> = None, deprecated = USE_VOLUMES, example = "\"/home:/mnt/home\"";
        /// Directory for data that can be recreated.
        cache_dir: String = "/tmp/cache".into();
        /// Work as the user `openhands` in the sandbox, not as root.
        run_as_openhands: bool = true;
        /// Maximum number of steps of a task.
        max_iterations: i64 = 500;
        /// Maximum cost of a task; unset: no limit.
        max_budget_per_task: Option<f64> = None, example = "5.0";
        /// Make an empty workspace a git repository.
        init_git_in_empty_workspace: bool = false;
        /// Print without colours.
        disable_color: bool = false;
        /// Secret that signs sessions; unset: a new one is kept in the store as `.jwt_secret`.
        jwt_secret: Option<Secret> = None, example = "\"…\"";
        /// Log more, here and in the sandbox.
        debug: bool = false;
        /// Largest file that may be uploaded, in MB; 0: any.
        file_uploads_max_file_size_mb: i64 = 0;
        /// Accept uploads of the allowed extensions only.
        file_uploads_restrict_file_types: bool = false;
        /// The allowed extensions.
        file_uploads_allowed_extensions: Vec<String> = vec![".*".into()];
        /// Let the terminal interface take several lines.
        cli_multiline_input: bool = false;
        /// Seconds after which a conversation is too old to be listed.
        conversation_max_age_seconds: i64 = 864_000;
        /// Shorten long histories with a model unless `[condenser]` says otherwise.
        enable_default_condenser: bool = true;
        /// Maximum number of conversations of a user at once.
        max_concurrent_conversations: i64 = 3;
        /// Seconds to wait for a client to come back.
        client_wait_timeout: i64 = 30;
        /// Host and port of the server whose `/mcp` agents may use.
        mcp_host: String = "localhost:3000".into(), dynamic = "`localhost:` and the variable `port`, else 3000";
        /// Name of the author of commits.
        git_user_name: String = "openhands".into();
        /// Address of the author of commits.
        git_user_email: String = "openhands@all-hands.dev".into();
    }
    with {
        /// Models by group; the base group is `llm`. See [`Config::llm`].
        llms: BTreeMap<String, LlmConfig> = BTreeMap::from([(BASE_LLM.into(), LlmConfig::default())]);
        /// Agents by group; the base group is `agent`. See [`Config::agent`].
        agents: BTreeMap<String, AgentConfig> = BTreeMap::from([(BASE_AGENT.into(), AgentConfig::default())]);
        /// `[sandbox]`.
        sandbox: SandboxConfig = SandboxConfig::default();
        /// `[security]`.
        security: SecurityConfig = SecurityConfig::default();
        /// `[mcp]`.
        mcp: McpConfig = McpConfig::default();
        /// `[kubernetes]`.
        kubernetes: KubernetesConfig = KubernetesConfig::default();
        /// The terminal interface.
        cli: CliConfig = CliConfig::default();
        /// `[condenser]`; accepted, not used by gloveport.
        condenser: FreeForm = FreeForm::default();
        /// `[model_routing]`; accepted, not used by gloveport.
        model_routing: FreeForm = FreeForm::default();
        /// `[extended]`, settings of your own.
        extended: FreeForm = FreeForm::default();
    }
}

impl Config {
    /// The model group of this name, else the base group (configuration 3).
    pub fn llm(&self, name: &str) -> LlmConfig {
        self.llms.get(name).or_else(|| self.llms.get(BASE_LLM)).cloned().unwrap_or_default()
    }

    /// The agent group of this name, else the base group (configuration 3).
    pub fn agent(&self, name: &str) -> AgentConfig {
        self.agents.get(name).or_else(|| self.agents.get(BASE_AGENT)).cloned().unwrap_or_default()
    }

    /// The base group of agents, which the variables `AGENT_*` set (configuration 2). The group of the agent that
    /// works by default is `config.agent(&config.default_agent)`.
    pub fn default_agent_config(&self) -> AgentConfig {
        self.agent(BASE_AGENT)
    }

    /// The model of an agent group: the group that its `llm_config` names, else the base group.
    pub fn llm_of_agent(&self, name: &str) -> LlmConfig {
        self.llm(self.agent(name).llm_config.as_deref().unwrap_or(BASE_LLM))
    }
}

//! What a session is made from (runtime-interface 2).

use std::{collections::BTreeMap, fmt, sync::Arc};

use gloveport_config::Config;
use gloveport_event_stream::{EventStream, FileStore};
use gloveport_mcp_client::TokenStore;
use gloveport_protocol::Secret;

use crate::{
    Connector,
    git_providers::{GitProviders, ProviderTokens, Refresh},
    status::StatusCallback,
};

/// What a session is made from.
pub struct RuntimeOptions {
    /// The configuration; the session keeps a copy of its own.
    pub config: Config,
    /// Gives the sandbox.
    pub connector: Arc<dyn Connector>,
    /// The history, from which actions are executed and to which observations are added.
    pub event_stream: Option<EventStream>,
    /// Where the list of tasks is kept; none is the store of the event stream.
    pub file_store: Option<Arc<dyn FileStore>>,
    /// The session: key of everything that belongs to it.
    pub sid: String,
    /// The user whose conversation it is.
    pub user_id: Option<String>,
    /// Plugins that the sandbox has: `jupyter`, `agent_skills`, `vscode`.
    pub plugins: Vec<String>,
    /// More variables for the tools.
    pub env_vars: BTreeMap<String, Secret>,
    /// The user's own secrets by name: variables of the tools that are masked in the history.
    pub secrets: BTreeMap<String, Secret>,
    /// Is told each status.
    pub status_callback: Option<StatusCallback>,
    /// Only a sandbox that already runs is used, and nothing is set up in it.
    pub attach_to_existing: bool,
    /// There is no user interface, so no editor is offered to one.
    pub headless: bool,
    /// Tokens of the user at git providers.
    pub git_provider_tokens: ProviderTokens,
    /// Git providers with settings of their own; none are those of the tokens, which this replaces.
    pub git_providers: Option<GitProviders>,
    /// Where newer tokens come from when a command speaks of one.
    pub token_refresh: Option<Refresh>,
    /// Where the tokens of logins at MCP servers are; none where nobody has logged in. They are sent to every server that
    /// has no key and for which there are tokens, whoever has configured it.
    pub mcp_tokens: Option<TokenStore>,
    /// The variables of the backend: what begins with `SANDBOX_ENV_` is passed on, and analyzers find their keys.
    pub backend_environment: BTreeMap<String, String>,
}

impl RuntimeOptions {
    /// The defaults, with the variables of this process. Without a user interface.
    pub fn new(config: Config, connector: impl Connector + 'static) -> Self {
        Self {
            config,
            connector: Arc::new(connector),
            event_stream: None,
            file_store: None,
            sid: "default".to_owned(),
            user_id: None,
            plugins: Vec::new(),
            env_vars: BTreeMap::new(),
            secrets: BTreeMap::new(),
            status_callback: None,
            attach_to_existing: false,
            headless: true,
            git_provider_tokens: ProviderTokens::default(),
            git_providers: None,
            token_refresh: None,
            mcp_tokens: None,
            backend_environment: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        }
    }

    /// With this history.
    #[must_use]
    pub fn with_stream(self, stream: &EventStream) -> Self {
        Self { event_stream: Some(stream.clone()), ..self }
    }
}

impl fmt::Debug for RuntimeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeOptions")
            .field("sid", &self.sid)
            .field("user_id", &self.user_id)
            .field("plugins", &self.plugins)
            .field("env_vars", &self.env_vars)
            .field("secrets", &self.secrets)
            .field("attach_to_existing", &self.attach_to_existing)
            .field("headless", &self.headless)
            .finish_non_exhaustive()
    }
}

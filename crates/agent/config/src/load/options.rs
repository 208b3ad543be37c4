//! What a configuration is loaded from.

use std::path::PathBuf;

use super::{environment::Variables, variables::Environment};
use crate::{
    error::ConfigError,
    model::{Config, USER_ID},
};

/// Where to load from. Nothing else is looked at.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The file; nothing: `config.toml` in the current directory.
    pub file: Option<PathBuf>,
    /// The environment, without the `.env` file.
    pub environment: Environment,
    /// Relative paths start here, and the search for `.env` upwards.
    pub current_directory: PathBuf,
    /// The user's home, for `.openhands/config.toml` with further models.
    pub home: Option<PathBuf>,
    /// User id of the process, the default of `sandbox.user_id`; nothing: 1000.
    pub user_id: Option<u32>,
    /// What the command line says.
    pub overrides: Overrides,
}

impl LoadOptions {
    /// The environment, directories and user of this process. Variables that are not UTF-8 are left out.
    pub fn from_process() -> Result<Self, ConfigError> {
        let utf8 = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let environment: Environment = std::env::vars_os().filter_map(utf8).collect();
        Ok(Self {
            file: None,
            home: environment.get(gloveport_platform::HOME).filter(|home| !home.is_empty()).map(PathBuf::from),
            environment,
            current_directory: std::env::current_dir().map_err(ConfigError::CurrentDirectory)?,
            user_id: gloveport_platform::user_id(),
            overrides: Overrides::default(),
        })
    }

    /// The defaults, with those that depend on the process.
    pub(super) fn defaults(&self, variables: &Variables) -> Config {
        let mut config = Config::default();
        config.sandbox.user_id = self.user_id.map_or(USER_ID, i64::from);
        if let Some(port) = variables.value("port") {
            config.mcp_host = format!("localhost:{port}");
        }
        config
    }
}

/// What the command line of a session says (configuration 9). What is not set leaves the configuration as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--agent-cls`: the agent that works.
    pub agent_class: Option<String>,
    /// `--max-iterations`: most steps of the task.
    pub max_iterations: Option<i64>,
    /// `--max-budget-per-task`: most money for the task.
    pub max_budget_per_task: Option<f64>,
    /// `--selected-repo`: the repository to clone.
    pub selected_repo: Option<String>,
    /// `--llm-config`: the model group that becomes the base group.
    pub llm_config: Option<String>,
    /// `--agent-config`: the agent group that becomes the base group.
    pub agent_config: Option<String>,
    /// `--directory`: the directory on the host to work in.
    pub directory: Option<PathBuf>,
}

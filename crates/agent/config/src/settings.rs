//! Stored settings of a user that replace some of the configuration for a conversation (configuration 8).

use gloveport_protocol::Secret;
use serde_json::Value;

use crate::{
    key::{Section as _, section},
    mcp::McpConfig,
    model::Config,
    node::Node,
};

section! {
    /// The members of `settings.json` that replace some of the configuration; it has others, too.
    pub struct StoredSettings = "settings" {
        /// Replaces `confirmation_mode`.
        confirmation_mode: Option<bool> = None;
        /// Replaces `security_analyzer`.
        security_analyzer: Option<String> = None;
        /// Replaces the base image, and lets `sandbox_runtime_container_image` replace the finished one even if it is
        /// unset.
        sandbox_base_container_image: Option<String> = None;
        /// Replaces the finished image.
        sandbox_runtime_container_image: Option<String> = None;
        /// Replaces the key for the remote runtime service.
        sandbox_api_key: Option<Secret> = None;
        /// Replaces the size of remote sandboxes.
        remote_runtime_resource_factor: Option<i64> = None;
        /// Replaces the name of the author of commits.
        git_user_name: Option<String> = None;
        /// Replaces the address of the author of commits.
        git_user_email: Option<String> = None;
        /// Replaces the key for the search engine, even if it is unset.
        search_api_key: Option<Secret> = None;
        /// Is added to the MCP servers.
        mcp_config: Option<McpConfig> = None;
    }
}

/// Why stored settings cannot be read. The text never holds a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoredSettingsError {
    /// The text is no JSON object.
    #[error("the stored settings are not a JSON object (line {line}, column {column})")]
    NotAnObject {
        /// Line of the mistake.
        line: usize,
        /// Column of the mistake.
        column: usize,
    },
    /// A member has a wrong value.
    #[error("`{member}` of the stored settings: {reason}")]
    WrongValue {
        /// The member.
        member: String,
        /// What is wrong with its value.
        reason: String,
    },
}

impl StoredSettings {
    /// Reads the text of `settings.json`. Members that replace nothing are passed over.
    pub fn from_json(text: &str) -> Result<Self, StoredSettingsError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| StoredSettingsError::NotAnObject { line: error.line(), column: error.column() })?;
        let node = Node::from_json(&value);
        let entries = node.table().ok_or(StoredSettingsError::NotAnObject { line: 1, column: 1 })?;
        let mut settings = Self::default();
        for entry in entries {
            let Some(setting) = settings.setting_mut(&entry.key) else { continue };
            setting.read(&entry.node).map_err(|mismatch| StoredSettingsError::WrongValue {
                member: format!("{}{}", entry.key, mismatch.within),
                reason: mismatch.message,
            })?;
        }
        Ok(settings)
    }
}

impl Config {
    /// Replaces what the stored settings say. It holds for this configuration only.
    pub fn apply_settings(&mut self, settings: &StoredSettings) {
        let StoredSettings {
            confirmation_mode,
            security_analyzer,
            sandbox_base_container_image,
            sandbox_runtime_container_image,
            sandbox_api_key,
            remote_runtime_resource_factor,
            git_user_name,
            git_user_email,
            search_api_key,
            mcp_config,
        } = settings.clone();
        let is_set = |text: &String| !text.is_empty();
        if let Some(mode) = confirmation_mode {
            self.security.confirmation_mode = mode;
        }
        if security_analyzer.is_some() {
            self.security.security_analyzer = security_analyzer;
        }
        if let Some(image) = sandbox_base_container_image.filter(is_set) {
            self.sandbox.base_container_image = Some(image);
            self.sandbox.runtime_container_image.clone_from(&sandbox_runtime_container_image);
        }
        if let Some(image) = sandbox_runtime_container_image.filter(is_set) {
            self.sandbox.runtime_container_image = Some(image);
        }
        if let Some(key) = sandbox_api_key.filter(|key| !key.is_empty()) {
            self.sandbox.api_key = Some(key);
        }
        if let Some(factor) = remote_runtime_resource_factor {
            self.sandbox.remote_runtime_resource_factor = factor;
        }
        if let Some(name) = git_user_name {
            self.git_user_name = name;
        }
        if let Some(address) = git_user_email {
            self.git_user_email = address;
        }
        self.search_api_key = search_api_key;
        if let Some(mcp) = mcp_config {
            self.mcp = self.mcp.merge(&mcp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::McpSseServer;

    fn applied(json: &str) -> Config {
        let mut config = Config { search_api_key: Some("old".into()), ..Config::default() };
        config.sandbox.runtime_container_image = Some("old".into());
        config.security.security_analyzer = Some("old".into());
        config.mcp.sse_servers = vec![McpSseServer::new("http://old", None).unwrap()];
        config.apply_settings(&StoredSettings::from_json(json).unwrap());
        config
    }

    #[test]
    fn settings_that_are_unset_replace_only_the_key_of_the_search_engine() {
        let before = applied(r#"{"search_api_key": "old"}"#);
        for json in [
            "{}",
            r#"{"confirmation_mode": null, "security_analyzer": null, "sandbox_base_container_image": "",
                "sandbox_runtime_container_image": "", "sandbox_api_key": "", "remote_runtime_resource_factor": null,
                "git_user_name": null, "mcp_config": null, "language": "en", "llm_model": "x"}"#,
        ] {
            assert_eq!(applied(json), Config { search_api_key: None, ..before.clone() }, "{json}");
        }
    }

    #[test]
    fn settings_that_are_set_replace_the_configuration() {
        let config = applied(
            r#"{"confirmation_mode": true, "security_analyzer": "llm", "sandbox_api_key": "k", "git_user_name": "me",
                "git_user_email": "", "remote_runtime_resource_factor": 4, "sandbox_runtime_container_image": "new",
                "mcp_config": {"sse_servers": ["http://new"], "stdio_servers": [], "shttp_servers": []}}"#,
        );
        assert!(config.security.confirmation_mode);
        assert_eq!(config.security.security_analyzer.as_deref(), Some("llm"));
        assert_eq!((config.sandbox.api_key, config.sandbox.remote_runtime_resource_factor), (Some("k".into()), 4));
        assert_eq!((config.git_user_name.as_str(), config.git_user_email.as_str()), ("me", ""));
        assert_eq!(config.sandbox.runtime_container_image.as_deref(), Some("new"));
        let urls: Vec<&str> = config.mcp.sse_servers.iter().map(|server| server.url.as_str()).collect();
        assert_eq!(urls, ["http://old", "http://new"]);
    }

    #[test]
    fn a_base_image_takes_the_finished_image_away() {
        let config = applied(r#"{"sandbox_base_container_image": "new"}"#);
        assert_eq!(config.sandbox.base_container_image.as_deref(), Some("new"));
        assert_eq!(config.sandbox.runtime_container_image, None);
    }

    #[test]
    fn wrong_settings_are_refused_without_their_values() {
        for (json, expected) in [
            ("[]", "the stored settings are not a JSON object (line 1, column 1)"),
            ("{\"a\": hunter2}", "the stored settings are not a JSON object (line 1, column 7)"),
            (r#"{"git_user_name": ["hunter2"]}"#, "`git_user_name` of the stored settings: must be a text, not a list"),
            (
                r#"{"mcp_config": {"sse_servers": [{"url": "hunter2"}]}}"#,
                "`mcp_config.sse_servers[0].url` of the stored settings: URL must include a scheme (http:// or https://)",
            ),
            (r#"{"mcp_config": {"x": 1}}"#, "`mcp_config.x` of the stored settings: unknown key"),
        ] {
            assert_eq!(StoredSettings::from_json(json).unwrap_err().to_string(), expected);
        }
        let settings =
            StoredSettings::from_json(r#"{"search_api_key": "hunter2", "sandbox_api_key": "hunter2"}"#).unwrap();
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}

//! What a session is asked to be.

use std::collections::{BTreeMap, BTreeSet};

use gloveport_config::McpStdioServer;
use gloveport_contract::plugins::BUILT_IN;
use gloveport_protocol::Secret;
use gloveport_provider::SessionId;
use gloveport_runtime::git_providers::ProviderType;
use serde::Deserialize;

use crate::{
    fault::Fault,
    record::{Hidden, McpServer, Wanted},
};

/// Most variables, tokens or servers in one request.
const MOST: usize = 256;
/// Most characters of a text.
const LONGEST: usize = 4096;
/// Most seconds that an action may take.
const LONGEST_ACTION: u32 = 24 * 60 * 60;
/// Analyzers that need nothing of the machine of the gateway: no key of it, and no container on it.
const ANALYZERS: [&str; 2] = ["rules", "llm"];

/// A request for a session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StartRequest {
    session_id: Option<String>,
    image: Option<String>,
    runtime_class: Option<String>,
    resource_factor: Option<u32>,
    plugins: Vec<String>,
    environment: BTreeMap<String, Secret>,
    secrets: BTreeMap<String, Secret>,
    repository: Option<RepositoryRequest>,
    git_tokens: BTreeMap<String, Secret>,
    mcp_servers: Vec<McpRequest>,
    security: SecurityRequest,
    timeout: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RepositoryRequest {
    name: String,
    #[serde(default)]
    branch: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct McpRequest {
    name: String,
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Secret>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SecurityRequest {
    confirmation_mode: bool,
    analyzer: Option<String>,
}

impl StartRequest {
    /// The session, what it is to be, and what of that nobody is shown.
    pub(crate) fn parse(self) -> Result<(SessionId, Wanted, Hidden), Fault> {
        let id = match self.session_id {
            Some(id) => SessionId::new(id).map_err(|error| Fault::wrong(error.to_string()))?,
            None => SessionId::random().map_err(|error| Fault::later(format!("no id can be made: {error}")))?,
        };
        for variables in [&self.environment, &self.secrets].into_iter().chain(self.mcp_servers.iter().map(|it| &it.env))
        {
            check_variables(variables)?;
        }
        let known = |name: &String| BUILT_IN.iter().any(|plugin| plugin.name == name);
        if let Some(unknown) = self.plugins.iter().find(|name| !known(name)) {
            let all: Vec<&str> = BUILT_IN.iter().map(|plugin| plugin.name).collect();
            return Err(Fault::wrong(format!("there is no plugin `{}`; there are: {}", cut(unknown), all.join(", "))));
        }
        let analyzer = self.security.analyzer.filter(|name| !name.is_empty());
        if let Some(unknown) = analyzer.as_ref().filter(|name| !ANALYZERS.contains(&name.as_str())) {
            let all = ANALYZERS.join(", ");
            return Err(Fault::wrong(format!("a gateway has no analyzer `{}`; it has: {all}", cut(unknown))));
        }
        if let Some(wrong) = self.git_tokens.keys().find(|name| ProviderType::from_wire(name).is_none()) {
            return Err(Fault::wrong(format!("`{}` is no git provider; one is `github`", cut(wrong))));
        }
        if self.timeout.is_some_and(|timeout| timeout == 0 || timeout > LONGEST_ACTION) {
            return Err(Fault::wrong(format!("`timeout` must be 1 to {LONGEST_ACTION} seconds")));
        }
        let (repository, branch) = match self.repository {
            Some(RepositoryRequest { name, branch }) => (Some(repository(name)?), branch),
            None => (None, None),
        };
        if branch.as_ref().is_some_and(|branch| branch.starts_with('-') || branch.contains('\0')) {
            return Err(Fault::wrong("`repository.branch` cannot be the name of a branch"));
        }
        for text in [&self.image, &self.runtime_class, &branch].into_iter().flatten() {
            if text.len() > LONGEST {
                return Err(Fault::wrong(format!("a text has more than {LONGEST} bytes")));
            }
        }
        let (mcp_servers, mcp_environments) = mcp_servers(self.mcp_servers)?;
        let plugins: BTreeSet<String> = self.plugins.into_iter().collect();
        let wanted = Wanted {
            image: self.image.filter(|image| !image.is_empty()),
            runtime_class: self.runtime_class.filter(|class| !class.is_empty()),
            resource_factor: self.resource_factor,
            plugins: plugins.into_iter().collect(),
            repository,
            branch,
            confirmation_mode: self.security.confirmation_mode,
            analyzer,
            timeout: self.timeout,
            mcp_servers,
        };
        let hidden = Hidden {
            environment: self.environment,
            secrets: self.secrets,
            git_tokens: self.git_tokens,
            mcp_environments,
        };
        Ok((id, wanted, hidden))
    }
}

/// `owner/name`, as git providers have it.
fn repository(name: String) -> Result<String, Fault> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && part.bytes().all(allowed);
    let parts: Vec<&str> = name.split('/').collect();
    if name.len() <= LONGEST && parts.len() >= 2 && parts.iter().all(|part| is_part(part)) {
        return Ok(name);
    }
    Err(Fault::wrong("`repository.name` must be like `owner/name`"))
}

type Environments = BTreeMap<String, BTreeMap<String, Secret>>;

fn mcp_servers(asked: Vec<McpRequest>) -> Result<(Vec<McpServer>, Environments), Fault> {
    if asked.len() > MOST {
        return Err(Fault::wrong(format!("{MOST} MCP servers are possible at most")));
    }
    let (mut servers, mut environments) = (Vec::new(), Environments::new());
    for McpRequest { name, command, args, env } in asked {
        McpStdioServer::new(&name, &command, Vec::new(), BTreeMap::new())
            .map_err(|error| Fault::wrong(format!("mcp_servers: {error}")))?;
        if !env.is_empty() {
            environments.insert(name.clone(), env);
        }
        servers.push(McpServer { name, command, args });
    }
    Ok((servers, environments))
}

/// Refuses variables that no shell or process accepts.
pub(crate) fn check_variables(variables: &BTreeMap<String, Secret>) -> Result<(), Fault> {
    if variables.len() > MOST {
        return Err(Fault::wrong(format!("{MOST} variables are possible in one request at most")));
    }
    for (name, value) in variables {
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.bytes().next().is_none_or(|first| first.is_ascii_digit());
        if !is_name {
            let what = "use letters, digits and `_`, and no digit first";
            return Err(Fault::wrong(format!("`{}` cannot be the name of a variable: {what}", cut(name))));
        }
        if value.expose().contains('\0') {
            return Err(Fault::wrong(format!("the value of the variable `{name}` has a NUL character")));
        }
    }
    Ok(())
}

/// A text of a client, short enough for an answer.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(json: serde_json::Value) -> Result<(SessionId, Wanted, Hidden), Fault> {
        serde_json::from_value::<StartRequest>(json).map_err(|error| Fault::wrong(error.to_string()))?.parse()
    }

    #[test]
    fn a_request_is_checked_before_anything_is_made_and_its_secrets_are_kept_apart() {
        let (id, wanted, hidden) = parse(json!({
            "session_id": "a", "image": "debian:13", "plugins": ["jupyter", "jupyter"], "environment": {"A": "b"},
            "secrets": {"TOKEN": "hunter2"}, "repository": {"name": "owner/name", "branch": "main"},
            "git_tokens": {"github": "ghp_x"}, "timeout": 30, "security": {"confirmation_mode": true, "analyzer": "rules"},
            "mcp_servers": [{"name": "time", "command": "uvx", "args": ["x"], "env": {"K": "hunter3"}}],
        }))
        .unwrap();
        assert_eq!((id.as_str(), &wanted.plugins), ("a", &vec!["jupyter".to_owned()]));
        assert_eq!((wanted.repository.as_deref(), wanted.branch.as_deref()), (Some("owner/name"), Some("main")));
        let shown = serde_json::to_string(&wanted).unwrap();
        for secret in ["hunter2", "ghp_x", "hunter3"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        let kept: Hidden = serde_json::from_slice(&serde_json::to_vec(&hidden).unwrap()).unwrap();
        assert_eq!(kept.masked(), hidden.masked());
        assert_eq!(kept.masked().len(), 3);
        assert_eq!(kept.variables().len(), 2);
    }

    #[test]
    fn what_is_wrong_in_a_request_is_told() {
        for (wrong, expected) in [
            (json!({"session_id": "../x"}), "session"),
            (json!({"sesion_id": "x"}), "unknown field"),
            (json!({"plugins": ["virus"]}), "there is no plugin `virus`"),
            (json!({"environment": {"A=B": "c"}}), "variable"),
            (json!({"secrets": {"1A": "c"}}), "variable"),
            (json!({"secrets": {"A": "b\u{0}"}}), "NUL"),
            (json!({"repository": {"name": "../../etc"}}), "owner/name"),
            (json!({"repository": {"name": "a/b;rm"}}), "owner/name"),
            (json!({"repository": {"name": "a/b", "branch": "--upload-pack=x"}}), "branch"),
            (json!({"git_tokens": {"evil.example": "x"}}), "no git provider"),
            (json!({"security": {"analyzer": "invariant"}}), "analyzer"),
            (json!({"timeout": 0}), "timeout"),
            (json!({"mcp_servers": [{"name": "a b", "command": "x"}]}), "mcp_servers"),
        ] {
            let fault = parse(wrong.clone()).unwrap_err();
            assert!(fault.detail.contains(expected), "{wrong}: {}", fault.detail);
        }
    }
}

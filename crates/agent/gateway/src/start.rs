//! From a request to the spec of a sandbox (remote-runtime-api 2.2).

use std::collections::BTreeMap;

use gloveport_contract::plugins;
use gloveport_protocol::Secret;
use gloveport_provider::{Capabilities, ResourceLimits, RunAs, SandboxSpec, SessionId};
use serde::Deserialize;

use crate::{
    GatewayOptions,
    command::own_server,
    fault::Fault,
    labels::{LABEL, NOT_KEPT},
    policy::Asked,
};

/// The variable with the key of a sandbox.
const KEY: &str = "SESSION_API_KEY";

/// A request for a sandbox. What else it has is for other servers.
#[derive(Debug, Deserialize)]
pub(crate) struct StartRequest {
    pub(crate) session_id: String,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    command: Option<Command>,
    #[serde(default)]
    working_dir: Option<String>,
    #[serde(default)]
    environment: Option<BTreeMap<String, String>>,
    #[serde(default)]
    resource_factor: Option<u32>,
    #[serde(default)]
    runtime_class: Option<String>,
    #[serde(default)]
    run_as_user: Option<u32>,
    #[serde(default)]
    run_as_group: Option<u32>,
    #[serde(default)]
    fs_group: Option<u32>,
    /// The key that the sandbox shall have; one is made without it. Of ours.
    #[serde(default)]
    session_api_key: Option<Secret>,
    /// False for a sandbox that its client ends, so that nobody takes it for one that was kept. Of ours.
    #[serde(default)]
    kept: Option<bool>,
}

/// OpenHands before 1.0 sends words, its SDK a line.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Command {
    Words(Vec<String>),
    Line(String),
}

impl Command {
    fn words(self) -> Vec<String> {
        match self {
            Self::Words(words) => words,
            Self::Line(line) => line.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

impl StartRequest {
    /// What of it tenants may be refused.
    pub(crate) fn asked(&self) -> Asked {
        Asked {
            image: self.image.clone(),
            class: self.runtime_class.clone(),
            factor: self.resource_factor.unwrap_or(1),
            amounts: None,
        }
    }

    /// What is made for it. Where the engine has no images, all sandboxes are made from the machine itself: images, users,
    /// classes and directories that clients name have no meaning there, and are passed over.
    pub(crate) fn spec(self, can: &Capabilities, options: &GatewayOptions) -> Result<SandboxSpec, Fault> {
        let session = SessionId::new(self.session_id).map_err(|error| Fault::wrong(error.to_string()))?;
        let mut spec = SandboxSpec::new(session);
        spec.image = self.image.filter(|image| can.images && !image.is_empty());
        if let Some(words) = self.command.map(Command::words).filter(|words| !words.is_empty()) {
            if let Some(asked) = own_server(&words) {
                let is_known = |name: &String| plugins::BUILT_IN.iter().any(|known| known.name == name);
                spec.plugins = asked.into_iter().filter(is_known).collect();
            } else {
                (spec.command, spec.working_dir) = (Some(words), self.working_dir);
            }
        }
        spec.environment = self.environment.unwrap_or_default();
        let named = spec.environment.remove(KEY).filter(|key| !key.is_empty()).map(Secret::new);
        spec.session_key = self.session_api_key.filter(|key| !key.is_empty()).or(named);
        // A size of 1 is the base.
        let factor = self.resource_factor.filter(|factor| *factor != 1 || can.resource_factor);
        spec.limits = ResourceLimits { factor, ..ResourceLimits::default() };
        if can.images {
            spec.runtime_class = self.runtime_class.filter(|class| !class.is_empty());
            let (group, files_group) = (self.run_as_group, self.fs_group);
            spec.user = self.run_as_user.map(|user| RunAs { user, group, files_group });
        }
        if can.labels {
            spec.labels.insert(LABEL.0.to_owned(), LABEL.1.to_owned());
            if self.kept == Some(false) {
                spec.labels.insert(NOT_KEPT.to_owned(), "true".to_owned());
            }
        }
        // Sandboxes outlive the gateway that made them where they can.
        spec.keep_alive = can.keep_alive;
        spec.time_to_live = options.time_to_live;
        spec.idle_stop = options.idle_stop;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: serde_json::Value) -> StartRequest {
        serde_json::from_value(json).unwrap()
    }

    fn options() -> GatewayOptions {
        GatewayOptions::new(Secret::new("a key of the gateway"))
    }

    #[test]
    fn what_clients_of_openhands_send_is_our_server_in_their_image() {
        let sent = serde_json::json!({
            "image": "ghcr.io/x/runtime:1", "session_id": "abc", "resource_factor": 1, "working_dir": "/openhands/code/",
            "command": ["python", "-u", "-m", "openhands.runtime.action_execution_server", "60000",
                "--working-dir", "/workspace", "--plugins", "agent_skills", "jupyter", "other", "--username", "root"],
            "environment": {"A": "b", "SESSION_API_KEY": "theirs"}, "run_as_user": 10001, "image_pull_policy": "Always",
        });
        let can = Capabilities { images: true, labels: true, users: true, keep_alive: true, ..Capabilities::NONE };
        let spec = request(sent.clone()).spec(&can, &options()).unwrap();
        assert_eq!(
            (spec.image.as_deref(), &spec.command, &spec.working_dir),
            (Some("ghcr.io/x/runtime:1"), &None, &None)
        );
        assert_eq!(spec.plugins, ["agent_skills", "jupyter"]);
        assert_eq!(spec.environment, [("A".to_owned(), "b".to_owned())].into());
        assert_eq!(spec.session_key, Some(Secret::new("theirs")));
        assert_eq!((spec.user.map(|user| user.user), spec.limits.factor, spec.keep_alive), (Some(10001), None, true));
        assert_eq!(spec.labels.get(LABEL.0).map(String::as_str), Some(LABEL.1));
        // Where there are no images, nothing of them is asked for.
        let plain = request(sent).spec(&Capabilities::NONE, &options()).unwrap();
        assert_eq!((plain.image, plain.user, plain.keep_alive, plain.labels.len()), (None, None, false, 0));
    }

    #[test]
    fn other_commands_are_run_and_sizes_are_asked_for() {
        let can = Capabilities { images: true, commands: true, ..Capabilities::NONE };
        let line = serde_json::json!({"session_id": "a", "command": "server --port 60000", "working_dir": "/", "resource_factor": 4});
        let spec = request(line).spec(&can, &options()).unwrap();
        assert_eq!(spec.command.unwrap(), ["server", "--port", "60000"]);
        assert_eq!((spec.working_dir.as_deref(), spec.limits.factor), (Some("/"), Some(4)));
        let wrong = request(serde_json::json!({"session_id": "../x"})).spec(&can, &options());
        assert!(wrong.is_err());
    }
}

//! The JSON of both directions (remote-runtime-api 2).

use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use gloveport_protocol::Secret;
use gloveport_provider::{Lifetime, ProviderError, Restarts, Sandbox, SandboxId, SandboxSpec, SandboxState, SessionId};
use serde::{Deserialize, Serialize};

use crate::provider::NAME;

/// Words before the port of the command that starts the server of a sandbox (action-execution-api 1.2). Images of
/// OpenHands and of ours have it, and our gateway understands it.
const COMMAND: &str = "/openhands/micromamba/bin/micromamba run -n openhands poetry run python -u -m \
    openhands.runtime.action_execution_server 60000 --working-dir /workspace --plugins";
/// The workspace that it names.
const WORKSPACE: &str = "/workspace";
/// Words behind the plugins.
const USER: &str = "--username root --user-id 0";
/// The directory of that command.
const DIRECTORY: &str = "/openhands/code/";
/// The command that starts an `agent-server` in images of OpenHands' SDK 1.x, and its directory (agent-server-workspace-api 11).
const AGENT_SERVER: &str = "/usr/local/bin/openhands-agent-server --port 60000";
const ROOT: &str = "/";

/// Whether an image has an `agent-server` of OpenHands' SDK 1.x: the last part of its name ends like that.
fn is_of_agent_server(image: &str) -> bool {
    let name = image.split('@').next().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    name.split(':').next().is_some_and(|name| name.ends_with("agent-server"))
}

/// Asks for a sandbox.
#[derive(Debug, Serialize)]
pub(crate) struct Start {
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_dir: Option<String>,
    environment: BTreeMap<String, String>,
    session_id: String,
    resource_factor: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_as_user: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_as_group: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fs_group: Option<u32>,
    /// Our gateway takes the key; others make one.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_api_key: Option<String>,
    /// Our gateway tells it to others, so that they do not take it for one that was kept.
    kept: bool,
}

impl Start {
    pub(crate) fn of(spec: &SandboxSpec) -> Self {
        let (command, working_dir) = if let Some(command) = &spec.command {
            (command.clone(), spec.working_dir.clone())
        } else if spec.image.as_deref().is_some_and(is_of_agent_server) {
            (AGENT_SERVER.split(' ').map(str::to_owned).collect(), Some(ROOT.to_owned()))
        } else {
            let plugins = spec.plugins.iter().map(String::as_str);
            let words = COMMAND.split_whitespace().chain(plugins).chain(USER.split(' '));
            (words.map(str::to_owned).collect(), Some(DIRECTORY.to_owned()))
        };
        // There is no other place for secrets.
        let secrets = spec.secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        // Both of these are the service's default (remote-runtime-api 2.2).
        let class = spec.runtime_class.as_deref().filter(|class| *class != "gvisor");
        Self {
            image: spec.image.clone(),
            command,
            working_dir,
            environment: spec.environment.clone().into_iter().chain(secrets).collect(),
            session_id: spec.session_id.to_string(),
            resource_factor: spec.limits.factor.unwrap_or(1),
            runtime_class: class.map(|class| if class == "sysbox" { "sysbox-runc" } else { class }.to_owned()),
            run_as_user: spec.user.map(|user| user.user),
            run_as_group: spec.user.and_then(|user| user.group),
            fs_group: spec.user.and_then(|user| user.files_group),
            session_api_key: spec.session_key.as_ref().map(|key| key.expose().to_owned()),
            kept: spec.keep_alive,
        }
    }
}

/// A sandbox as the service tells it. What it leaves out is unknown.
#[derive(Debug, Deserialize)]
pub(crate) struct Told {
    /// Some services call it `id`.
    #[serde(alias = "id")]
    runtime_id: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    work_hosts: Option<BTreeMap<String, u16>>,
    #[serde(default)]
    session_api_key: Option<Secret>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    pod_status: Option<String>,
    #[serde(default)]
    restart_count: Option<u32>,
    #[serde(default)]
    restart_reasons: Option<serde_json::Value>,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    workspace: Option<String>,
    #[serde(default)]
    kept: Option<bool>,
    #[serde(default)]
    created_at: Option<f64>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    pub(crate) created: Option<bool>,
}

/// All sandboxes of a key.
#[derive(Debug, Deserialize)]
pub(crate) struct Listed {
    pub(crate) runtimes: Vec<Told>,
}

impl Told {
    /// The sandbox. `session` is its session where the service does not say it.
    pub(crate) fn sandbox(self, session: Option<&SessionId>) -> Result<Sandbox, ProviderError> {
        let id = SandboxId::new(self.runtime_id.clone())?;
        let session_id = match self.session_id.as_deref().filter(|told| !told.is_empty()) {
            Some(told) => SessionId::new(told)?,
            None => session.cloned().ok_or_else(|| ProviderError::Engine {
                engine: "the remote runtime".to_owned(),
                action: format!("tell the session of the sandbox `{id}`"),
                reason: "`session_id` is missing".to_owned(),
            })?,
        };
        let state = self.state();
        let hosts = self.work_hosts.unwrap_or_default();
        let named = hosts.into_iter().enumerate().map(|(at, (url, port))| (format!("work-{}", at + 1), url, port));
        let named: Vec<(String, String, u16)> = named.collect();
        let count = self.restart_count.unwrap_or_default();
        let reasons = match self.restart_reasons {
            Some(serde_json::Value::Array(all)) => all.into_iter().map(text).collect(),
            Some(serde_json::Value::Null) | None => Vec::new(),
            Some(other) => vec![text(other)],
        };
        Ok(Sandbox {
            lifetime: if self.kept == Some(false) { Lifetime::Backend } else { Lifetime::Kept },
            id,
            session_id,
            provider: NAME.to_owned(),
            state,
            url: self.url.map(|url| url.trim_end_matches('/').to_owned()).filter(|url| !url.is_empty()),
            session_key: self.session_api_key.filter(|key| !key.is_empty()),
            urls: named.iter().map(|(name, url, _)| (name.clone(), url.clone())).collect(),
            ports: named.into_iter().map(|(name, _, port)| (name, port)).collect(),
            headers: BTreeMap::new(),
            labels: BTreeMap::new(),
            image: self.image,
            // That of the command which asks for our server.
            workspace: Some(self.workspace.unwrap_or_else(|| WORKSPACE.to_owned())),
            created: self.created_at.and_then(|at| UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(at).ok()?)),
            expires: None,
            restarts: Restarts { count, reasons },
        })
    }

    /// What it does. What has ended or rests counts more than the state of its pod.
    fn state(&self) -> SandboxState {
        let reason = || self.reason.clone().filter(|reason| !reason.is_empty()).unwrap_or_default();
        match self.status.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("paused") => return SandboxState::Paused,
            Some("stopped") => return SandboxState::Stopped(reason()),
            _ => {}
        }
        let pod = self.pod_status.as_deref().map(str::to_ascii_lowercase);
        match pod.as_deref().filter(|pod| !pod.is_empty()).or(self.status.as_deref()) {
            Some("ready" | "running") => SandboxState::Running,
            // A sandbox that was just asked for has no pod yet.
            Some("pending" | "not found" | "starting") | None => SandboxState::Pending,
            Some("failed" | "error") => SandboxState::Failed(reason()),
            Some("crashloopbackoff") => SandboxState::CrashLooping(reason()),
            Some("unknown") => SandboxState::Unknown(reason()),
            Some(other) => SandboxState::Unknown(format!("the service says `{other}`")),
        }
    }
}

fn text(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(json: serde_json::Value) -> Sandbox {
        let told: Told = serde_json::from_value(json).unwrap();
        told.sandbox(Some(&SessionId::new("s").unwrap())).unwrap()
    }

    #[test]
    fn the_state_of_the_pod_counts_unless_the_sandbox_rests_or_has_ended() {
        for (status, pod, expected) in [
            ("running", "ready", "running"),
            ("running", "Running", "running"),
            ("running", "pending", "pending"),
            ("running", "", "running"),
            ("paused", "ready", "paused"),
            ("stopped", "not found", "stopped"),
            ("running", "not found", "pending"),
            ("error", "CrashLoopBackOff", "crash-looping"),
            ("starting", "", "pending"),
            ("error", "failed", "failed"),
            ("running", "unknown", "unknown"),
            ("running", "odd", "unknown"),
        ] {
            let sandbox = told(serde_json::json!({"runtime_id": "r", "status": status, "pod_status": pod}));
            assert_eq!(sandbox.state.word(), expected, "{status} {pod}");
        }
    }

    #[test]
    fn what_a_service_tells_is_a_sandbox() {
        let sandbox = told(serde_json::json!({
            "id": "r", "url": "https://h/r/", "work_hosts": {"https://h/b": 12001, "https://h/a": 12000},
            "session_api_key": "k", "restart_count": 2, "restart_reasons": ["OOMKilled", 1], "more": {},
        }));
        assert_eq!(
            (sandbox.id.as_str(), sandbox.session_id.as_str(), sandbox.url.as_deref()),
            ("r", "s", Some("https://h/r"))
        );
        assert_eq!(sandbox.ports, [("work-1".to_owned(), 12000), ("work-2".to_owned(), 12001)].into());
        assert_eq!(
            (sandbox.restarts.count, sandbox.restarts.reasons),
            (2, vec!["OOMKilled".to_owned(), "1".to_owned()])
        );
        assert_eq!((sandbox.session_key, sandbox.state), (Some(Secret::new("k")), SandboxState::Pending));
    }

    #[test]
    fn images_of_an_agent_server_are_known_by_their_name() {
        for (image, is_one) in [
            ("ghcr.io/openhands/agent-server:1.58.2-python", true),
            ("localhost:5000/team/eval-agent-server@sha256:00", true),
            ("agent-server", true),
            ("ghcr.io/all-hands-ai/runtime:0.62-nikolaik", false),
            ("agent-server/runtime:agent-server", false),
        ] {
            assert_eq!(is_of_agent_server(image), is_one, "{image}");
        }
        let mut spec = SandboxSpec::new(SessionId::new("s").unwrap());
        spec.image = Some("openhands/agent-server:main".to_owned());
        let sent = serde_json::to_value(Start::of(&spec)).unwrap();
        assert_eq!(sent["command"], serde_json::json!(["/usr/local/bin/openhands-agent-server", "--port", "60000"]));
        assert_eq!(sent["working_dir"], "/");
    }

    #[test]
    fn our_server_is_asked_for_by_the_command_of_openhands() {
        let mut spec = SandboxSpec::new(SessionId::new("s").unwrap());
        (spec.plugins, spec.runtime_class) = (vec!["jupyter".to_owned()], Some("sysbox".to_owned()));
        spec.secrets.insert("TOKEN".to_owned(), Secret::new("t"));
        let sent = serde_json::to_value(Start::of(&spec)).unwrap();
        let words: Vec<&str> = sent["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert!(
            words.join(" ").ends_with("60000 --working-dir /workspace --plugins jupyter --username root --user-id 0")
        );
        assert_eq!((&sent["runtime_class"], &sent["environment"]["TOKEN"]), (&"sysbox-runc".into(), &"t".into()));
        assert_eq!((sent["resource_factor"].as_u64(), sent.get("image")), (Some(1), None));
    }
}

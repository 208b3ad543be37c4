//! A container as a sandbox.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime},
};

use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum as Status, PortMap};
use gloveport_protocol::Secret;
use gloveport_provider::container::{ABANDONED, EXPIRED, KEY, UNRECORDED, UNUSED};
use gloveport_provider::{Lifetime, Restarts, Sandbox, SandboxId, SandboxState, SessionId};

use crate::{
    DockerOptions,
    fault::NAME,
    held::Holders,
    names::{self, EDITOR, PREFIX, Ports},
    network,
};

/// A container of the engine, as far as it is a sandbox: by its name, whoever made it.
pub(crate) struct Container {
    /// The engine's id, which is never used again.
    pub(crate) engine_id: String,
    /// The backend that made it; none for one that is not ours.
    pub(crate) backend: Option<String>,
    /// Its processes are frozen; a sandbox that rests and is not was stopped.
    pub(crate) frozen: bool,
    /// The engine's id of the closed network that it is on.
    pub(crate) network: Option<String>,
    /// The volume with its audit log.
    pub(crate) audit: Option<String>,
    /// The image of a fork, which ends with it.
    pub(crate) fork: Option<String>,
    /// It was started ahead, and has a record.
    pub(crate) has_record: bool,
    pub(crate) sandbox: Sandbox,
}

impl Container {
    /// None for a container that is no sandbox. `gate` is what stands beside one whose network is closed.
    pub(crate) fn of(
        found: ContainerInspectResponse,
        gate: Option<ContainerInspectResponse>,
        options: &DockerOptions,
        holders: &Holders,
    ) -> Option<Self> {
        let name = found.name?;
        let id = SandboxId::new(name.trim_start_matches('/')).ok()?;
        let session = id.as_str().strip_prefix(PREFIX)?;
        let engine_id = found.id.unwrap_or_default();
        let config = found.config.unwrap_or_default();
        let labels = config.labels.unwrap_or_default();
        // Images that some engines commit have empty ones.
        let label = |name: &str| labels.get(name).map(String::as_str).filter(|value| !value.is_empty());
        if label(names::ROLE).is_some() {
            return None;
        }
        let variables: HashMap<&str, &str> =
            config.env.iter().flatten().filter_map(|variable| variable.split_once('=')).collect();
        let backend = label(names::BACKEND).map(str::to_owned);
        let keep = label(names::KEEP) != Some("false");
        let time = |name: &str| label(name)?.parse().ok().map(at);
        let expires: Option<SystemTime> = time(names::EXPIRES);
        let frozen = found.state.as_ref().is_some_and(|state| state.status == Some(Status::PAUSED));
        let network = label(names::NETWORK).map(str::to_owned);
        let audit = label(names::AUDIT).map(str::to_owned);
        let mut state = state(&found.state.unwrap_or_default(), keep, expires);
        if network.is_some() {
            state = network::state(state, &id, gate.as_ref());
        }
        let ports = match label(names::PORTS) {
            Some(json) => serde_json::from_str(json).unwrap_or_default(),
            None => foreign_ports(&variables, config.exposed_ports.as_deref().unwrap_or_default()),
        };
        let host_network = found.host_config.and_then(|host| host.network_mode).as_deref() == Some("host");
        let has_ports =
            if network.is_some() { gate.and_then(|gate| gate.network_settings) } else { found.network_settings };
        let published = has_ports.and_then(|settings| settings.ports).unwrap_or_default();
        let outside = |port: u16| if host_network { Some(port) } else { published_port(&published, port) };
        let server = variables.get("port").and_then(|port| port.parse().ok());
        let running = matches!(state, SandboxState::Running | SandboxState::Paused);
        let url_of = |port| outside(port).filter(|_| running).map(|port| options.url_of(port));
        let urls = ports.iter().filter_map(|(name, port)| Some((name.clone(), url_of(*port)?))).collect();
        let wanted: Vec<String> =
            label(names::LABELS).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let sandbox = Sandbox {
            session_id: SessionId::new(label(names::SESSION).unwrap_or(session)).ok()?,
            provider: NAME.to_owned(),
            url: server.and_then(url_of),
            session_key: variables.get(KEY).map(|key| Secret::new(*key)),
            urls,
            ports,
            headers: BTreeMap::new(),
            labels: wanted.into_iter().filter_map(|name| Some((name.clone(), labels.get(&name)?.clone()))).collect(),
            image: config.image,
            workspace: label(names::WORKSPACE).map(str::to_owned),
            lifetime: lifetime(keep, &engine_id, holders),
            created: time(names::CREATED),
            expires,
            restarts: Restarts::default(),
            state,
            id,
        };
        let fork = label(names::FORK).map(str::to_owned);
        let has_record = labels.contains_key(names::RECORDED);
        Some(Self { engine_id, backend, frozen, network, audit, fork, has_record, sandbox })
    }
}

fn at(seconds: f64) -> SystemTime {
    // A label is text that an image may bring along.
    let since = Duration::try_from_secs_f64(seconds).ok();
    since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn lifetime(keep: bool, engine_id: &str, holders: &Holders) -> Lifetime {
    if !keep {
        return Lifetime::Backend;
    }
    match holders.holders(engine_id) {
        (false, true) => Lifetime::Orphaned,
        _ => Lifetime::Kept,
    }
}

/// What it does. A kept container that was stopped from outside rests: it can be started again, with its files.
fn state(state: &ContainerState, keep: bool, expires: Option<SystemTime>) -> SandboxState {
    let over = expires.is_some_and(|expires| expires <= SystemTime::now());
    match state.status {
        Some(Status::CREATED) => SandboxState::Pending,
        Some(Status::RUNNING) => SandboxState::Running,
        Some(Status::PAUSED) => SandboxState::Paused,
        Some(Status::RESTARTING) => SandboxState::CrashLooping(end(state)),
        Some(Status::REMOVING) => SandboxState::Stopped("it is being removed".to_owned()),
        Some(Status::EXITED | Status::DEAD) => {
            let out_of_memory = state.oom_killed == Some(true);
            match state.exit_code.unwrap_or(0) {
                EXPIRED => SandboxState::Stopped("its time is over".to_owned()),
                UNUSED => SandboxState::Stopped("nobody used it".to_owned()),
                ABANDONED => SandboxState::Stopped("its backend has ended".to_owned()),
                UNRECORDED => SandboxState::Failed("nothing could be recorded of it any more".to_owned()),
                _ if over => SandboxState::Stopped("its time is over".to_owned()),
                0 | 137 | 143 if keep && !out_of_memory => SandboxState::Paused,
                0 | 143 => SandboxState::Stopped(end(state)),
                _ => SandboxState::Failed(end(state)),
            }
        }
        _ => SandboxState::Unknown("the engine does not tell its state".to_owned()),
    }
}

/// How a container ended, in words.
fn end(state: &ContainerState) -> String {
    let error = state.error.as_deref().unwrap_or_default();
    let text = match state.exit_code.unwrap_or(0) {
        _ if state.oom_killed == Some(true) => "it used more memory than it may have (OOMKilled)".to_owned(),
        0 | 143 => "its server was told to end".to_owned(),
        // An engine that hears of the end before it hears of the reason does not set the flag.
        137 => "it was killed (exit code 137), as happens when it uses more memory than it may have".to_owned(),
        code => format!("its server ended with exit code {code}"),
    };
    if error.is_empty() { text } else { format!("{text}: {error}") }
}

/// The port of the engine's machine that leads to this one.
pub(crate) fn published_port(published: &PortMap, port: u16) -> Option<u16> {
    let bindings = published.get(&format!("{port}/tcp"))?.as_deref()?;
    bindings.iter().find_map(|binding| binding.host_port.as_deref()?.parse().ok())
}

/// The ports of a container that OpenHands has made (docker-runtime 8).
fn foreign_ports(variables: &HashMap<&str, &str>, exposed: &[String]) -> Ports {
    let variable = |name: &str| variables.get(name).and_then(|port| port.parse::<u16>().ok());
    let (server, editor) = (variable("port"), variable("VSCODE_PORT"));
    let mut ports: Ports = editor.map(|port| (EDITOR.0.to_owned(), port)).into_iter().collect();
    let mut others: Vec<u16> =
        exposed.iter().filter_map(|name| name.strip_suffix("/tcp").unwrap_or(name).parse().ok()).collect();
    others.sort_unstable();
    let programs = others.into_iter().filter(|port| Some(*port) != server && Some(*port) != editor);
    ports.extend(programs.enumerate().map(|(at, port)| (format!("work-{}", at + 1), port)));
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i64, oom_killed: bool) -> ContainerState {
        ContainerState {
            status: Some(Status::EXITED),
            exit_code: Some(code),
            oom_killed: Some(oom_killed),
            ..ContainerState::default()
        }
    }

    #[test]
    fn what_was_stopped_from_outside_rests_if_it_is_kept() {
        for (code, oom, keep, word) in [
            (0, false, true, "paused"),
            (137, false, true, "paused"),
            (143, false, true, "paused"),
            (137, true, true, "failed"),
            (1, false, true, "failed"),
            (0, false, false, "stopped"),
            (137, false, false, "failed"),
            (EXPIRED, false, true, "stopped"),
            (UNUSED, false, true, "stopped"),
            (UNRECORDED, false, true, "failed"),
            (ABANDONED, false, false, "stopped"),
        ] {
            assert_eq!(state(&exited(code, oom), keep, None).word(), word, "{code} {oom} {keep}");
        }
        assert_eq!(state(&exited(0, false), true, Some(SystemTime::UNIX_EPOCH)).word(), "stopped");
    }

    #[test]
    fn a_killed_container_is_told_with_memory_as_its_likely_reason_also_where_the_engine_missed_it() {
        for known in [true, false] {
            let text = end(&exited(137, known));
            assert!(text.contains("more memory than it may have") && text.contains("OOMKilled") == known, "{text}");
        }
    }

    #[test]
    fn ports_of_a_foreign_container_are_those_that_it_tells() {
        let variables = [("port", "30001"), ("VSCODE_PORT", "40001")].into();
        let exposed = ["30001/tcp", "55000/tcp", "40001/tcp", "50000/tcp"].map(str::to_owned);
        let expected: Ports = [("vscode", 40001), ("work-1", 50000), ("work-2", 55000)]
            .map(|(name, port)| (name.to_owned(), port))
            .into();
        assert_eq!(foreign_ports(&variables, &exposed), expected);
    }
}

//! What a fork is made with again.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{ExposedPort, Mount, MountSource, NetworkPolicy, ResourceLimits, RunAs, SandboxSpec, SessionId, Workspace};

/// What a fork is made with again: a spec without what belongs to one sandbox alone, and without secrets.
#[derive(Debug, Serialize, Deserialize)]
pub struct Settings {
    command: Option<Vec<String>>,
    working_dir: Option<String>,
    environment: BTreeMap<String, String>,
    workspace: Where,
    mounts: Vec<(Where, String, bool)>,
    cpus: Option<f64>,
    memory: Option<u64>,
    processes: Option<u64>,
    gpus: bool,
    /// `None` is everybody, an empty list nobody.
    network: Option<Vec<String>>,
    ports: Vec<(String, Option<u16>)>,
    labels: BTreeMap<String, String>,
    plugins: Vec<String>,
    user: Option<(u32, Option<u32>, Option<u32>)>,
    runtime_class: Option<String>,
    time_to_live: Option<Duration>,
    idle_stop: Option<Duration>,
    keep_alive: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Where {
    Temporary,
    Directory(PathBuf),
    Volume(String),
    Overlay(PathBuf),
}

impl Settings {
    /// The settings of a spec.
    #[must_use]
    pub fn of(spec: &SandboxSpec) -> Self {
        Self {
            command: spec.command.clone(),
            working_dir: spec.working_dir.clone(),
            environment: spec.environment.clone(),
            workspace: match &spec.workspace {
                Workspace::Temporary => Where::Temporary,
                Workspace::Directory(path) => Where::Directory(path.clone()),
                Workspace::Volume(name) => Where::Volume(name.clone()),
            },
            mounts: spec
                .mounts
                .iter()
                .map(|Mount { source, target, read_only }| {
                    let source = match source {
                        MountSource::Directory(path) => Where::Directory(path.clone()),
                        MountSource::Volume(name) => Where::Volume(name.clone()),
                        MountSource::Overlay(path) => Where::Overlay(path.clone()),
                    };
                    (source, target.clone(), *read_only)
                })
                .collect(),
            cpus: spec.limits.cpus,
            memory: spec.limits.memory,
            processes: spec.limits.processes,
            gpus: spec.limits.gpus,
            network: match &spec.network {
                NetworkPolicy::Full => None,
                NetworkPolicy::None => Some(Vec::new()),
                NetworkPolicy::Only(hosts) => Some(hosts.clone()),
            },
            ports: spec.ports.iter().map(|port| (port.name.clone(), port.port)).collect(),
            labels: spec.labels.clone(),
            plugins: spec.plugins.clone(),
            user: spec.user.map(|user| (user.user, user.group, user.files_group)),
            runtime_class: spec.runtime_class.clone(),
            time_to_live: spec.time_to_live,
            idle_stop: spec.idle_stop,
            keep_alive: spec.keep_alive,
        }
    }

    /// A spec with them for a session, from the image that has the files.
    #[must_use]
    pub fn spec(self, session: SessionId, image: String) -> SandboxSpec {
        SandboxSpec {
            image: Some(image),
            command: self.command,
            working_dir: self.working_dir,
            environment: self.environment,
            workspace: match self.workspace {
                // Overlays are mounts only.
                Where::Temporary | Where::Overlay(_) => Workspace::Temporary,
                Where::Directory(path) => Workspace::Directory(path),
                Where::Volume(name) => Workspace::Volume(name),
            },
            mounts: self.mounts.into_iter().filter_map(mount).collect(),
            limits: ResourceLimits {
                cpus: self.cpus,
                memory: self.memory,
                processes: self.processes,
                gpus: self.gpus,
                ..ResourceLimits::default()
            },
            network: match self.network {
                None => NetworkPolicy::Full,
                Some(hosts) if hosts.is_empty() => NetworkPolicy::None,
                Some(hosts) => NetworkPolicy::Only(hosts),
            },
            ports: self.ports.into_iter().map(|(name, port)| ExposedPort { name, port }).collect(),
            labels: self.labels,
            plugins: self.plugins,
            user: self.user.map(|(user, group, files_group)| RunAs { user, group, files_group }),
            runtime_class: self.runtime_class,
            time_to_live: self.time_to_live,
            idle_stop: self.idle_stop,
            keep_alive: self.keep_alive,
            ..SandboxSpec::new(session)
        }
    }
}

fn mount((source, target, read_only): (Where, String, bool)) -> Option<Mount> {
    let source = match source {
        Where::Directory(path) => MountSource::Directory(path),
        Where::Volume(name) => MountSource::Volume(name),
        Where::Overlay(path) => MountSource::Overlay(path),
        Where::Temporary => return None,
    };
    Some(Mount { source, target, read_only })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_has_the_settings_of_a_spec_and_none_of_its_secrets() {
        let session = |name: &str| SessionId::new(name).unwrap();
        let spec = SandboxSpec {
            image: Some("i".to_owned()),
            environment: [("A".to_owned(), "b".to_owned())].into(),
            secrets: [("S".to_owned(), gloveport_protocol::Secret::new("secret-value"))].into(),
            session_key: Some(gloveport_protocol::Secret::new("key-value")),
            workspace: Workspace::Volume("w".to_owned()),
            mounts: vec![Mount { source: MountSource::Overlay("/o".into()), target: "/t".to_owned(), read_only: true }],
            limits: ResourceLimits { memory: Some(5), ..ResourceLimits::default() },
            network: NetworkPolicy::Only(vec!["a.test".to_owned()]),
            ports: vec![ExposedPort { name: "web".to_owned(), port: Some(1) }],
            user: Some(RunAs { user: 1, group: Some(2), files_group: None }),
            time_to_live: Some(Duration::from_secs(7)),
            keep_alive: true,
            ..SandboxSpec::new(session("one"))
        };
        let text = serde_json::to_string(&Settings::of(&spec)).unwrap();
        assert!(!text.contains("secret-value") && !text.contains("key-value"), "{text}");
        let again = serde_json::from_str::<Settings>(&text).unwrap().spec(session("two"), "snapshot".to_owned());
        let expected = SandboxSpec {
            session_id: session("two"),
            image: Some("snapshot".to_owned()),
            secrets: BTreeMap::new(),
            session_key: None,
            ..spec
        };
        assert_eq!(format!("{again:?}"), format!("{expected:?}"));
    }
}

//! What a sandbox is made from.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use gloveport_contract::plugins;
use gloveport_protocol::Secret;
use serde::{Deserialize, Serialize};

use crate::{Capabilities, Isolation, ProviderError, SessionId};

/// Most characters of the key of a sandbox.
const LONGEST_KEY: usize = 1024;
/// Fewest bytes of a secret that is put in on the way out. What is shorter is in other texts by chance.
const SHORTEST_EDGE_SECRET: usize = 8;

/// Whether a text is the same behind a header of HTTP.
fn is_header(text: &str) -> bool {
    text.len() <= LONGEST_KEY && text.trim() == text && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// What a sandbox is made from.
///
/// What a provider cannot do is refused by [`check`](Self::check) before anything is made, never passed over: a limit
/// or a network policy that is silently missing is worse than none.
#[derive(Clone, Debug)]
pub struct SandboxSpec {
    /// The session it is for. A provider has at most one sandbox for each.
    pub session_id: SessionId,
    /// The image; `None` where there are none, or for the provider's default.
    pub image: Option<String>,
    /// The program and its arguments; `None` for our own server, which the provider puts into the sandbox.
    pub command: Option<Vec<String>>,
    /// Directory in which the command starts; `None` for the image's.
    pub working_dir: Option<String>,
    /// Variables of the server and its tools.
    pub environment: BTreeMap<String, String>,
    /// More variables, which are never logged, shown or stored where others can read them.
    pub secrets: BTreeMap<String, Secret>,
    /// Variables whose values it uses and never sees: it gets placeholders, which are replaced on the way to these hosts.
    pub edge_secrets: BTreeMap<String, EdgeSecret>,
    /// The key that the server asks for; `None` lets the provider make one.
    pub session_key: Option<Secret>,
    /// Where the work is.
    pub workspace: Workspace,
    /// More directories and volumes.
    pub mounts: Vec<Mount>,
    /// What it may use up.
    pub limits: ResourceLimits,
    /// Whom it may talk to.
    pub network: NetworkPolicy,
    /// Ports of programs in it that get a URL, beside the server's own.
    pub ports: Vec<ExposedPort>,
    /// For finding it again, and for other people's tools.
    pub labels: BTreeMap<String, String>,
    /// Plugins of the server: `jupyter`, `agent_skills`, `vscode`.
    pub plugins: Vec<String>,
    /// Whom the server works as; `None` for the image's or the provider's choice (`run_as_user`, `run_as_group`,
    /// `fs_group`).
    pub user: Option<RunAs>,
    /// How it is kept apart from the machine that it is on, where it is no container; `None` for what the provider does.
    pub confinement: Option<Confinement>,
    /// A file of this machine that what happens in it is recorded in, out of its reach; `None` records nothing.
    pub audit: Option<PathBuf>,
    /// How it is kept apart, for engines with several ways (`runtime_class`: `sysbox`, `gvisor`).
    pub runtime_class: Option<String>,
    /// It is deleted this long after it was made, whatever it does.
    pub time_to_live: Option<Duration>,
    /// It is stopped when nobody has asked it anything for this long.
    pub idle_stop: Option<Duration>,
    /// It outlives the backend that made it.
    pub keep_alive: bool,
    /// A sandbox that was started ahead may be used.
    pub warm: bool,
}

impl SandboxSpec {
    /// The label of a sandbox of this machine that says what its root directory was made from.
    pub const IMAGE_LABEL: &str = "gloveport.image";

    /// Our own server with a temporary workspace, for this session; ends with the backend.
    pub fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            image: None,
            command: None,
            working_dir: None,
            environment: BTreeMap::new(),
            secrets: BTreeMap::new(),
            edge_secrets: BTreeMap::new(),
            session_key: None,
            workspace: Workspace::Temporary,
            mounts: Vec::new(),
            limits: ResourceLimits::default(),
            network: NetworkPolicy::Full,
            ports: Vec::new(),
            labels: BTreeMap::new(),
            plugins: Vec::new(),
            user: None,
            confinement: None,
            audit: None,
            runtime_class: None,
            time_to_live: None,
            idle_stop: None,
            keep_alive: false,
            warm: true,
        }
    }

    /// Asks for a sandbox without a browser. What a secret says about the same variable counts more.
    pub fn leave_out_browser(&mut self) {
        self.environment.insert(plugins::BROWSER.to_owned(), plugins::NO_BROWSER.to_owned());
    }

    /// Whether a provider that can do this can make it. Providers call it first in
    /// [`create`](crate::Provider::create).
    pub fn check(&self, provider: &str, can: &Capabilities) -> Result<(), ProviderError> {
        let asked = [
            ("an image", self.image.is_some(), can.images),
            ("a command of its own", self.command.is_some(), can.commands),
            ("a working directory of the command", self.working_dir.is_some(), can.commands),
            ("a workspace in a directory of this machine", self.workspace.is_directory(), can.host_directories),
            ("a workspace in a volume", self.workspace.is_volume(), can.volumes),
            ("mounted directories", self.mounts.iter().any(|mount| mount.source.is_directory()), can.host_directories),
            ("mounted volumes", self.mounts.iter().any(|mount| mount.source.is_volume()), can.volumes),
            // Without images there is nowhere to mount to: paths are those of the machine.
            ("mounts", !self.mounts.is_empty(), can.isolation != Isolation::None),
            ("a limit on processors", self.limits.cpus.is_some(), can.limit_cpus),
            ("a limit on memory", self.limits.memory.is_some(), can.limit_memory),
            ("a limit on disk space", self.limits.disk.is_some(), can.limit_disk),
            ("a limit on processes", self.limits.processes.is_some(), can.limit_processes),
            ("a size", self.limits.factor.is_some(), can.resource_factor),
            ("GPUs", self.limits.gpus, can.gpus),
            ("a network policy", self.network != NetworkPolicy::Full, can.network_policy),
            ("exposed ports", !self.ports.is_empty(), can.ports),
            ("labels", !self.labels.is_empty(), can.labels),
            ("a user or group", self.user.is_some(), can.users),
            ("a level of isolation (`--isolation`)", self.confinement.is_some(), can.confine),
            ("a secret for some hosts (`--secret NAME@HOST`)", !self.edge_secrets.is_empty(), can.edge_secrets),
            ("an audit log (`--audit FILE`)", self.audit.is_some(), can.audit),
            ("a runtime class", self.runtime_class.is_some(), can.runtime_classes),
            ("a time to live", self.time_to_live.is_some(), can.time_to_live),
            ("stopping when idle", self.idle_stop.is_some(), can.idle_stop),
            ("keeping sandboxes alive", self.keep_alive, can.keep_alive),
        ];
        if let Some((what, ..)) = asked.into_iter().find(|(_, asked, can)| *asked && !can) {
            return Err(ProviderError::Unsupported { provider: provider.to_owned(), what: what.to_owned() });
        }
        self.check_values()
    }

    /// Whether the values make sense, for whatever provider.
    fn check_values(&self) -> Result<(), ProviderError> {
        let wrong =
            |field: &str, reason: &str| Err(ProviderError::Spec { field: field.to_owned(), reason: reason.to_owned() });
        if self.command.as_ref().is_some_and(Vec::is_empty) {
            return wrong("command", "it is empty; name a program");
        }
        for name in self.environment.keys().chain(self.secrets.keys()).chain(self.edge_secrets.keys()) {
            if name.is_empty() || name.contains(['=', '\0']) {
                return wrong("environment", &format!("`{name}` cannot be the name of a variable"));
            }
        }
        let texts = self.environment.values().map(String::as_str);
        let secrets = self.secrets.values().map(Secret::expose);
        if texts.chain(secrets).any(|value| value.contains('\0')) {
            return wrong("environment", "a value has a NUL character");
        }
        for (name, EdgeSecret { value, hosts }) in &self.edge_secrets {
            if hosts.is_empty() {
                return wrong("edge_secrets", &format!("{name} is for no host"));
            }
            if value.expose().len() < SHORTEST_EDGE_SECRET || value.expose().contains(|found: char| found.is_control())
            {
                let reason = format!(
                    "the value of {name} must be one line of at least {SHORTEST_EDGE_SECRET} bytes, as it is looked for in answers"
                );
                return wrong("edge_secrets", &reason);
            }
        }
        if self.session_key.as_ref().is_some_and(Secret::is_empty) {
            return wrong("session_key", "it is empty");
        }
        if !self.session_key.as_ref().is_none_or(|key| is_header(key.expose())) {
            let reason = format!("it must be up to {LONGEST_KEY} visible ASCII characters, as it travels in a header");
            return wrong("session_key", &reason);
        }
        if self.limits.cpus.is_some_and(|cpus| !cpus.is_finite() || cpus <= 0.0) {
            return wrong("limits.cpus", "it must be a positive number");
        }
        let limits = [self.limits.memory, self.limits.disk, self.limits.processes, self.limits.factor.map(u64::from)];
        if limits.contains(&Some(0)) {
            return wrong("limits", "a limit of 0 leaves nothing to work with");
        }
        for mount in &self.mounts {
            if !mount.target.starts_with('/') {
                return wrong("mounts", &format!("`{}` must be an absolute path in the sandbox", mount.target));
            }
        }
        if self.workspace.directory().is_some_and(|directory| !directory.is_absolute()) {
            return wrong("workspace", "the directory must be an absolute path");
        }
        Ok(())
    }
}

/// A secret that is put into requests on their way out, where the sandbox has a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeSecret {
    /// One line of at least 8 bytes.
    pub value: Secret,
    /// The hosts that get it (`host`, `*.host`, `host:port`, an address or a network), at port 443 where they name none.
    pub hosts: Vec<String>,
}

/// Where the work of a sandbox is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workspace {
    /// A directory of its own, which ends with the sandbox.
    Temporary,
    /// A directory of this machine, which outlives the sandbox. Absolute.
    Directory(PathBuf),
    /// A volume of the engine, which outlives the sandbox.
    Volume(String),
}

impl Workspace {
    /// The directory of this machine, if it is one.
    pub fn directory(&self) -> Option<&PathBuf> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Temporary | Self::Volume(_) => None,
        }
    }

    fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    fn is_volume(&self) -> bool {
        matches!(self, Self::Volume(_))
    }
}

/// Something that a sandbox sees at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What.
    pub source: MountSource,
    /// Where: an absolute path in the sandbox.
    pub target: String,
    /// The sandbox cannot write to it.
    pub read_only: bool,
}

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountSource {
    /// A file or directory of this machine.
    Directory(PathBuf),
    /// A volume of the engine.
    Volume(String),
    /// A directory of this machine below a layer that takes what the sandbox writes.
    Overlay(PathBuf),
}

impl MountSource {
    fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_) | Self::Overlay(_))
    }

    fn is_volume(&self) -> bool {
        matches!(self, Self::Volume(_))
    }
}

/// What a sandbox may use up. `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceLimits {
    /// Processors.
    pub cpus: Option<f64>,
    /// Memory in bytes, of all processes together.
    pub memory: Option<u64>,
    /// Disk space in bytes.
    pub disk: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// How many times the engine's base size, for engines that know sizes and no amounts (`resource_factor`).
    pub factor: Option<u32>,
    /// It gets the machine's GPUs.
    pub gpus: bool,
}

/// Whom the server of a sandbox works as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// Its user id.
    pub user: u32,
    /// Its group id; `None` for the user's own.
    pub group: Option<u32>,
    /// The group id that owns its volumes.
    pub files_group: Option<u32>,
}

/// How far a sandbox on a machine is kept apart from it. The greater one is the stronger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Not at all.
    #[default]
    None,
    /// The kernel keeps it to its own files and those of the system, and to its own processes.
    Files,
    /// It has a root directory, users, processes and names of its own, made of this machine without an engine.
    Container,
    /// The same on a kernel of its own, which gVisor's `runsc` is.
    Gvisor,
}

impl Level {
    /// All of them, the weakest first.
    pub const ALL: [Self; 4] = [Self::None, Self::Files, Self::Container, Self::Gvisor];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Files => "files",
            Self::Container => "container",
            Self::Gvisor => "gvisor",
        }
    }

    /// Whether it has a root directory of its own.
    pub const fn has_root(self) -> bool {
        matches!(self, Self::Container | Self::Gvisor)
    }

    /// The label of a sandbox that has one, where its provider knows levels.
    pub const LABEL: &str = "gloveport.isolation";

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// How a sandbox on a machine is kept apart from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// How far.
    pub level: Level,
    /// Where the machine does not have that, the strongest level that it has. Which one was taken is in the label
    /// [`Level::LABEL`].
    pub or_weaker: bool,
    /// Places of the machine that it reads, beside the system.
    pub read: Vec<PathBuf>,
    /// Places of the machine in which it writes, beside its workspace.
    pub write: Vec<PathBuf>,
}

impl Confinement {
    /// As far as the machine can.
    pub fn strongest() -> Self {
        Self { level: Level::Container, or_weaker: true, ..Self::default() }
    }
}

/// Whom a sandbox may talk to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// Everybody.
    #[default]
    Full,
    /// Nobody; its own server can still be reached.
    None,
    /// These hosts and networks (`host`, `host:port`, `10.0.0.0/8`).
    Only(Vec<String>),
}

/// A port of a program in the sandbox that gets a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposedPort {
    /// Key of the URL in [`Sandbox::urls`](crate::Sandbox::urls).
    pub name: String,
    /// The port in the sandbox; `None` lets the provider choose.
    pub port: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SandboxSpec {
        SandboxSpec::new(SessionId::new("s").unwrap())
    }

    #[test]
    fn what_a_provider_cannot_do_is_refused_by_name() {
        let plain = spec();
        plain.check("x", &Capabilities::NONE).unwrap();
        let mount = Mount { source: MountSource::Volume("v".to_owned()), target: "/v".to_owned(), read_only: false };
        for (wanted, expected) in [
            (SandboxSpec { image: Some("i".to_owned()), ..spec() }, "an image"),
            (SandboxSpec { network: NetworkPolicy::None, ..spec() }, "a network policy"),
            (SandboxSpec { keep_alive: true, ..spec() }, "keeping sandboxes alive"),
            (SandboxSpec { mounts: vec![mount], ..spec() }, "mounted volumes"),
            (SandboxSpec { workspace: Workspace::Directory("/w".into()), ..spec() }, "a workspace in a directory"),
        ] {
            let error = wanted.check("x", &Capabilities::NONE).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("`x`"), "{error}");
        }
    }

    #[test]
    fn values_without_a_meaning_are_refused_with_their_field() {
        let can = Capabilities { commands: true, limit_memory: true, host_directories: true, ..Capabilities::NONE };
        for (wanted, field) in [
            (SandboxSpec { command: Some(Vec::new()), ..spec() }, "command"),
            (SandboxSpec { environment: [("A=B".to_owned(), String::new())].into(), ..spec() }, "environment"),
            (SandboxSpec { secrets: [("A".to_owned(), Secret::new("\0"))].into(), ..spec() }, "environment"),
            (SandboxSpec { session_key: Some(Secret::new("")), ..spec() }, "session_key"),
            (SandboxSpec { session_key: Some(Secret::new("a ")), ..spec() }, "session_key"),
            (SandboxSpec { session_key: Some(Secret::new("a\nb")), ..spec() }, "session_key"),
            (SandboxSpec { session_key: Some(Secret::new("\u{e4}")), ..spec() }, "session_key"),
            (SandboxSpec { session_key: Some(Secret::new("a".repeat(LONGEST_KEY + 1))), ..spec() }, "session_key"),
            (SandboxSpec { workspace: Workspace::Directory("w".into()), ..spec() }, "workspace"),
            (
                SandboxSpec { limits: ResourceLimits { memory: Some(0), ..ResourceLimits::default() }, ..spec() },
                "limits",
            ),
        ] {
            match wanted.check("x", &can).unwrap_err() {
                ProviderError::Spec { field: found, .. } => assert_eq!(found, field),
                other => panic!("{other}"),
            }
        }
    }
}

//! The JSON that the program gets. It holds real secrets: it is written to the program's input and nowhere else.

use std::{collections::BTreeMap, path::Path, time::Duration};

use gloveport_protocol::Secret;
use gloveport_provider::{
    GcOptions, ListFilter, LogOptions, MountSource, NetworkPolicy, SandboxId, SandboxSpec, SessionId, Workspace,
    backend::BackendLock,
};
use serde::Serialize;

use crate::describe::Verb;

/// What every request begins with.
#[derive(Serialize)]
pub(crate) struct Request<'a> {
    /// The version that both agreed on; `describe` has `protocols` in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<u32>,
    /// The versions that are spoken, for `describe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocols: Option<&'a [u32]>,
    pub(crate) verb: Verb,
    /// The name of the provider.
    pub(crate) provider: &'a str,
    pub(crate) backend: BackendView<'a>,
    #[serde(flatten)]
    pub(crate) body: Body<'a>,
}

/// Who asks.
#[derive(Serialize)]
pub(crate) struct BackendView<'a> {
    id: &'a str,
    pid: u32,
    lock: &'a Path,
}

impl<'a> From<&'a BackendLock> for BackendView<'a> {
    fn from(backend: &'a BackendLock) -> Self {
        Self { id: &backend.id, pid: std::process::id(), lock: &backend.lock }
    }
}

/// What a verb needs to know.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Body<'a> {
    Nothing {},
    Create { server: ServerView<'a>, spec: Box<SpecView<'a>> },
    Sandbox { id: &'a SandboxId },
    Session { session_id: &'a SessionId },
    List { labels: &'a BTreeMap<String, String>, ended: bool },
    Logs { id: &'a SandboxId, follow: bool, tail: Option<usize> },
    Garbage { all: bool, dry_run: bool },
    Warm { server: ServerView<'a>, count: usize },
}

impl<'a> Body<'a> {
    pub(crate) fn list(filter: &'a ListFilter) -> Self {
        Self::List { labels: &filter.labels, ended: filter.ended }
    }

    pub(crate) fn logs(id: &'a SandboxId, options: LogOptions) -> Self {
        Self::Logs { id, follow: options.follow, tail: options.tail }
    }

    pub(crate) fn garbage(options: &GcOptions) -> Self {
        Self::Garbage { all: options.all, dry_run: options.dry_run }
    }

    /// The plain values once more as variables, for programs that cannot read JSON. Nothing secret is among them.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let flag = |value: bool| if value { "1" } else { "0" }.to_owned();
        match self {
            Self::Nothing {} => Vec::new(),
            Self::Create { server, spec } => {
                let mut variables = vec![
                    ("GLOVEPORT_SERVER", server.program.display().to_string()),
                    ("GLOVEPORT_SESSION_ID", spec.session_id.to_string()),
                    ("GLOVEPORT_KEEP_ALIVE", flag(spec.keep_alive)),
                    ("GLOVEPORT_WORKSPACE_KIND", spec.workspace.kind.to_owned()),
                ];
                variables.extend(spec.image.map(|image| ("GLOVEPORT_IMAGE", image.to_owned())));
                variables.extend(spec.workspace.path.map(|path| ("GLOVEPORT_WORKSPACE", path.display().to_string())));
                variables.extend(spec.workspace.volume.map(|name| ("GLOVEPORT_VOLUME", name.to_owned())));
                variables.extend(spec.time_to_live.map(|limit| ("GLOVEPORT_TIME_TO_LIVE", limit.to_string())));
                variables
            }
            Self::Sandbox { id } => vec![("GLOVEPORT_SANDBOX_ID", id.to_string())],
            Self::Session { session_id } => vec![("GLOVEPORT_SESSION_ID", session_id.to_string())],
            Self::List { ended, .. } => vec![("GLOVEPORT_ENDED", flag(*ended))],
            Self::Logs { id, follow, tail } => {
                let mut variables = vec![("GLOVEPORT_SANDBOX_ID", id.to_string()), ("GLOVEPORT_FOLLOW", flag(*follow))];
                variables.extend(tail.map(|lines| ("GLOVEPORT_TAIL", lines.to_string())));
                variables
            }
            Self::Garbage { all, dry_run } => {
                vec![("GLOVEPORT_ALL", flag(*all)), ("GLOVEPORT_DRY_RUN", flag(*dry_run))]
            }
            Self::Warm { server, count } => {
                vec![("GLOVEPORT_SERVER", server.program.display().to_string()), ("GLOVEPORT_COUNT", count.to_string())]
            }
        }
    }
}

/// The server that is to run in a sandbox.
#[derive(Serialize)]
pub(crate) struct ServerView<'a> {
    /// Our own binary, static.
    program: &'a Path,
    /// Its first arguments; the program adds `--workspace`, `--host` and `--port`.
    arguments: Vec<String>,
    /// Its variables: those of the spec, the secrets, and the key.
    environment: BTreeMap<&'a str, &'a str>,
}

impl<'a> ServerView<'a> {
    pub(crate) fn new(program: &'a Path, spec: Option<&'a SandboxSpec>, key: &'a Secret) -> Self {
        let mut arguments = vec!["serve".to_owned()];
        let mut environment = BTreeMap::new();
        if let Some(spec) = spec {
            if let Some(memory) = spec.limits.memory {
                arguments.extend(["--max-memory-gb".to_owned(), gib(memory).to_string()]);
            }
            environment.extend(spec.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            environment.extend(spec.secrets.iter().map(|(name, value)| (name.as_str(), value.expose())));
            environment.insert("GLOVEPORT_KEY", key.expose());
        }
        Self { program, arguments, environment }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a limit is not exact to the byte beyond 2^53 of them")]
fn gib(bytes: u64) -> f64 {
    bytes as f64 / 1_073_741_824.0
}

/// What a sandbox is made from.
#[derive(Serialize)]
pub(crate) struct SpecView<'a> {
    session_id: &'a SessionId,
    image: Option<&'a str>,
    command: Option<&'a [String]>,
    working_dir: Option<&'a str>,
    environment: &'a BTreeMap<String, String>,
    secrets: BTreeMap<&'a str, &'a str>,
    session_key: &'a str,
    workspace: PlaceView<'a>,
    mounts: Vec<MountView<'a>>,
    limits: LimitsView,
    network: NetworkView<'a>,
    ports: Vec<PortView<'a>>,
    labels: &'a BTreeMap<String, String>,
    plugins: &'a [String],
    user: Option<UserView>,
    runtime_class: Option<&'a str>,
    time_to_live: Option<f64>,
    idle_stop: Option<f64>,
    keep_alive: bool,
    warm: bool,
}

#[derive(Serialize)]
struct PlaceView<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<&'a str>,
}

#[derive(Serialize)]
struct MountView<'a> {
    #[serde(flatten)]
    source: PlaceView<'a>,
    target: &'a str,
    read_only: bool,
}

#[derive(Serialize)]
struct LimitsView {
    cpus: Option<f64>,
    memory: Option<u64>,
    disk: Option<u64>,
    processes: Option<u64>,
    factor: Option<u32>,
    gpus: bool,
}

#[derive(Serialize)]
struct NetworkView<'a> {
    mode: &'static str,
    hosts: &'a [String],
}

#[derive(Serialize)]
struct PortView<'a> {
    name: &'a str,
    port: Option<u16>,
}

#[derive(Serialize)]
struct UserView {
    user: u32,
    group: Option<u32>,
    files_group: Option<u32>,
}

impl<'a> SpecView<'a> {
    pub(crate) fn new(spec: &'a SandboxSpec, key: &'a Secret) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        Self {
            session_id: &spec.session_id,
            image: spec.image.as_deref(),
            command: spec.command.as_deref(),
            working_dir: spec.working_dir.as_deref(),
            environment: &spec.environment,
            secrets: spec.secrets.iter().map(|(name, value)| (name.as_str(), value.expose())).collect(),
            session_key: key.expose(),
            workspace: match &spec.workspace {
                Workspace::Temporary => PlaceView { kind: "temporary", path: None, volume: None },
                Workspace::Directory(path) => PlaceView { kind: "directory", path: Some(path), volume: None },
                Workspace::Volume(name) => PlaceView { kind: "volume", path: None, volume: Some(name) },
            },
            mounts: spec.mounts.iter().map(MountView::new).collect(),
            limits: LimitsView {
                cpus: spec.limits.cpus,
                memory: spec.limits.memory,
                disk: spec.limits.disk,
                processes: spec.limits.processes,
                factor: spec.limits.factor,
                gpus: spec.limits.gpus,
            },
            network: match &spec.network {
                NetworkPolicy::Full => NetworkView { mode: "full", hosts: &[] },
                NetworkPolicy::None => NetworkView { mode: "none", hosts: &[] },
                NetworkPolicy::Only(hosts) => NetworkView { mode: "only", hosts },
            },
            ports: spec.ports.iter().map(|port| PortView { name: &port.name, port: port.port }).collect(),
            labels: &spec.labels,
            plugins: &spec.plugins,
            user: spec.user.map(|who| UserView { user: who.user, group: who.group, files_group: who.files_group }),
            runtime_class: spec.runtime_class.as_deref(),
            time_to_live: seconds(spec.time_to_live),
            idle_stop: seconds(spec.idle_stop),
            keep_alive: spec.keep_alive,
            warm: spec.warm,
        }
    }
}

impl<'a> MountView<'a> {
    fn new(mount: &'a gloveport_provider::Mount) -> Self {
        let source = match &mount.source {
            MountSource::Directory(path) => PlaceView { kind: "directory", path: Some(path), volume: None },
            MountSource::Volume(name) => PlaceView { kind: "volume", path: None, volume: Some(name) },
            MountSource::Overlay(path) => PlaceView { kind: "overlay", path: Some(path), volume: None },
        };
        Self { source, target: &mount.target, read_only: mount.read_only }
    }
}

//! From a spec to what the engine is asked to make (docker-runtime 5 and 6).

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    time::SystemTime,
};

use bollard::models::{
    ContainerCreateBody, DeviceRequest, HostConfig, Mount as EngineMount, MountType, MountVolumeOptions,
    MountVolumeOptionsDriverConfig, PortBinding, PortMap,
};
use gloveport_contract::recorder::Recorder;
use gloveport_provider::container::{KEY, PORT, STATE};
use gloveport_provider::{
    Mount, MountSource, ProviderError, ResourceLimits, RunAs, SandboxId, SandboxSpec, Settings, Workspace,
};

use crate::{
    DockerOptions,
    audit::Audit,
    binary::Binary,
    edge::{Edge, TRUST},
    fault::{failed, wrong},
    kwargs,
    names::{self, EDITOR, FIRST_FREE, Ports, WORK},
    network::Closed,
    options::Variables,
    ports::LockedPort,
};

/// Ports of programs that a spec can ask for.
const MOST_PORTS: usize = 64;

/// All that a container is made from.
pub(crate) struct Plan<'a> {
    pub(crate) options: &'a DockerOptions,
    pub(crate) spec: &'a SandboxSpec,
    pub(crate) id: &'a SandboxId,
    pub(crate) image: &'a str,
    /// The backend, as the label tells it.
    pub(crate) backend: &'a str,
    pub(crate) key: &'a str,
    pub(crate) binary: &'a Binary,
    /// Ports that are the same inside and outside.
    pub(crate) locked: Option<&'a [LockedPort; 4]>,
    /// The network that it is alone on with its gate.
    pub(crate) closed: Option<&'a Closed>,
    /// The secrets that the gate puts into requests.
    pub(crate) edge: Option<&'a Edge>,
    /// What is recorded.
    pub(crate) audit: Option<&'a Audit>,
    /// The image, if that ends with the container.
    pub(crate) fork: Option<&'a str>,
    /// Its server waits until it is told what it is for.
    pub(crate) waits: bool,
    /// The engine is Podman.
    pub(crate) podman: bool,
    /// Whom the image names as its user; may be empty.
    pub(crate) user_of_image: &'a str,
}

/// Ports of a container that the engine's machine has, too.
#[derive(Debug)]
pub(crate) struct Published {
    /// The ports.
    pub(crate) ports: Vec<u16>,
    /// The same as the engine writes them.
    pub(crate) names: Vec<String>,
    /// Where the engine's machine has them.
    pub(crate) bindings: PortMap,
}

impl Plan<'_> {
    /// Whether it is our server that runs.
    fn is_ours(&self) -> bool {
        self.spec.command.is_none()
    }

    /// Whether the server reads what is secret from its standard input, or ends with it.
    pub(crate) fn needs_input(&self) -> bool {
        self.is_ours() && (!self.given().is_empty() || self.audit.is_some() || !self.spec.keep_alive)
    }

    /// Variables of the tools that are in no configuration of the container: secrets, and what stands for others. What leads
    /// to the authority of this sandbox is among them, as it must not be in an image that is made of it.
    pub(crate) fn given(&self) -> Variables {
        let secrets = self.spec.secrets.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        self.edge.map(Edge::variables).unwrap_or_default().into_iter().chain(secrets).collect()
    }

    /// Whom the server tells what happens.
    pub(crate) fn recorder(&self) -> Result<Option<Recorder>, ProviderError> {
        let (Some(audit), Some(closed)) = (self.audit, self.closed) else { return Ok(None) };
        Ok(Some(closed.recorder(audit, &self.published()?.ports)))
    }

    /// Whether containers get IPv6 addresses of their link unless that is turned off. Docker turns it off itself.
    fn has_ipv6(&self) -> bool {
        let is_here = self.options.endpoint.address.is_local();
        self.podman && (!is_here || gloveport_platform::has_ipv6())
    }

    /// Whether the server works as somebody who may make the workspace.
    pub(crate) fn is_root(&self) -> bool {
        let user = self.user().unwrap_or_else(|| self.user_of_image.to_owned());
        ["", "0", "root"].contains(&user.split(':').next().unwrap_or_default())
    }

    /// Port on which the server listens.
    fn server_port(&self) -> u16 {
        self.locked.map_or(PORT, |ports| ports[0].port)
    }

    /// The ports of programs by name, and those of the engine's machine that are asked for.
    fn ports(&self) -> Result<(Ports, BTreeMap<u16, u16>), ProviderError> {
        if self.spec.ports.len() > MOST_PORTS {
            return Err(wrong("ports", format!("{MOST_PORTS} are possible at most")));
        }
        let mut ports = Ports::new();
        let mut fixed = BTreeMap::new();
        let standard = [EDITOR, WORK[0], WORK[1]];
        for (at, (name, port)) in standard.into_iter().enumerate() {
            let port = self.locked.map_or(port, |locked| locked[at + 1].port);
            ports.insert(name.to_owned(), port);
        }
        if let Some(locked) = self.locked {
            fixed.extend(locked.iter().map(|locked| (locked.port, locked.port)));
        }
        let mut free = FIRST_FREE..;
        for wanted in &self.spec.ports {
            let taken = |port: &u16| self.spec.ports.iter().any(|other| other.port == Some(*port));
            let port = wanted.port.or_else(|| free.find(|port| !taken(port)));
            let port = port.ok_or_else(|| wrong("ports", "no port is free"))?;
            ports.insert(wanted.name.clone(), port);
            // The port of the editor is the same on both sides (docker-runtime 5.1).
            if wanted.name == EDITOR.0 && wanted.port.is_some() {
                fixed.insert(port, port);
            }
        }
        let mut seen = std::collections::BTreeSet::from([self.server_port()]);
        if let Some(port) = ports.values().find(|port| !seen.insert(**port)) {
            return Err(wrong("ports", format!("{port} is used twice")));
        }
        if !self.spec.plugins.iter().any(|plugin| plugin == EDITOR.0)
            && !self.spec.ports.iter().any(|port| port.name == EDITOR.0)
        {
            ports.remove(EDITOR.0);
        }
        Ok((ports, fixed))
    }

    /// The ports that the engine's machine has, too.
    pub(crate) fn published(&self) -> Result<Published, ProviderError> {
        let (ports, fixed) = self.ports()?;
        let ports: Vec<u16> = ports.values().copied().chain([self.server_port()]).collect();
        let names: Vec<String> = ports.iter().map(|port| format!("{port}/tcp")).collect();
        let binding = |port: &u16| PortBinding {
            host_ip: Some(self.options.bind.clone()),
            // Without a number the engine chooses one.
            host_port: Some(fixed.get(port).map(u16::to_string).unwrap_or_default()),
        };
        let bindings = names.iter().zip(&ports).map(|(name, port)| (name.clone(), Some(vec![binding(port)]))).collect();
        Ok(Published { ports, names, bindings })
    }

    fn environment(&self, ports: &Ports, published: &[u16]) -> Variables {
        let mut all = Variables::new();
        let mut set = |name: &str, value: String| all.insert(name.to_owned(), value);
        set("port", self.server_port().to_string());
        set("PYTHONUNBUFFERED", "1".to_owned());
        set("PIP_BREAK_SYSTEM_PACKAGES", "1".to_owned());
        if !self.waits {
            set("OPENHANDS_SESSION_ID", self.spec.session_id.to_string());
        }
        for (name, variables) in [
            (EDITOR.0, &["VSCODE_PORT"][..]),
            (WORK[0].0, &["APP_PORT_1", "WORK_PORT_1"]),
            (WORK[1].0, &["APP_PORT_2", "WORK_PORT_2"]),
        ] {
            for variable in variables {
                if let Some(port) = ports.get(name) {
                    set(variable, port.to_string());
                }
            }
        }
        if let Some(closed) = self.closed {
            closed.tell(&mut all, published);
        }
        all.extend(self.spec.environment.clone());
        if !self.is_ours() {
            // A server of the caller has no other way to get them.
            all.extend(self.given());
        }
        all.insert(KEY.to_owned(), self.key.to_owned());
        all
    }

    fn command(&self, expires: Option<f64>) -> Vec<String> {
        if let Some(command) = &self.spec.command {
            return command.clone();
        }
        let mut words = vec![self.binary.path().to_owned(), "container-server".to_owned()];
        words.extend(["--port".to_owned(), self.server_port().to_string()]);
        words.extend(["--workspace".to_owned(), self.options.workspace.clone()]);
        if self.waits {
            words.push("--claimed".to_owned());
            return words;
        }
        words.extend(self.spec.plugins.iter().flat_map(|plugin| ["--plugin".to_owned(), plugin.clone()]));
        words.extend(expires.into_iter().flat_map(|at| ["--expires".to_owned(), at.to_string()]));
        let idle = self.spec.idle_stop.map(|idle| idle.as_secs_f64());
        words.extend(idle.into_iter().flat_map(|idle| ["--idle-stop".to_owned(), idle.to_string()]));
        if self.needs_input() {
            words.push("--input".to_owned());
        }
        if !self.spec.keep_alive {
            words.push("--lifeline".to_owned());
        }
        words
    }

    /// What tells the engine whether the server lives.
    fn health(&self) -> Vec<String> {
        ["container-health", "--port", &self.server_port().to_string()].into_iter().fold(
            vec![self.binary.path().to_owned()],
            |mut words, word| {
                words.push(word.to_owned());
                words
            },
        )
    }

    fn labels(&self, ports: &Ports, expires: Option<f64>) -> Result<HashMap<String, String>, ProviderError> {
        let json = |value: serde_json::Result<String>| value.map_err(|error| failed("be told the labels", error));
        let mut labels: HashMap<String, String> = self.spec.labels.clone().into_iter().collect();
        if let Some(name) = labels.keys().find(|name| names::OURS.contains(&name.as_str())) {
            return Err(wrong("labels", format!("`{name}` is set by the runtime itself; take another name")));
        }
        let names: Vec<&String> = self.spec.labels.keys().collect();
        let mut set = |name: &str, value: String| labels.insert(name.to_owned(), value);
        set(names::LABELS, json(serde_json::to_string(&names))?);
        if self.waits {
            set(names::ROLE, names::WARM.to_owned());
        } else {
            set(names::SESSION, self.spec.session_id.to_string());
        }
        set(names::BACKEND, self.backend.to_owned());
        set(names::KEEP, self.spec.keep_alive.to_string());
        set(names::PORTS, json(serde_json::to_string(ports))?);
        set(names::WORKSPACE, self.options.workspace.clone());
        set(names::CREATED, names::seconds(SystemTime::now()).to_string());
        set(names::SETTINGS, json(serde_json::to_string(&Settings::of(self.spec)))?);
        if let Some(image) = self.fork {
            set(names::FORK, image.to_owned());
        }
        if let Some(closed) = self.closed {
            set(names::NETWORK, closed.network.clone());
        }
        if let Some(audit) = self.audit {
            set(names::AUDIT, audit.volume.clone());
        }
        if let Some(expires) = expires {
            set(names::EXPIRES, expires.to_string());
        }
        Ok(labels)
    }

    fn mounts(&self) -> Result<(Vec<String>, Vec<EngineMount>), ProviderError> {
        let mut binds = Vec::new();
        let mut mounts = Vec::new();
        let workspace = &self.options.workspace;
        match &self.spec.workspace {
            Workspace::Temporary => {}
            Workspace::Directory(path) => binds.push(bind(path, workspace, false)?),
            Workspace::Volume(name) => binds.push(format!("{name}:{workspace}")),
        }
        for (at, Mount { source, target, read_only }) in self.spec.mounts.iter().enumerate() {
            match source {
                MountSource::Directory(path) => binds.push(bind(path, target, *read_only)?),
                MountSource::Volume(name) => {
                    binds.push(if *read_only { format!("{name}:{target}:ro") } else { format!("{name}:{target}") });
                }
                MountSource::Overlay(path) => mounts.push(self.overlay(at, path, target)?),
            }
        }
        if (self.needs_input() || self.waits) && self.spec.keep_alive {
            mounts.push(EngineMount {
                typ: Some(MountType::VOLUME),
                target: Some(STATE.to_owned()),
                ..EngineMount::default()
            });
        }
        if self.edge.is_some() {
            mounts.push(EngineMount {
                typ: Some(MountType::VOLUME),
                target: Some(TRUST.to_owned()),
                ..EngineMount::default()
            });
        }
        self.binary.mount(&mut binds, &mut mounts);
        Ok((binds, mounts))
    }

    /// A directory below a layer that takes what the sandbox writes (docker-runtime 6.2).
    fn overlay(&self, at: usize, lower: &Path, target: &str) -> Result<EngineMount, ProviderError> {
        let base = self.options.overlays.as_ref().ok_or_else(|| {
            wrong("mounts", "overlays need a directory for what is written: set SANDBOX_VOLUME_OVERLAYS")
        })?;
        let directory = base.join(self.id.as_str()).join(at.to_string());
        let (upper, work) = (directory.join("upper"), directory.join("work"));
        for path in [&upper, &work] {
            fs::create_dir_all(path).map_err(|source| ProviderError::File {
                action: "make the directory",
                path: path.clone(),
                source,
            })?;
        }
        let text = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
        if [lower, &upper].iter().any(|path| path.to_string_lossy().contains([',', ':', '\\'])) {
            return Err(wrong(
                "mounts",
                format!("an overlay cannot be made of {}: no `,`, `:` and `\\`", lower.display()),
            ));
        }
        let pairs = [("type", "overlay".to_owned()), ("device", "overlay".to_owned()), ("o", text)];
        let labels = [("app", "openhands"), ("role", "worker"), ("container", self.id.as_str())];
        Ok(EngineMount {
            typ: Some(MountType::VOLUME),
            target: Some(target.to_owned()),
            volume_options: Some(MountVolumeOptions {
                labels: Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
                driver_config: Some(MountVolumeOptionsDriverConfig {
                    name: Some("local".to_owned()),
                    options: Some(pairs.map(|(name, value)| (name.to_owned(), value)).into()),
                }),
                ..MountVolumeOptions::default()
            }),
            ..EngineMount::default()
        })
    }

    /// The whole.
    pub(crate) fn body(&self) -> Result<ContainerCreateBody, ProviderError> {
        let Self { options, spec, .. } = self;
        let expires = spec.time_to_live.and_then(|time| SystemTime::now().checked_add(time)).map(names::seconds);
        let (ports, _) = self.ports()?;
        let published = self.published()?;
        let (binds, mounts) = self.mounts()?;
        let environment = self.environment(&ports, &published.ports);
        let mut host = HostConfig {
            binds: Some(binds),
            mounts: Some(mounts),
            extra_hosts: (!options.hosts.is_empty()).then(|| options.hosts.clone()),
            runtime: spec.runtime_class.as_deref().map(runtime),
            device_requests: spec.limits.gpus.then(|| vec![self.gpus()]),
            ..HostConfig::default()
        };
        limit(&mut host, &spec.limits);
        let mut exposed = None;
        if options.host_network {
            tracing::warn!("the sandbox shares the network of the engine's machine; its ports are reached by others");
            host.network_mode = Some("host".to_owned());
        } else if self.closed.is_none() {
            host.port_bindings = Some(published.bindings);
            exposed = Some(published.names);
        }
        let mut body = ContainerCreateBody {
            image: Some(self.image.to_owned()),
            // Empty and not absent: the image's own is not used.
            entrypoint: Some(Vec::new()),
            cmd: Some(self.command(expires)),
            working_dir: Some(spec.working_dir.clone().unwrap_or_else(|| "/".to_owned())),
            env: Some(environment.into_iter().map(|(name, value)| format!("{name}={value}")).collect()),
            labels: Some(self.labels(&ports, expires)?),
            exposed_ports: exposed,
            open_stdin: Some(self.needs_input()),
            stdin_once: Some(self.needs_input()),
            attach_stdin: Some(self.needs_input()),
            user: self.user(),
            ..ContainerCreateBody::default()
        };
        if let Some(group) = spec.user.and_then(|user| user.files_group) {
            host.group_add = Some(vec![group.to_string()]);
        }
        let health = self.is_ours().then(|| self.health());
        let workspace = (options.workspace.as_str(), self.is_root());
        options.hardening.apply(spec, workspace, self.podman, health, &mut body, &mut host);
        kwargs::apply(&options.kwargs, &mut body, &mut host)?;
        if let Some(closed) = self.closed {
            closed.shut(&mut body, &mut host, self.has_ipv6());
        }
        body.host_config = Some(host);
        Ok(body)
    }

    /// Whom the server works as, where it is not left to the image.
    pub(crate) fn user(&self) -> Option<String> {
        let configured = || self.options.kwargs.get("user")?.as_str().map(str::to_owned);
        configured().or_else(|| self.spec.user.map(user))
    }

    /// docker-runtime 5.3
    fn gpus(&self) -> DeviceRequest {
        DeviceRequest {
            capabilities: Some(vec![vec!["gpu".to_owned()]]),
            count: self.options.gpus.is_none().then_some(-1),
            device_ids: self.options.gpus.clone(),
            ..DeviceRequest::default()
        }
    }
}

fn limit(host: &mut HostConfig, limits: &ResourceLimits) {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    if let Some(memory) = limits.memory {
        // Swap is not more memory.
        (host.memory, host.memory_swap) = (Some(number(memory)), Some(number(memory)));
    }
    host.pids_limit = limits.processes.map(number);
    host.nano_cpus = limits.cpus.map(nano);
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the spec admits finite positive numbers; more than 2^63 saturates"
)]
fn nano(cpus: f64) -> i64 {
    (cpus * 1e9) as i64
}

fn user(user: RunAs) -> String {
    match user.group {
        Some(group) => format!("{}:{group}", user.user),
        None => user.user.to_string(),
    }
}

/// The engine's name of a way to keep sandboxes apart.
fn runtime(class: &str) -> String {
    match class {
        "sysbox" => "sysbox-runc",
        "gvisor" => "runsc",
        other => other,
    }
    .to_owned()
}

fn bind(path: &Path, target: &str, read_only: bool) -> Result<String, ProviderError> {
    let text = path.to_str().filter(|text| !text.contains(':')).ok_or_else(|| {
        wrong("mounts", format!("{} cannot be mounted: the engine takes no `:` in paths", path.display()))
    })?;
    Ok(if read_only { format!("{text}:{target}:ro") } else { format!("{text}:{target}") })
}

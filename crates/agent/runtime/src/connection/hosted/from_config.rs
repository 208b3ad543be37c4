//! From the configuration of OpenHands to a sandbox (configuration 4 and 5).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use gloveport_client::ClientOptions;
use gloveport_config::{Config, EFFECTS, Loaded, Need, Origin, Origins, SandboxConfig};
use gloveport_origins::OriginError;
use gloveport_protocol::Secret;
use gloveport_provider::{
    Capabilities, Confinement, ExposedPort, Isolation, Level, Mount, MountSource, SandboxSpec, SessionId, StandsFor,
    Workspace,
};

use super::{Engine, HostedOptions, WarmPool};
use crate::{RuntimeError, environment, quote};

/// What a configuration says about the sandbox of a session.
#[derive(Clone, Debug)]
pub struct FromConfig {
    /// What it is made from.
    pub spec: SandboxSpec,
    /// How the session treats it.
    pub options: HostedOptions,
    /// Keys that are set and that this runtime has no use for, as in OpenHands. [`FromConfig::new`] writes each to the log.
    pub ignored: Vec<&'static str>,
}

impl FromConfig {
    /// Whether a setting with this need has an effect on the sandboxes of a runtime that can do this.
    pub fn meets(can: &Capabilities, need: Need) -> bool {
        meets(Engine::of(can), can, need)
    }

    /// The sandbox of a session at the provider of this name, which can do this. The variables are those of the
    /// backend.
    ///
    /// What the provider cannot do and OpenHands passes over is passed over, too. What would leave the sandbox less
    /// safe than the configuration says is an error.
    pub fn new(
        config: &Config,
        runtime: &str,
        can: &Capabilities,
        session: SessionId,
        plugins: &[String],
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, RuntimeError> {
        let mut made = Settings { config, variables, origins: None }.sandbox(runtime, can, session)?;
        made.spec.plugins = plugins.to_vec();
        for key in &made.ignored {
            tracing::warn!(runtime, key, "the runtime has no use for this setting");
        }
        Ok(made)
    }

    /// The sandbox of somebody who makes it without a session of this library, which would set it up afterwards: only
    /// what was set counts, so that a runtime has its own image where nobody named one, and the variables of a session
    /// are there from the start. Nothing is written to the log.
    pub fn of_settings(
        loaded: &Loaded,
        runtime: &str,
        can: &Capabilities,
        session: SessionId,
    ) -> Result<Self, RuntimeError> {
        let Loaded { config, origins, environment, .. } = loaded;
        let mut made =
            Settings { config, variables: environment, origins: Some(origins) }.sandbox(runtime, can, session)?;
        let mut variables = BTreeMap::new();
        for (name, value) in environment::defaults(environment, config.sandbox.enable_auto_lint) {
            let name = name.to_uppercase();
            if !quote::is_variable_name(&name) {
                return Err(RuntimeError::VariableName { name });
            }
            variables.insert(name, value);
        }
        // What the configuration names for the start counts more.
        variables.append(&mut made.spec.secrets);
        made.spec.secrets = variables;
        Ok(made)
    }
}

/// What a sandbox is translated from.
struct Settings<'a> {
    config: &'a Config,
    /// Those of the backend.
    variables: &'a BTreeMap<String, String>,
    /// Where only that counts which somebody set.
    origins: Option<&'a Origins>,
}

impl Settings<'_> {
    fn sandbox(&self, runtime: &str, can: &Capabilities, session: SessionId) -> Result<FromConfig, RuntimeError> {
        let Self { config, variables, .. } = *self;
        let sandbox = &config.sandbox;
        let engine = Engine::of(can);
        let mut spec = SandboxSpec::new(session);
        let mut ignored = unused(config, engine, can);
        if can.images {
            spec.image = self.image();
        }
        if can.runtime_classes {
            spec.runtime_class.clone_from(&sandbox.remote_runtime_class);
        }
        spec.confinement = confinement(sandbox, runtime, can)?;
        spec.limits.gpus = sandbox.enable_gpu && can.gpus;
        if can.resource_factor {
            spec.limits.factor = Some(factor(sandbox, runtime)?);
        }
        if let Some(port) = sandbox.vscode_port.filter(|_| can.ports) {
            spec.ports.push(ExposedPort { name: "vscode".to_owned(), port: Some(self::port(port, runtime)?) });
        }
        spec.secrets.clone_from(&sandbox.runtime_startup_env_vars);
        if config.debug || variables.get("DEBUG").is_some_and(|debug| debug.eq_ignore_ascii_case("true")) {
            spec.environment.insert("DEBUG".to_owned(), "true".to_owned());
        }
        if let Some(origins) = sandbox.allow_origins.as_deref().filter(|origins| !origins.is_empty()) {
            let told = allowed_origins(origins, runtime)?;
            spec.environment.insert(gloveport_origins::Origins::VARIABLE.to_owned(), told);
        }
        if !config.enable_browser {
            spec.leave_out_browser();
        }
        if engine == Engine::Local {
            spec.session_key =
                variables.get("SESSION_API_KEY").filter(|key| !key.is_empty()).map(|key| Secret::new(key.as_str()));
        }
        let places = Places { config, runtime, can, overlays: variables.contains_key("SANDBOX_VOLUME_OVERLAYS") };
        ignored.extend(places.put_into(&mut spec)?);
        let warm = if can.warm { WarmPool::from_environment(variables)?.desired } else { 0 };
        let options = HostedOptions {
            alive_within: engine.alive_within(seconds(sandbox.remote_runtime_init_timeout)),
            keep_alive: sandbox.keep_runtime_alive && can.keep_alive,
            // In OpenHands only the remote runtime pauses what it keeps, and does so unless it is told otherwise.
            pause_closed: sandbox.pause_closed_runtimes && engine == Engine::Remote && can.pause,
            retries: sandbox.remote_runtime_enable_retries,
            warm,
            client: ClientOptions { sandbox_timeout: seconds(sandbox.timeout), ..ClientOptions::new("") },
            ..HostedOptions::default()
        };
        spec.keep_alive = options.keep_alive;
        Ok(FromConfig { spec, options, ignored })
    }

    /// The finished image, else the one to begin with.
    fn image(&self) -> Option<String> {
        let sandbox = &self.config.sandbox;
        let counts = |key| self.origins.is_none_or(|origins| *origins.of("sandbox", key) != Origin::Default);
        let base = sandbox.base_container_image.as_ref().filter(|_| counts("base_container_image"));
        sandbox.runtime_container_image.as_ref().or(base).cloned()
    }
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}

fn factor(sandbox: &SandboxConfig, runtime: &str) -> Result<u32, RuntimeError> {
    let factor = u32::try_from(sandbox.remote_runtime_resource_factor).ok().filter(|factor| *factor > 0);
    factor.ok_or_else(|| RuntimeError::Setting {
        key: "sandbox.remote_runtime_resource_factor",
        runtime: runtime.to_owned(),
        reason: "it must be 1, 2, 4 or 8".to_owned(),
    })
}

/// How far it is kept apart. A runtime that does that in its own way needs no level; one that cannot is refused.
fn confinement(
    sandbox: &SandboxConfig,
    runtime: &str,
    can: &Capabilities,
) -> Result<Option<Confinement>, RuntimeError> {
    let Some(name) = &sandbox.isolation else { return Ok(None) };
    let wrong =
        |reason: String| RuntimeError::Setting { key: "sandbox.isolation", runtime: runtime.to_owned(), reason };
    let level =
        Level::named(name).ok_or_else(|| wrong("it must be `none`, `files`, `container` or `gvisor`".to_owned()))?;
    let is_apart = !matches!(can.isolation, Isolation::None | Isolation::Process);
    match level {
        _ if can.confine => Ok(Some(Confinement { level, ..Confinement::default() })),
        Level::None => Ok(None),
        Level::Files | Level::Container if is_apart => Ok(None),
        Level::Gvisor if can.isolation == Isolation::VirtualMachine => Ok(None),
        Level::Gvisor if is_apart => {
            Err(wrong("its sandboxes have the kernel of their machine; the runtime `local` has this level".to_owned()))
        }
        Level::Files | Level::Container | Level::Gvisor => {
            Err(wrong("it has no levels, and keeps no sandbox from the machine that it is on".to_owned()))
        }
    }
}

/// The origins whose pages may use its server, as the server reads them.
fn allowed_origins(origins: &[String], runtime: &str) -> Result<String, RuntimeError> {
    let wrong = |error: OriginError| RuntimeError::Setting {
        key: "sandbox.allow_origins",
        runtime: runtime.to_owned(),
        reason: error.to_string(),
    };
    gloveport_origins::Origins::new(origins).map_err(wrong)?;
    Ok(origins.join(","))
}

fn port(port: i64, runtime: &str) -> Result<u16, RuntimeError> {
    u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(|| RuntimeError::Setting {
        key: "sandbox.vscode_port",
        runtime: runtime.to_owned(),
        reason: "it must be a port, from 1 to 65535".to_owned(),
    })
}

/// Keys that are set and have no use: other runtimes do something with them ([`EFFECTS`]).
fn unused(config: &Config, engine: Engine, can: &Capabilities) -> Vec<&'static str> {
    let sandbox = &config.sandbox;
    let default = SandboxConfig::default();
    macro_rules! set {
        ($($field:ident,)+) => {
            [$((stringify!($field), concat!("sandbox.", stringify!($field)), sandbox.$field != default.$field),)+]
        };
    }
    let set = set! {
        base_container_image,
        runtime_container_image,
        platform,
        use_host_network,
        additional_networks,
        runtime_binding_address,
        docker_runtime_kwargs,
        cuda_visible_devices,
        enable_gpu,
        vscode_port,
        remote_runtime_class,
        isolation,
        remote_runtime_resource_factor,
        keep_runtime_alive,
    };
    let is_used = |key: &str| {
        let effect = EFFECTS.iter().find(|effect| (effect.section, effect.key) == ("sandbox", key));
        effect.and_then(|effect| effect.sandboxes).is_none_or(|need| meets(engine, can, need))
    };
    set.into_iter().filter(|(key, _, set)| *set && !is_used(key)).map(|(_, name, _)| name).collect()
}

/// Whether a setting with this need has an effect on the sandboxes of a runtime.
const fn meets(engine: Engine, can: &Capabilities, need: Need) -> bool {
    match need {
        Need::Nothing => true,
        Need::Images => can.images,
        Need::HostDirectories => can.host_directories,
        Need::Mounts => can.host_directories && !matches!(can.isolation, Isolation::None),
        Need::Gpus => can.gpus,
        Need::Ports => can.ports,
        Need::RuntimeClasses => can.runtime_classes,
        Need::Levels => can.confine,
        Need::Sizes => can.resource_factor,
        Need::KeepAlive => can.keep_alive,
        Need::Docker => matches!(engine, Engine::Docker),
        Need::Kubernetes => matches!(engine, Engine::Kubernetes),
        Need::Containers => matches!(engine, Engine::Docker | Engine::Kubernetes),
        // Of those that stand for no runtime of OpenHands, one has machines.
        Need::Table => {
            matches!(engine, Engine::Docker | Engine::Kubernetes) || matches!(can.isolation, Isolation::VirtualMachine)
        }
        Need::Remote => matches!(engine, Engine::Remote),
        Need::OnThisMachine => matches!(engine, Engine::Docker | Engine::Local),
    }
}

const VOLUMES: &str = "sandbox.volumes";

/// Directories and volumes (docker-runtime 6, configuration 7).
struct Places<'a> {
    config: &'a Config,
    runtime: &'a str,
    can: &'a Capabilities,
    /// Whether the backend lets directories be covered by a layer (`SANDBOX_VOLUME_OVERLAYS`).
    overlays: bool,
}

impl Places<'_> {
    /// Puts them into the spec and gives the keys that have no use.
    fn put_into(&self, spec: &mut SandboxSpec) -> Result<Vec<&'static str>, RuntimeError> {
        let volumes = self.volumes()?;
        // The machine of a service has paths of its own.
        if self.can.isolation == Isolation::None && self.can.stands_for != Some(StandsFor::Remote) {
            return self.without_mounts(spec, &volumes);
        }
        let mut ignored = Vec::new();
        let workspace = match &self.config.workspace_mount_path {
            Some(path) if self.config.sandbox.volumes.is_none() => Some(("core.workspace_base", path)),
            _ => None,
        };
        if let Some((key, path)) = workspace {
            if self.can.host_directories {
                spec.workspace = Workspace::Directory(absolute(path));
            } else {
                ignored.push(key);
            }
        }
        for volume in volumes {
            if !self.can_mount(&volume) {
                ignored.push(VOLUMES);
                continue;
            }
            let is_workspace = volume.target == self.config.workspace_mount_path_in_sandbox && !volume.read_only;
            match volume.source {
                MountSource::Directory(path) if is_workspace => spec.workspace = Workspace::Directory(path),
                MountSource::Volume(name) if is_workspace => spec.workspace = Workspace::Volume(name),
                source => {
                    spec.mounts.push(Mount { source, target: volume.target, read_only: volume.read_only });
                }
            }
        }
        ignored.dedup();
        Ok(ignored)
    }

    /// Where paths are those of the machine there is only the workspace.
    fn without_mounts(&self, spec: &mut SandboxSpec, volumes: &[Mount]) -> Result<Vec<&'static str>, RuntimeError> {
        let is_workspace = |volume: &&Mount| volume.target == "/workspace";
        let refused = |reason: &str| {
            let (runtime, reason) = (self.runtime.to_owned(), reason.to_owned());
            Err(RuntimeError::Setting { key: VOLUMES, runtime, reason })
        };
        match volumes.iter().find(is_workspace) {
            Some(volume) if volume.read_only => {
                return refused("it works in the directory itself, which would not be read-only; leave `:ro` out");
            }
            Some(Mount { source: MountSource::Overlay(_), .. }) => {
                return refused("it works in the directory itself, without a layer above it; leave `:overlay` out");
            }
            _ => {}
        }
        if let Some(base) = self.config.workspace_base.as_deref().filter(|base| !base.is_empty()) {
            if self.can.host_directories {
                spec.workspace = Workspace::Directory(absolute(base));
            } else {
                return Ok(vec!["core.workspace_base"]);
            }
        }
        let others = volumes.iter().any(|volume| volume.target != "/workspace");
        Ok(if others { vec![VOLUMES] } else { Vec::new() })
    }

    fn can_mount(&self, volume: &Mount) -> bool {
        match volume.source {
            MountSource::Directory(_) => self.can.host_directories,
            MountSource::Volume(_) => self.can.volumes,
            MountSource::Overlay(_) => self.can.host_directories && self.overlays,
        }
    }

    /// `sandbox.volumes`: `HOST:CONTAINER[:MODE]`, divided by commas. `volume:NAME:CONTAINER[:MODE]` is accepted, too.
    fn volumes(&self) -> Result<Vec<Mount>, RuntimeError> {
        let text = self.config.sandbox.volumes.as_deref().unwrap_or_default();
        text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(|entry| self.volume(entry)).collect()
    }

    fn volume(&self, entry: &str) -> Result<Mount, RuntimeError> {
        let named = entry.strip_prefix("volume:");
        let mut parts = named.unwrap_or(entry).splitn(3, ':');
        let (Some(host), Some(target)) = (parts.next(), parts.next()) else {
            return Err(RuntimeError::Setting {
                key: VOLUMES,
                runtime: self.runtime.to_owned(),
                reason: format!("`{entry}` is not of the form `HOST:CONTAINER` or `HOST:CONTAINER:MODE`"),
            });
        };
        let mode = parts.next().unwrap_or("rw");
        let is_path = named.is_none() && host.starts_with('/');
        let source = if !is_path {
            MountSource::Volume(host.to_owned())
        } else if mode.contains("overlay") {
            MountSource::Overlay(absolute(host))
        } else {
            MountSource::Directory(absolute(host))
        };
        let read_only = mode.split(',').any(|option| option == "ro");
        Ok(Mount { source, target: target.to_owned(), read_only })
    }
}

fn absolute(path: &str) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| Path::new("/").join(path))
}

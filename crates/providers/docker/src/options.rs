//! What can be set on the provider.

use std::{collections::BTreeMap, path::PathBuf};

use gloveport_docker_engine::Endpoint;
use gloveport_edge::trust::BUNDLE_VARIABLE;
use gloveport_provider::{ProviderContext, ProviderError, backend};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Hardening, fault::wrong, kwargs};

/// The address that `sandbox.runtime_binding_address` has unless it is set.
const ALL_ADDRESSES: &str = "0.0.0.0";
/// The URL that `sandbox.local_runtime_url` has unless it is set.
const LOCAL_URL: &str = "http://localhost";

/// How the provider works.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct DockerOptions {
    /// Which engine.
    pub endpoint: Endpoint,
    /// The binary that is put into containers.
    pub program: PathBuf,
    /// How it gets there.
    pub binary: BinaryMode,
    /// When images are pulled.
    pub pull: PullPolicy,
    /// The image of a sandbox that names none.
    pub image: Option<String>,
    /// The workspace in containers (`core.workspace_mount_path_in_sandbox`). Absolute.
    pub workspace: String,
    /// Scheme and host under which published ports are reached.
    pub url: String,
    /// Address of the engine's machine on which ports are published.
    pub bind: String,
    /// Ports come from the ranges of OpenHands, the same inside and outside, instead of being chosen by the engine.
    pub port_ranges: bool,
    /// Containers use the network of the engine's machine.
    pub host_network: bool,
    /// Networks that containers are connected to beside the default one.
    pub networks: Vec<String>,
    /// Names and addresses for the containers' hosts file: `name:address`.
    pub hosts: Vec<String>,
    /// Processors and system of the image: `linux/arm64`.
    pub platform: Option<String>,
    /// GPUs by number; all if absent.
    pub gpus: Option<Vec<String>>,
    /// More options, by the names of the Docker SDK for Python.
    pub kwargs: Map<String, Value>,
    /// What containers may not do.
    pub hardening: Hardening,
    /// Directory for the upper layers of overlays, as the engine sees it (`SANDBOX_VOLUME_OVERLAYS`).
    pub overlays: Option<PathBuf>,
    /// What the containers' servers write goes to our log as well (`DEBUG_RUNTIME`).
    pub stream_logs: bool,
    /// [`close`](gloveport_provider::Provider::close) deletes all sandboxes, of whatever backend
    /// (`sandbox.rm_all_containers`).
    pub remove_all: bool,
    /// The file with the certificates of authorities that this machine trusts, if it is not one of the usual ones.
    pub certificates: Option<String>,
    /// Where the files are that tell which backends of this machine live.
    pub backends: PathBuf,
}

/// How our binary gets into a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BinaryMode {
    /// Mounted where the engine can, else copied.
    #[default]
    Auto,
    /// The file of this machine is mounted, read-only.
    Mount,
    /// It is copied into a volume of the engine once, which is mounted read-only.
    Copy,
    /// The image has it as `/openhands/bin/gloveport`.
    Image,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullPolicy {
    /// When the engine does not have it.
    #[default]
    Missing,
    /// Before each sandbox.
    Always,
    /// Never.
    Never,
}

/// `[extended.docker]` of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Extended {
    binary: BinaryMode,
    pull: PullPolicy,
    bind_address: Option<String>,
    port_ranges: bool,
    hosts: Vec<String>,
}

impl DockerOptions {
    /// The options that the configuration and the environment of the backend ask for. What OpenHands has no key for is in
    /// the table `[extended.docker]` of the configuration file.
    pub fn new(context: &ProviderContext) -> Result<Self, ProviderError> {
        let sandbox = &context.config.sandbox;
        let variable = |name: &str| context.environment.get(name).filter(|value| !value.is_empty());
        let mut table = match context.config.extended.get("docker") {
            None => Map::new(),
            Some(Value::Object(table)) => table.clone(),
            Some(other) => return Err(wrong("[extended.docker] of the configuration", format!("{other} is no table"))),
        };
        let hardening = Hardening::take(&mut table)?;
        let extended = Extended::deserialize(Value::Object(table))
            .map_err(|error| wrong("[extended.docker] of the configuration", error))?;
        let endpoint =
            Endpoint::find(&context.environment).map_err(|error| wrong("the address of the Docker engine", error))?;
        let configured = sandbox.local_runtime_url.trim_end_matches('/');
        let url = match variable("DOCKER_HOST_ADDR") {
            Some(host) => format!("http://{host}"),
            None if configured == LOCAL_URL => format!("http://{}", endpoint.address.host()),
            None => configured.to_owned(),
        };
        let explicit = extended
            .bind_address
            .or_else(|| Some(sandbox.runtime_binding_address.clone()).filter(|address| address != ALL_ADDRESSES));
        let is_loopback = ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| url == format!("http://{host}"));
        let bind = explicit.unwrap_or_else(|| if is_loopback { "127.0.0.1" } else { ALL_ADDRESSES }.to_owned());
        let workspace = &context.config.workspace_mount_path_in_sandbox;
        if !workspace.starts_with('/') || workspace.trim_matches('/').is_empty() {
            let reason = format!("it must be an absolute path below /, and is `{workspace}`");
            return Err(wrong("core.workspace_mount_path_in_sandbox", reason));
        }
        let kwargs = sandbox.docker_runtime_kwargs.clone().map(Map::from).unwrap_or_default();
        kwargs::check(&kwargs)?;
        hardening.check(&kwargs)?;
        let truthy = |value: &String| ["1", "true", "yes", "on"].contains(&value.to_lowercase().as_str());
        Ok(Self {
            endpoint,
            program: context.inside.clone(),
            binary: extended.binary,
            pull: extended.pull,
            image: sandbox.runtime_container_image.clone().or_else(|| sandbox.base_container_image.clone()),
            workspace: workspace.clone(),
            url,
            bind,
            port_ranges: extended.port_ranges,
            host_network: sandbox.use_host_network,
            networks: sandbox.additional_networks.clone(),
            hosts: extended.hosts,
            platform: sandbox.platform.clone(),
            gpus: sandbox
                .cuda_visible_devices
                .as_deref()
                .filter(|devices| !devices.is_empty())
                .map(|devices| devices.split(',').map(str::to_owned).collect()),
            kwargs,
            hardening,
            overlays: variable("SANDBOX_VOLUME_OVERLAYS").map(PathBuf::from),
            stream_logs: variable("DEBUG_RUNTIME").is_some_and(truthy),
            remove_all: sandbox.rm_all_containers,
            certificates: variable(BUNDLE_VARIABLE).cloned(),
            backends: backend::directory(&context.environment),
        })
    }

    /// The URL of a port of the engine's machine.
    pub(crate) fn url_of(&self, port: u16) -> String {
        format!("{}:{port}", self.url)
    }
}

/// Variables of a container that our provider sets itself.
pub(crate) type Variables = BTreeMap<String, String>;

//! `[sandbox]` (configuration 5).

use std::collections::BTreeMap;

use gloveport_protocol::Secret;

use crate::{free_form::FreeForm, key::section};

/// The image that sandboxes start from unless another is configured (configuration 5).
const BASE_IMAGE: &str = "nikolaik/python-nodejs:python3.12-nodejs22";

/// User id where the system has none to tell.
pub(crate) const USER_ID: i64 = 1000;

section! {
    /// The sandboxes: image, limits, and the engine that hosts them.
    pub struct SandboxConfig = "sandbox" {
        /// URL of the remote runtime service.
        remote_runtime_api_url: Option<String> = Some("http://localhost:8000".into());
        /// Scheme and host under which sandboxes on this machine are reached.
        local_runtime_url: String = "http://localhost".into();
        /// Leave the sandbox running when its session ends.
        keep_runtime_alive: bool = false;
        /// Pause a sandbox that is kept when its session ends. Only remote sandboxes, and only with
        /// `keep_runtime_alive`.
        pause_closed_runtimes: bool = true;
        /// Remove all containers of sandboxes, not only its own, when a session ends.
        rm_all_containers: bool = false;
        /// Key for the remote runtime service.
        api_key: Option<Secret> = None, example = "\"…\"";
        /// Image that sandboxes start from.
        base_container_image: Option<String> = Some(BASE_IMAGE.into());
        /// Finished image; it is used as it is, and nothing is built.
        runtime_container_image: Option<String> = None, example = "\"ghcr.io/example/sandbox:1\"";
        /// User id in the sandbox.
        user_id: i64 = USER_ID, dynamic = "the user id of the process";
        /// Time limit of an action in seconds, unless it has its own.
        timeout: i64 = 120;
        /// Seconds to wait for a remote sandbox to start.
        remote_runtime_init_timeout: i64 = 180;
        /// Seconds to wait for an answer of the remote runtime service.
        remote_runtime_api_timeout: i64 = 180;
        /// Retry requests to the remote runtime service after temporary failures.
        remote_runtime_enable_retries: bool = true;
        /// How remote sandboxes are isolated: `gvisor` or `sysbox`; unset: the service decides.
        remote_runtime_class: Option<String> = None, example = "\"sysbox\"";
        /// How far sandboxes of the runtime `local` are kept apart from this machine: `none`, `files`, `container` or `gvisor`.
        isolation: Option<String> = None, example = "\"container\"";
        /// Origins whose web pages may use sandboxes from a browser, with their keys; `*` is all pages.
        allow_origins: Option<Vec<String>> = None, example = "[\"https://app.example.com\"]";
        /// Size of remote sandboxes: 1, 2, 4 or 8.
        remote_runtime_resource_factor: i64 = 1;
        /// Check files for errors after each edit.
        enable_auto_lint: bool = false;
        /// Share the network of the host.
        use_host_network: bool = false;
        /// Further Docker networks to join.
        additional_networks: Vec<String> = Vec::new();
        /// Address of the host on which the ports of sandboxes are opened.
        runtime_binding_address: String = "0.0.0.0".into();
        /// Further arguments for building the image.
        runtime_extra_build_args: Option<Vec<String>> = None, example = "[\"--network\", \"host\"]";
        /// Start the plugins of the agent with the sandbox.
        initialize_plugins: bool = true;
        /// Build the image even if it exists.
        force_rebuild_runtime: bool = false;
        /// Commands that are added to the image when it is built.
        runtime_extra_deps: Option<String> = None, example = "\"RUN apt-get install -y ripgrep\"";
        /// Variables for the environment of the sandbox. Their values are never shown.
        runtime_startup_env_vars: BTreeMap<String, Secret> = BTreeMap::new();
        /// Environment of BrowserGym to evaluate in.
        browsergym_eval_env: Option<String> = None, example = "\"browsergym/openended\"";
        /// Platform of the image.
        platform: Option<String> = None, example = "\"linux/amd64\"";
        /// Seconds after which an idle sandbox is closed.
        close_delay: i64 = 3600;
        /// Give the sandbox graphics cards.
        enable_gpu: bool = false;
        /// Which graphics cards; unset: all.
        cuda_visible_devices: Option<String> = None, example = "\"0,1\"";
        /// Further settings for the container, with the names of the Docker SDK for Python.
        docker_runtime_kwargs: Option<FreeForm> = None, example = "{ shm_size = \"1g\" }";
        /// Repository to clone into the workspace.
        selected_repo: Option<String> = None, example = "\"owner/repository\"";
        /// Directories in which the terminal interface does not ask for trust.
        trusted_dirs: Vec<String> = Vec::new();
        /// Port of the editor; unset: a free one.
        vscode_port: Option<i64> = None, example = "41234";
        /// Mounts, separated by commas, each `HOST:CONTAINER` or `HOST:CONTAINER:MODE`. The one on `/workspace` is the
        /// workspace.
        volumes: Option<String> = None, example = "\"/home/me/project:/workspace:rw\"";
    }
}

impl SandboxConfig {
    /// The image that sandboxes start from; one that is unset is the default one (configuration 5).
    pub fn base_image(&self) -> &str {
        self.base_container_image.as_deref().unwrap_or(BASE_IMAGE)
    }
}

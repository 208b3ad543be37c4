//! Where a setting has an effect: the one table from which `gloveport config` and the documentation tell it, and by which
//! the maker of a sandbox knows what a runtime has no use for.

/// What a runtime must be for a setting to have an effect on its sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Any one will do.
    Nothing,
    /// It makes sandboxes from images.
    Images,
    /// It uses directories of this machine.
    HostDirectories,
    /// It uses directories of this machine, at other paths than there.
    Mounts,
    /// It gives sandboxes GPUs.
    Gpus,
    /// It gives ports URLs.
    Ports,
    /// It has several ways to keep sandboxes apart.
    RuntimeClasses,
    /// It keeps sandboxes apart from this machine, as far as is asked for.
    Levels,
    /// It has sandboxes of several sizes.
    Sizes,
    /// Its sandboxes can outlive who made them.
    KeepAlive,
    /// It is `docker`.
    Docker,
    /// It is `kubernetes`.
    Kubernetes,
    /// It is `docker` or `kubernetes`.
    Containers,
    /// It has a table of its own in `[extended]`: `docker`, `kubernetes`, `e2b`, `daytona`, `runloop` or `modal`.
    Table,
    /// It is `remote`.
    Remote,
    /// It is `local` or `docker`.
    OnThisMachine,
}

impl Need {
    /// Which runtimes these are, for people: those that are built in by name, others by what they can do.
    pub const fn runtimes(self) -> &'static str {
        match self {
            Self::Nothing => "all",
            Self::Images => {
                "`docker`, `kubernetes`, `e2b`, `daytona`, `runloop`, `modal`, `remote`, others with images"
            }
            Self::HostDirectories => "`local`, `docker`, others with host directories",
            Self::Mounts => "`docker`, others with mounts",
            Self::Gpus => "`docker`, `kubernetes`, others with GPUs",
            Self::Ports => "`local`, `docker`, `kubernetes`, `modal`, others with exposed ports",
            Self::RuntimeClasses => "`docker`, `kubernetes`, `remote`, others with runtime classes",
            Self::Levels => "`local`",
            Self::Sizes => "`kubernetes`, `runloop`, `modal`, `remote`, others with sizes",
            Self::KeepAlive => {
                "`local`, `docker`, `kubernetes`, `e2b`, `daytona`, `runloop`, `modal`, `remote`, others that keep sandboxes alive"
            }
            Self::Docker => "`docker`",
            Self::Kubernetes => "`kubernetes`",
            Self::Containers => "`docker`, `kubernetes`",
            Self::Table => "`docker`, `kubernetes`, `e2b`, `daytona`, `runloop`, `modal`",
            Self::Remote => "`remote`",
            Self::OnThisMachine => "`local`, `docker`",
        }
    }
}

/// Where a setting has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// `core`, `sandbox`, …
    pub section: &'static str,
    /// The key; empty for a section with keys of your own.
    pub key: &'static str,
    /// The sandboxes that `session start`, `run --runtime` and sessions of the library make, where the runtime is such.
    pub sandboxes: Option<Need>,
    /// Other commands that read it.
    pub commands: &'static [&'static str],
    /// Sessions of the library do something with it that is not the making of the sandbox; so does `replay`, which runs
    /// one.
    pub library: bool,
}

impl Effect {
    /// The effect of a key; none has none at all. The groups of a section are like the section.
    pub fn of(section: &str, key: &str) -> Option<&'static Self> {
        let section = section.split('.').next().unwrap_or(section);
        EFFECTS.iter().find(|effect| effect.section == section && effect.key == key)
    }

    /// Its name: `sandbox.timeout`.
    pub fn name(&self) -> String {
        if self.key.is_empty() { self.section.to_owned() } else { format!("{}.{}", self.section, self.key) }
    }

    /// The places, for people.
    pub fn places(&self) -> Vec<String> {
        let sandboxes = self.sandboxes.map(|need| format!("new sandboxes ({})", need.runtimes()));
        let commands = self.commands.iter().map(|command| format!("`{command}`"));
        let library = self.library.then(|| "sessions of the library, `replay`".to_owned());
        sandboxes.into_iter().chain(commands).chain(library).collect()
    }

    const fn new(section: &'static str, key: &'static str) -> Self {
        Self { section, key, sandboxes: None, commands: &[], library: false }
    }

    const fn sandboxes(self, need: Need) -> Self {
        Self { sandboxes: Some(need), ..self }
    }

    const fn commands(self, commands: &'static [&'static str]) -> Self {
        Self { commands, ..self }
    }

    const fn library(self) -> Self {
        Self { library: true, ..self }
    }
}

const fn core(key: &'static str) -> Effect {
    Effect::new("core", key)
}

const fn sandbox(key: &'static str) -> Effect {
    Effect::new("sandbox", key)
}

const fn model(key: &'static str) -> Effect {
    Effect::new("llm", key).library()
}

const fn cluster(key: &'static str) -> Effect {
    Effect::new("kubernetes", key).sandboxes(Need::Kubernetes)
}

/// Who writes and reads histories.
const HISTORIES: &[&str] = &["session"];
/// Who asks about what is risky.
const GATE: &[&str] = &["session", "run --runtime"];
/// Who builds images.
const IMAGES: &[&str] = &["image build", "image tag"];

/// All settings that have an effect, in the order of the documentation. What is not here is accepted because OpenHands
/// has it, and does nothing.
pub const EFFECTS: &[Effect] = &[
    core("runtime").commands(&["session", "run --image"]).library(),
    core("default_agent").library(),
    core("file_store").commands(HISTORIES),
    core("file_store_path").commands(HISTORIES),
    core("file_store_web_hook_url").commands(HISTORIES),
    core("file_store_web_hook_headers").commands(HISTORIES),
    core("file_store_web_hook_batch").commands(HISTORIES),
    core("enable_browser").sandboxes(Need::Nothing),
    core("workspace_base").sandboxes(Need::HostDirectories).library(),
    core("workspace_mount_path_in_sandbox").sandboxes(Need::Containers).library(),
    core("workspace_mount_path").sandboxes(Need::Mounts),
    core("workspace_mount_rewrite").sandboxes(Need::Mounts),
    core("init_git_in_empty_workspace").library(),
    core("debug").sandboxes(Need::Nothing),
    core("git_user_name").library(),
    core("git_user_email").library(),
    sandbox("remote_runtime_api_url").sandboxes(Need::Remote).commands(&["image build --builder remote"]),
    sandbox("local_runtime_url").sandboxes(Need::OnThisMachine),
    sandbox("keep_runtime_alive").sandboxes(Need::KeepAlive),
    sandbox("pause_closed_runtimes").library(),
    sandbox("rm_all_containers").library(),
    sandbox("api_key").sandboxes(Need::Remote).commands(&["image build --builder remote"]),
    sandbox("base_container_image").sandboxes(Need::Images).commands(IMAGES),
    sandbox("runtime_container_image").sandboxes(Need::Images),
    sandbox("timeout").commands(&["session exec", "session ipython", "run --runtime"]).library(),
    sandbox("remote_runtime_init_timeout").library(),
    sandbox("remote_runtime_api_timeout").sandboxes(Need::Remote),
    sandbox("remote_runtime_enable_retries").library(),
    sandbox("remote_runtime_class").sandboxes(Need::RuntimeClasses),
    sandbox("isolation").sandboxes(Need::Levels),
    sandbox("allow_origins").sandboxes(Need::Nothing),
    sandbox("remote_runtime_resource_factor").sandboxes(Need::Sizes),
    sandbox("enable_auto_lint").sandboxes(Need::Nothing).library(),
    sandbox("use_host_network").sandboxes(Need::Docker),
    sandbox("additional_networks").sandboxes(Need::Docker),
    sandbox("runtime_binding_address").sandboxes(Need::Docker),
    sandbox("runtime_extra_build_args").commands(&["image build"]),
    sandbox("force_rebuild_runtime").commands(&["image build"]),
    sandbox("runtime_extra_deps").commands(IMAGES),
    sandbox("runtime_startup_env_vars").sandboxes(Need::Nothing).library(),
    sandbox("platform").sandboxes(Need::Docker).commands(IMAGES),
    sandbox("enable_gpu").sandboxes(Need::Gpus),
    sandbox("cuda_visible_devices").sandboxes(Need::Docker),
    sandbox("docker_runtime_kwargs").sandboxes(Need::Docker),
    sandbox("vscode_port").sandboxes(Need::Ports),
    sandbox("volumes").sandboxes(Need::HostDirectories),
    Effect::new("security", "confirmation_mode").commands(GATE).library(),
    Effect::new("security", "security_analyzer").commands(GATE).library(),
    Effect::new("mcp", "sse_servers").library(),
    Effect::new("mcp", "shttp_servers").library(),
    Effect::new("mcp", "stdio_servers").library(),
    Effect::new("agent", "enable_llm_editor").library(),
    model("model"),
    model("api_key"),
    model("base_url"),
    model("num_retries"),
    model("retry_min_wait"),
    model("retry_max_wait"),
    model("timeout"),
    model("temperature"),
    model("max_input_tokens"),
    model("max_output_tokens"),
    model("input_cost_per_token"),
    model("output_cost_per_token"),
    model("correct_num"),
    cluster("namespace"),
    cluster("ingress_domain"),
    cluster("pvc_storage_size"),
    cluster("pvc_storage_class"),
    cluster("resource_cpu_request"),
    cluster("resource_memory_request"),
    cluster("resource_memory_limit"),
    cluster("image_pull_secret"),
    cluster("ingress_tls_secret"),
    cluster("node_selector_key"),
    cluster("node_selector_val"),
    cluster("tolerations_yaml"),
    cluster("privileged"),
    Effect::new("extended", "").sandboxes(Need::Table),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::keys::{FREE_SECTIONS, SECTIONS};

    #[test]
    fn every_effect_is_that_of_a_key_and_is_told_once() {
        let mut seen = BTreeSet::new();
        for effect in EFFECTS {
            let typed = SECTIONS.iter().find(|section| section.name == effect.section);
            let is_key = match typed {
                Some(section) => section.keys.iter().any(|key| key.name == effect.key),
                None => effect.key.is_empty() && FREE_SECTIONS.iter().any(|(name, _)| *name == effect.section),
            };
            assert!(is_key, "{}", effect.name());
            assert!(seen.insert(effect.name()), "{} is there twice", effect.name());
            assert!(!effect.places().is_empty(), "{}", effect.name());
        }
    }

    #[test]
    fn groups_are_like_their_section_and_what_is_not_used_has_no_effect() {
        assert_eq!(Effect::of("llm.draft_editor", "model"), Effect::of("llm", "model"));
        assert_eq!(Effect::of("sandbox", "volumes").unwrap().name(), "sandbox.volumes");
        assert_eq!(Effect::of("extended", "").unwrap().name(), "extended");
        for (section, key) in [("core", "max_iterations"), ("sandbox", "close_delay"), ("condenser", "")] {
            assert_eq!(Effect::of(section, key), None, "{section}.{key}");
        }
    }
}

//! What the configuration says of sandboxes and commands, and flags that lie over it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::Context as _;
use gloveport_config::{Effect, Loaded, Note, Origin};
use gloveport_protocol::Secret;
use gloveport_provider::{
    Capabilities, Confinement, EdgeSecret, NetworkPolicy, ProviderContext, ResourceLimits, SandboxSpec, SessionId,
    Workspace,
};
use gloveport_runtime::{FromConfig, HostedOptions, RuntimeError};

use super::{
    arguments::MakeArgs,
    launch::session_key,
    runtimes::Runtimes,
    secrets,
    values::{SecretFrom, SecretGiven},
};
use crate::directory;

/// The name that the runtime `docker` had before.
const EVENT_STREAM: &str = "eventstream";

/// The runtime that the configuration names; none where nobody set one: the default of OpenHands needs an engine.
pub(super) fn runtime(loaded: &Loaded) -> Option<String> {
    let name = loaded.config.runtime.as_str();
    let is_set = *loaded.origins.of("core", "runtime") != Origin::Default && !name.is_empty();
    is_set.then(|| if name == EVENT_STREAM { "docker" } else { name }.to_owned())
}

/// The time limit of commands that have none of their own; none where nobody set one.
pub(super) fn command_limit(loaded: &Loaded) -> anyhow::Result<Option<Duration>> {
    let Origin::Set(place) = loaded.origins.of("sandbox", "timeout") else { return Ok(None) };
    let seconds = u64::try_from(loaded.config.sandbox.timeout).ok().filter(|seconds| *seconds > 0);
    let seconds = seconds.with_context(|| {
        format!("{place}: `timeout` in [sandbox] is {}, and must be at least 1 second", loaded.config.sandbox.timeout)
    })?;
    Ok(Some(Duration::from_secs(seconds)))
}

/// Tells whose limit it was that a command did not keep.
pub(super) fn tell_limit(loaded: &Loaded) {
    if let Some(place) = place(loaded, "sandbox.timeout") {
        tracing::warn!("the limit is `timeout` in [sandbox] ({place}); --timeout sets another one");
    }
}

/// A sandbox that is to be made.
pub(super) struct Wanted {
    pub(super) spec: SandboxSpec,
    /// How a session treats it; whether it goes on when nobody uses it any more is a part of that.
    pub(super) options: HostedOptions,
}

impl Wanted {
    /// The same, as far apart from this machine as that can be, if nobody has said how far.
    pub(super) fn kept_apart(mut self, can: &Capabilities) -> Self {
        if can.confine {
            self.spec.confinement.get_or_insert_with(Confinement::strongest);
        }
        self
    }
}

/// What the configuration says, and above it the flags.
pub(super) fn wanted(
    runtimes: &Runtimes,
    runtime: &str,
    can: &Capabilities,
    session_id: SessionId,
    flags: MakeArgs,
    variables: Vec<(String, String)>,
) -> anyhow::Result<Wanted> {
    let loaded = &runtimes.loaded;
    ensure_usable(&loaded.notes)?;
    command_limit(loaded)?;
    let made = FromConfig::of_settings(loaded, runtime, can, session_id);
    let FromConfig { spec, options, ignored } = made.map_err(|error| placed(loaded, error))?;
    tell_ignored(loaded, runtime, &ignored);
    Ok(Wanted { spec: lay_over(spec, flags, variables, can, &runtimes.context)?, options })
}

/// A setting of a sandbox whose value is wrong makes none: it would be another one than was meant.
fn ensure_usable(notes: &[Note]) -> anyhow::Result<()> {
    let of_sandbox = |note: &&Note| {
        let setting = note.setting.as_deref().and_then(|setting| setting.split_once('.'));
        let effect = setting.and_then(|(section, key)| Effect::of(section, key));
        effect.is_some_and(|effect| effect.sandboxes.is_some() || effect.commands.contains(&"run --runtime"))
            || note.setting.as_deref() == Some("core.runtime")
    };
    let wrong: Vec<String> = notes.iter().filter(of_sandbox).map(ToString::to_string).collect();
    anyhow::ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Where the setting of an error stands.
fn placed(loaded: &Loaded, error: RuntimeError) -> anyhow::Error {
    let RuntimeError::Setting { key, .. } = &error else { return error.into() };
    match place(loaded, key) {
        Some(place) => anyhow::Error::from(error).context(place),
        None => error.into(),
    }
}

fn place(loaded: &Loaded, name: &str) -> Option<String> {
    let (section, key) = name.split_once('.')?;
    match loaded.origins.of(section, key) {
        Origin::Set(place) => Some(place.to_string()),
        Origin::Default | Origin::Derived { .. } => None,
    }
}

fn tell_ignored(loaded: &Loaded, runtime: &str, ignored: &[&str]) {
    if ignored.is_empty() {
        return;
    }
    let named = ignored.iter().map(|key| match place(loaded, key) {
        Some(place) => format!("{key} ({place})"),
        None => (*key).to_owned(),
    });
    let named: Vec<String> = named.collect();
    tracing::warn!("the runtime `{runtime}` has no use for {}", named.join(", "));
}

/// The flags count more than the configuration.
fn lay_over(
    configured: SandboxSpec,
    flags: MakeArgs,
    variables: Vec<(String, String)>,
    can: &Capabilities,
    context: &ProviderContext,
) -> anyhow::Result<SandboxSpec> {
    let mut spec = configured;
    let (mut secrets, mut edge_secrets) = (BTreeMap::new(), BTreeMap::new());
    for SecretGiven { from, hosts } in flags.secret {
        let (name, value) = read_secret(&from, context)?;
        if hosts.is_empty() {
            secrets.insert(name, value);
        } else {
            edge_secrets.insert(name, EdgeSecret { value, hosts });
        }
    }
    let mut labels: BTreeMap<String, String> = flags.label.into_iter().collect();
    secrets::mark(&mut labels, &secrets, can);
    // Of two variables with one name the secret one counts for providers.
    spec.secrets.retain(|name, _| variables.iter().all(|(other, _)| other != name));
    spec.secrets.extend(secrets);
    spec.environment.extend(variables);
    if let Some(directory) = &flags.workspace {
        spec.workspace = Workspace::Directory(directory::existing(directory)?);
    }
    spec.mounts.retain(|mount| flags.mount.iter().all(|other| other.target != mount.target));
    spec.mounts.extend(flags.mount);
    spec.ports.retain(|port| flags.port.iter().all(|other| other.name != port.name));
    spec.ports.extend(flags.port);
    let place = |path: PathBuf| std::path::absolute(&path).with_context(|| format!("cannot use {}", path.display()));
    let places = |paths: Vec<PathBuf>| paths.into_iter().map(place).collect::<anyhow::Result<Vec<_>>>();
    let (read, write) = (places(flags.allow_read)?, places(flags.allow_write)?);
    let audit = flags.audit.map(place).transpose()?;
    let configured = spec.confinement.take();
    let confinement = match flags.isolation {
        Some(level) => Some(Confinement { level, ..Confinement::default() }),
        // A container is kept apart without it.
        None if configured.is_none() && (!read.is_empty() || !write.is_empty() || (audit.is_some() && can.confine)) => {
            Some(Confinement::strongest())
        }
        None => configured,
    };
    let confinement = confinement.map(|confinement| Confinement { read, write, ..confinement });
    Ok(SandboxSpec {
        image: flags.image.or(spec.image),
        session_key: Some(session_key()?),
        edge_secrets,
        user: flags.user,
        limits: ResourceLimits {
            memory: flags.memory,
            cpus: flags.cpus,
            processes: flags.processes,
            gpus: flags.gpus || spec.limits.gpus,
            ..spec.limits
        },
        network: flags.network.unwrap_or(NetworkPolicy::Full),
        confinement,
        audit,
        labels,
        plugins: flags.plugin,
        time_to_live: flags.ttl,
        idle_stop: flags.idle_stop,
        ..spec
    })
}

fn read_secret(from: &SecretFrom, context: &ProviderContext) -> anyhow::Result<(String, Secret)> {
    match from {
        SecretFrom::Environment(name) => {
            let value = context.environment.get(name);
            let value = value.with_context(|| format!("the environment has no variable {name} for --secret {name}"))?;
            Ok((name.clone(), Secret::new(value.clone())))
        }
        SecretFrom::File(name, file) => {
            let value = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {} for --secret {name}", file.display()))?;
            let value = value.strip_suffix('\n').map_or(&*value, |value| value.strip_suffix('\r').unwrap_or(value));
            Ok((name.clone(), Secret::new(value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use clap::CommandFactory as _;
    use gloveport_config::{Config, DEFAULT_TOML, EFFECTS, LoadOptions};
    use gloveport_provider::Isolation;
    use gloveport_provider_docker::DockerOptions;
    use gloveport_provider_kubernetes::KubernetesOptions;
    use gloveport_provider_local::LocalOptions;

    use super::*;
    use crate::{cli::Cli, providers};

    fn load(text: &str) -> Loaded {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("config.toml"), text).unwrap();
        let environment = [("HOME", "/home/nobody"), ("DOCKER_HOST", "unix:///nowhere")].into_iter().collect();
        let options = LoadOptions { current_directory: "/".into(), environment, ..LoadOptions::default() };
        let file = Some(directory.path().join("config.toml"));
        Config::load(&LoadOptions { file, ..options }).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// All that decides what a sandbox of this runtime is.
    fn outcome(text: &str, runtime: &str) -> (String, Capabilities) {
        let loaded = load(text);
        let context = providers::context_of(&loaded).unwrap();
        let (can, options) = match runtime {
            "local" => {
                let options = LocalOptions::new(&context).unwrap();
                (providers::registry().make(runtime, &context).unwrap().capabilities(), format!("{options:?}"))
            }
            "docker" => {
                let options = DockerOptions::new(&context).unwrap();
                (providers::registry().make(runtime, &context).unwrap().capabilities(), format!("{options:?}"))
            }
            "kubernetes" => {
                let options = KubernetesOptions::new(&context).unwrap();
                (providers::registry().make(runtime, &context).unwrap().capabilities(), format!("{options:?}"))
            }
            _ => {
                let images = Capabilities { images: true, runtime_classes: true, ..Capabilities::NONE };
                let can = Capabilities { isolation: Isolation::Container, resource_factor: true, ..images };
                (can, String::new())
            }
        };
        let session = SessionId::new("session").unwrap();
        let made = FromConfig::of_settings(&loaded, runtime, &can, session).unwrap();
        let FromConfig { spec, options: session, .. } = made;
        (format!("{spec:?} {} {options}", session.keep_alive), can)
    }

    /// A value that is not the default, for each key of `[core]` and `[sandbox]`.
    fn others() -> BTreeMap<String, String> {
        let mut section = String::new();
        let mut others = BTreeMap::new();
        for line in DEFAULT_TOML.lines() {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']').to_owned();
            }
            let (is_example, line) = match line.strip_prefix('#') {
                Some(example) => (true, example),
                None => (false, line),
            };
            let Some((key, value)) = line.split_once(" = ").filter(|_| ["core", "sandbox"].contains(&&*section)) else {
                continue;
            };
            let other = match value {
                value if is_example => value.to_owned(),
                "true" => "false".to_owned(),
                "false" => "true".to_owned(),
                "[]" | "[\".*\"]" => "[\"x\"]".to_owned(),
                "{}" => "{ A = \"b\" }".to_owned(),
                text if text.starts_with('"') => format!("{}x\"", text.trim_end_matches('"')),
                number => (number.parse::<i64>().unwrap() + 1).to_string(),
            };
            if !key.contains(' ') {
                others.insert(format!("{section}.{key}"), other);
            }
        }
        others
    }

    #[test]
    fn what_is_said_of_settings_is_what_reaches_the_sandboxes_of_each_runtime() {
        let others = others();
        assert!(others.len() > 60, "{others:?}");
        for runtime in ["local", "docker", "kubernetes", "another"] {
            for (name, value) in &others {
                let (section, key) = name.split_once('.').unwrap();
                // This one changes what others say.
                let base = if key == "workspace_mount_rewrite" { "workspace_base = \"/home/x\"\n" } else { "" };
                let (before, can) = outcome(&format!("[core]\n{base}"), runtime);
                let header = if section == "core" { String::new() } else { format!("[{section}]\n") };
                let (after, _) = outcome(&format!("[core]\n{base}{header}{key} = {value}\n"), runtime);
                let said = Effect::of(section, key).and_then(|effect| effect.sandboxes);
                let said = said.is_some_and(|need| FromConfig::meets(&can, need));
                assert_eq!(before != after, said, "{name} = {value} with {runtime}");
            }
        }
        let table = "[extended.docker]\nport_ranges = true\n";
        assert_ne!(outcome("", "docker").0, outcome(table, "docker").0);
        assert_eq!(outcome("", "local").0, outcome(table, "local").0);
    }

    #[test]
    fn the_commands_that_settings_have_an_effect_on_are_there() {
        for words in EFFECTS.iter().flat_map(|effect| effect.commands) {
            let mut command = Cli::command();
            for word in words.split(' ').take_while(|word| *word != "remote") {
                let next = match word.strip_prefix("--") {
                    Some(flag) => {
                        assert!(command.get_arguments().any(|known| known.get_long() == Some(flag)), "{words}");
                        continue;
                    }
                    None => command.find_subcommand(word).cloned(),
                };
                command = next.unwrap_or_else(|| panic!("{words}"));
            }
        }
    }
}

//! The providers of this binary, and what they are made from.

use std::{collections::BTreeSet, env::consts::EXE_SUFFIX, fs, path::PathBuf};

use anyhow::Context as _;
use gloveport_config::{Config, LoadOptions, Loaded};
use gloveport_docker_engine::Endpoint;
use gloveport_provider::{ProviderContext, Registry, program::Beside};
use gloveport_provider_daytona::Daytona;
use gloveport_provider_docker::Docker;
use gloveport_provider_e2b::E2b;
use gloveport_provider_kubernetes::Kubernetes;
use gloveport_provider_modal::Modal;
use gloveport_provider_remote::Remote;
use gloveport_provider_runloop::Runloop;

use crate::here;

/// What programs in `PATH` are called that are providers: this and the name.
const PROGRAM: &str = "gloveport-provider-";

/// All providers that are built in. More of them are programs in `PATH`, and any program by `exec:PATH`.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    here::register(&mut registry);
    registry.register(Docker::NAME, Docker::factory);
    registry.register(Kubernetes::NAME, Kubernetes::factory);
    registry.register(E2b::NAME, E2b::factory);
    registry.register(Daytona::NAME, Daytona::factory);
    registry.register(Modal::NAME, Modal::factory);
    registry.register(Runloop::NAME, Runloop::factory);
    registry.register(Remote::NAME, Remote::factory);
    gloveport_provider_exec::register(&mut registry);
    registry
}

/// This program, its configuration as `config show` tells it, and its environment with the `.env` file.
pub(crate) fn context() -> anyhow::Result<ProviderContext> {
    context_of(&load()?)
}

/// The configuration of this process. What is lost of it is told.
pub(crate) fn load() -> anyhow::Result<Loaded> {
    let loaded = Config::load(&LoadOptions::from_process()?)?;
    if let Some(message) = lost(loaded.notes.iter().filter(|note| note.costs_a_setting()).count()) {
        tracing::warn!("{message}");
    }
    Ok(loaded)
}

/// What is told of settings that are lost, if there are any.
pub(crate) fn lost(count: usize) -> Option<String> {
    let settings = match count {
        0 => return None,
        1 => "one of the settings has".to_owned(),
        count => format!("{count} of the settings have"),
    };
    Some(format!("{settings} no effect; `gloveport config check` shows which"))
}

/// The file of this program.
pub(crate) fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("this program cannot find its own file")
}

/// What providers are made from.
pub(crate) fn context_of(loaded: &Loaded) -> anyhow::Result<ProviderContext> {
    let mut config = loaded.config.clone();
    // The end of a command is not that of a session, at which all sandboxes would go, also those of others.
    config.sandbox.rm_all_containers = false;
    let program = own_program()?;
    Ok(ProviderContext {
        config,
        inside: Beside::of(&program, gloveport_build_id::BUILD).or(program.clone()),
        program,
        environment: loaded.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        argument: None,
    })
}

/// The names that can be asked for their sandboxes without an argument: what is built in, and programs in `PATH`.
pub(crate) fn names(registry: &Registry, context: &ProviderContext) -> Vec<String> {
    let built_in =
        registry.names().into_iter().filter(|name| *name != "exec" && here::can_host(name)).map(str::to_owned);
    let mut names: Vec<String> = built_in.collect();
    names.extend(programs(context).into_iter().filter(|name| registry.names().iter().all(|known| known != name)));
    names
}

/// Those of them that may have sandboxes: Docker and Kubernetes only where an engine is named, or seems
/// to be, and services only where there is a key for one.
pub(crate) fn names_in_use(registry: &Registry, context: &ProviderContext) -> Vec<String> {
    let mut names = names(registry, context);
    if Endpoint::find(&context.environment).is_ok_and(|endpoint| !endpoint.is_expected()) {
        names.retain(|name| name != Docker::NAME);
    }
    if !Kubernetes::is_expected(&context.environment) {
        names.retain(|name| name != Kubernetes::NAME);
    }
    if !E2b::is_expected(context) {
        names.retain(|name| name != E2b::NAME);
    }
    if !Daytona::is_expected(context) {
        names.retain(|name| name != Daytona::NAME);
    }
    if !Runloop::is_expected(context) {
        names.retain(|name| name != Runloop::NAME);
    }
    if !Modal::is_expected(context) {
        names.retain(|name| name != Modal::NAME);
    }
    if !Remote::is_expected(&context.config) {
        names.retain(|name| name != Remote::NAME);
    }
    names
}

/// The names of the programs in `PATH`.
fn programs(context: &ProviderContext) -> BTreeSet<String> {
    let path = context.environment.get("PATH").map(String::as_str).unwrap_or_default();
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    let mut names = BTreeSet::new();
    for entry in directories.filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten() {
        let file = entry.file_name();
        let Some(name) = file.to_str().and_then(|file| file.strip_prefix(PROGRAM)) else { continue };
        let name = name.strip_suffix(EXE_SUFFIX).unwrap_or(name);
        let runs = fs::metadata(entry.path()).is_ok_and(|file| gloveport_platform::is_executable(&file));
        if runs && !name.is_empty() {
            names.insert(name.to_owned());
        }
    }
    names
}

//! `gloveport plugin check`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context as _;
use gloveport_plugin::{
    Manifest, ManifestError, ManifestPlugin, Plugin as _, PluginError, PluginHost, Registry, RegistryError,
    initialize_all,
    manifest::{self, Problem},
    registry::Source,
    stop_all,
};
use gloveport_sandbox::Owner;
use gloveport_sys::Surroundings;
use serde_json::json;

use super::registry;
use crate::{
    output::{print, print_json},
    plugin::CheckArgs,
};

/// How much of its output is shown if it does not start.
const SHOWN: usize = 16 * 1024;

/// Keys of the server, which are no business of plugins.
const KEYS: [&str; 2] = ["GLOVEPORT_KEY", "SESSION_API_KEY"];

pub(super) async fn check(arguments: &CheckArgs, owner: &Owner) -> anyhow::Result<ExitCode> {
    let registry = registry();
    let manifest = match find(&arguments.plugin, &registry)? {
        Found::BuiltIn(name) => {
            return told(arguments.json, &name, true, "built in; there is no manifest to check", "");
        }
        Found::Manifest(manifest) => manifest,
        Found::Broken(error) => {
            if arguments.json {
                let problem = |problem: &Problem| {
                    json!({"line": problem.line, "column": problem.column, "message": problem.message,
                        "suggestion": problem.suggestion})
                };
                let problems: Vec<_> = error.problems.iter().map(problem).collect();
                print_json(&json!({"plugin": arguments.plugin, "ok": false, "problems": problems}))?;
                return Ok(ExitCode::FAILURE);
            }
            let count = error.problems.len();
            let problems = if count == 1 { "one problem".to_owned() } else { format!("{count} problems") };
            print(&format!("{error}\n{}: {problems}\n", arguments.plugin))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let unknown: Vec<&String> = manifest.requires.iter().filter(|name| registry.get(name).is_none()).collect();
    for name in unknown {
        tracing::warn!("it requires the plugin `{name}`, which is in none of the folders");
    }
    if !arguments.start {
        let message = format!("nothing is wrong with {}", manifest.path.display());
        return told(arguments.json, &manifest.name, true, &message, "");
    }
    tokio::select! {
        code = start(*manifest, &registry, owner, arguments.json) => code,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
    }
}

/// Tells what came of the check, behind what the plugin printed.
fn told(as_json: bool, name: &str, ok: bool, message: &str, printed: &str) -> anyhow::Result<ExitCode> {
    if as_json {
        print_json(&json!({"plugin": name, "ok": ok, "message": message, "printed": printed, "problems": []}))?;
    } else {
        print(&format!("{printed}{name}: {message}\n"))?;
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is to be checked.
enum Found {
    BuiltIn(String),
    Manifest(Box<Manifest>),
    Broken(ManifestError),
}

/// A file, a folder, or a name, in this order: whoever is in the folder of a plugin means that one.
fn find(what: &str, registry: &Registry) -> anyhow::Result<Found> {
    let path = Path::new(what);
    let file = if path.is_dir() { path.join(manifest::FILE_NAME) } else { path.to_owned() };
    if file.exists() || what.contains('/') || path.extension().is_some() {
        return Ok(Manifest::read(&file).map_or_else(Found::Broken, |manifest| Found::Manifest(Box::new(manifest))));
    }
    let found = registry.find(what).map_err(|error| match error {
        RegistryError::Unknown { meant, .. } => {
            let help = meant.unwrap_or_else(|| "`gloveport plugin ls` lists those that there are".to_owned());
            anyhow::anyhow!("there is no plugin `{what}`; {help}")
        }
        other => other.into(),
    })?;
    Ok(match &found.source {
        Source::BuiltIn(_) => Found::BuiltIn(what.to_owned()),
        Source::Manifest(manifest) => Found::Manifest(manifest.clone()),
        Source::Broken(error) => Found::Broken(error.clone()),
    })
}

/// Starts the plugin with those that it requires in a temporary sandbox, and stops them.
async fn start(manifest: Manifest, registry: &Registry, owner: &Owner, as_json: bool) -> anyhow::Result<ExitCode> {
    let workspace = tempfile::Builder::new().prefix("gloveport-check-").tempdir();
    let workspace = workspace.context("cannot make a directory for the temporary sandbox")?;
    let host = host(workspace.path().to_owned(), owner);
    let name = manifest.name.clone();
    let mut required = Vec::new();
    for other in &manifest.requires {
        match registry.select(std::slice::from_ref(other)) {
            Ok(plugins) => required.extend(plugins),
            Err(error) => tracing::warn!("{name} is started without `{other}`, which it requires: {error}"),
        }
    }
    required.dedup_by(|one, other| one.name() == other.name());
    let plugin = ManifestPlugin::new(manifest);
    let begin = Instant::now();
    let outcome = bring_up(&plugin, &required, &host).await;
    let took = begin.elapsed().as_secs_f64();
    let log = plugin.logs();
    plugin.stop().await;
    stop_all(&required).await;
    match outcome {
        Ok(place) => told(as_json, &name, true, &format!("{place} after {took:.1} s, and was stopped"), ""),
        Err(PluginError { reason, remedy }) => {
            let reason = reason.lines().next().unwrap_or_default();
            let log =
                String::from_utf8_lossy(log.get(log.len().saturating_sub(SHOWN)..).unwrap_or_default()).into_owned();
            let log =
                if log.trim().is_empty() { "it printed nothing\n".to_owned() } else { format!("it printed:\n{log}") };
            let end = if log.ends_with('\n') { "" } else { "\n" };
            told(as_json, &name, false, &format!("{reason}; {remedy}"), &format!("{log}{end}"))
        }
    }
}

/// Brings it up, and tells where it is reached.
async fn bring_up(
    plugin: &ManifestPlugin,
    required: &[std::sync::Arc<dyn gloveport_plugin::Plugin>],
    host: &PluginHost,
) -> Result<String, PluginError> {
    // Each part has its own limit, which is as long as its author wants.
    initialize_all(required, host, std::time::Duration::from_hours(1)).await?;
    plugin.initialize(host).await?;
    plugin.start_now().await?;
    match plugin.service() {
        Some(service) => Ok(format!("its service was healthy at {}", service.lease().await?.endpoint())),
        None if plugin.manifest().service.is_some() => Ok("its service ran".to_owned()),
        None if plugin.manifest().set_up.is_some() => Ok("its set-up succeeded".to_owned()),
        None => Ok("it only sets variables".to_owned()),
    }
}

/// A sandbox with this workspace and with the environment of whoever calls.
fn host(workspace: PathBuf, owner: &Owner) -> PluginHost {
    let mut surroundings = Surroundings::inherited(workspace.clone());
    surroundings.spawner = owner.spawner.clone();
    for key in KEYS {
        surroundings.unset(key);
    }
    PluginHost { surroundings, workspace }
}

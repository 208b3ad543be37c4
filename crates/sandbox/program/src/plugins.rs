//! Which plugins a sandbox gets.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use gloveport_contract::plugins as contract;
use gloveport_executor::plugins::{
    AgentSkills, DownloadPlace, FirstKernel, FirstStart, NoWeb, Notebook, Plugin, PluginOptions, Web,
};
use gloveport_plugin::{Registry, registry};
use gloveport_vscode::VsCode;

/// Plugins of `gloveport serve` that are there without being asked for.
const OFFERED: [&str; 2] = ["agent_skills", "jupyter"];

/// Exactly the plugins that were asked for, with those that they require, and the browser, which is nothing until it is
/// used; the kernel starts with the sandbox. The environment of the sandbox may say otherwise about both; it need not be that of
/// this process.
pub fn asked(names: &[String], environment: &[(OsString, OsString)]) -> anyhow::Result<PluginOptions> {
    let variable = |name: &str| {
        let found = environment.iter().rev().find(|(other, _)| other == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    let web = web(has(names, BROWSER), DownloadPlace::Workspace, variable)?;
    let python = variable(INTERPRETER).filter(|path| !path.is_empty()).map(PathBuf::from);
    let kernel = (python.or_else(interpreter), first_kernel(variable)?);
    select(names, has(names, "agent_skills"), kernel, web)
}

/// A variable of this process.
fn own(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The same for a server of OpenHands, whose flags say what they want of the browser.
pub fn of_openhands(names: &[String], browser: WantedBrowser) -> anyhow::Result<PluginOptions> {
    let web = match browser {
        WantedBrowser::None => Some(Browsing::Off),
        WantedBrowser::AtOnce => Some(Browsing::On(Web::new(FirstStart::AtOnce, DownloadPlace::OfOpenHands))),
        WantedBrowser::WhenNeeded => web(has(names, BROWSER), DownloadPlace::OfOpenHands, own)?,
    };
    select(names, has(names, "agent_skills"), (interpreter(), first_kernel(own)?), web)
}

/// What a caller wants of the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedBrowser {
    /// None; actions say so.
    None,
    /// One that starts with its first use.
    WhenNeeded,
    /// One that starts with the sandbox.
    AtOnce,
}

/// The plugin that browses, and its name.
const BROWSER: &str = "browser";

/// Whether there is a browser.
enum Browsing {
    On(Arc<Web>),
    Off,
}

/// The browser, as the environment wants it; one that is asked for by name starts with the sandbox.
fn web(
    asked: bool,
    place: DownloadPlace,
    variable: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<Browsing>> {
    let usual = if asked { FirstStart::AtOnce } else { FirstStart::WhenNeeded };
    let first = match variable(contract::BROWSER).as_deref() {
        Some("when-needed") => FirstStart::WhenNeeded,
        Some("at-once") => FirstStart::AtOnce,
        Some(contract::NO_BROWSER) => return Ok(Some(Browsing::Off)),
        Some("") | None => usual,
        Some(other) => anyhow::bail!("GLOVEPORT_BROWSER must be `when-needed`, `at-once` or `off`, and is `{other}`"),
    };
    Ok(Some(Browsing::On(Web::new(first, place))))
}

/// When the environment wants the first kernel.
fn first_kernel(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<FirstKernel> {
    match variable("GLOVEPORT_FIRST_KERNEL").as_deref() {
        Some("when-needed") => Ok(FirstKernel::WhenNeeded),
        Some("at-once" | "") | None => Ok(FirstKernel::AtOnce),
        Some(other) => anyhow::bail!("GLOVEPORT_FIRST_KERNEL must be `at-once` or `when-needed`, and is `{other}`"),
    }
}

/// The plugins that were asked for, and beside them those of ours, which start with their first use.
pub fn offered(names: &[String], none: bool) -> anyhow::Result<PluginOptions> {
    if none {
        return Ok(PluginOptions::default());
    }
    let first = if has(names, "jupyter") { FirstKernel::AtOnce } else { FirstKernel::WhenNeeded };
    let mut all: Vec<String> = names.to_vec();
    all.extend(OFFERED.map(str::to_owned));
    let web = web(has(names, BROWSER), DownloadPlace::Workspace, own)?;
    select(&all, true, (interpreter(), first), web)
}

/// A notebook alone, for a process that runs cells.
pub fn for_cells(python: Option<PathBuf>) -> anyhow::Result<PluginOptions> {
    let skills = AgentSkills::new();
    let notebook = Notebook::new(Some(Arc::clone(&skills)), python, FirstKernel::WhenNeeded);
    let all: Vec<Arc<dyn Plugin>> = vec![skills, Arc::clone(&notebook) as _];
    Ok(PluginOptions { all, notebook: Some(notebook), web: None, limit: limit()? })
}

fn select(
    names: &[String],
    with_skills: bool,
    (python, first): (Option<PathBuf>, FirstKernel),
    browsing: Option<Browsing>,
) -> anyhow::Result<PluginOptions> {
    let mut names = names.to_vec();
    let web = match browsing {
        None => None,
        Some(browsing) => {
            if !has(&names, BROWSER) {
                names.push(BROWSER.to_owned());
            }
            Some(browsing)
        }
    };
    if names.is_empty() {
        return Ok(PluginOptions::default());
    }
    let skills = with_skills.then(AgentSkills::new);
    let notebook = Notebook::new(skills.clone(), python, first);
    let mut built_in: Vec<Arc<dyn Plugin>> = vec![Arc::clone(&notebook) as _, Arc::new(VsCode::default())];
    built_in.push(skills.unwrap_or_else(AgentSkills::new));
    let web = match web {
        None => None,
        Some(Browsing::On(web)) => {
            built_in.push(Arc::clone(&web) as _);
            Some(web)
        }
        Some(Browsing::Off) => {
            built_in.push(NoWeb::new());
            None
        }
    };
    let all = registry_for(built_in, &names).select(&names)?;
    let notebook = all.iter().any(|plugin| plugin.name() == notebook.name()).then_some(notebook);
    Ok(PluginOptions { all, notebook, web, limit: limit()? })
}

/// The variable that names the interpreter of cells.
const INTERPRETER: &str = "GLOVEPORT_PYTHON";

/// The interpreter of cells that the environment names.
pub fn interpreter() -> Option<PathBuf> {
    std::env::var_os(INTERPRETER).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The registry for these names. Folders are read only if one of them is not built in.
fn registry_for(built_in: Vec<Arc<dyn Plugin>>, names: &[String]) -> Registry {
    if names.iter().all(|name| built_in.iter().any(|plugin| plugin.name() == name)) {
        return Registry::new(built_in);
    }
    let registry = registry(built_in);
    for warning in registry.warnings() {
        tracing::warn!("{warning}");
    }
    registry
}

/// The plugins that there are: these, and those of the folders of this machine and its user.
pub fn registry(built_in: Vec<Arc<dyn Plugin>>) -> Registry {
    let mut registry = Registry::new(built_in);
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    for folder in registry::folders(std::env::var_os("GLOVEPORT_PLUGINS").as_deref(), home.as_deref()) {
        registry.add_folder(&folder);
    }
    registry
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|asked| asked == name)
}

/// Time for all plugins together (`action-execution-api` 1.3).
fn limit() -> anyhow::Result<Duration> {
    match std::env::var("INIT_PLUGIN_TIMEOUT") {
        Ok(text) => {
            let seconds = text.trim().parse();
            let seconds = seconds
                .with_context(|| format!("INIT_PLUGIN_TIMEOUT must be a whole number of seconds, and is `{text}`"))?;
            Ok(Duration::from_secs(seconds))
        }
        Err(_) => Ok(PluginOptions::default().limit),
    }
}

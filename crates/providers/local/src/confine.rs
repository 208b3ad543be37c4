//! What a sandbox may do that is kept to a part of this machine ([`gloveport_sys::confined`]).
//!
//! ```text
//! sandboxes/ID/          the server alone: its record, its lock, its log
//!   own/
//!     home/              HOME of the tools
//!     tmp/               TMPDIR
//!     work/              where they work, if no directory is given
//! ```
//!
//! The directory has another name while the server starts. The kernel knows it by what it is, so the rules hold all the same.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use gloveport_provider::{Level, NetworkPolicy, ProviderError, SandboxSpec, Workspace};
use gloveport_sys::confined;

use crate::{
    fault,
    state::{PLACE, State},
};

/// What is for the tools alone.
const HOME: &str = "home";
const TEMPORARY: &str = "tmp";
const WORKSPACE: &str = "work";
/// Where tools are that people have installed for themselves, in their home directory. Nothing secret is in them.
const INSTALLED: [&str; 21] = [
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".ghcup",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/uv/python",
    ".nvm",
    ".nix-profile",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "anaconda3",
    "go/bin",
    "go/pkg",
    "miniconda3",
];

/// What the server of a sandbox is started with.
#[derive(Debug)]
pub(crate) struct Confined {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) network: bool,
}

/// How far the sandbox is kept apart.
pub(crate) fn level(spec: &SandboxSpec) -> Level {
    spec.confinement.as_ref().map_or(Level::None, |confinement| confinement.level)
}

/// What the server is told; `None` where nothing keeps it. What cannot be had is refused.
pub(crate) fn wanted(
    spec: &SandboxSpec,
    state: &State,
    environment: &BTreeMap<String, String>,
) -> Result<Option<Confined>, ProviderError> {
    let wrong = |field: &str, reason: String| ProviderError::Spec { field: field.to_owned(), reason };
    let Some(confinement) = &spec.confinement else { return Ok(None) };
    match confinement.level {
        Level::None if confinement.read.is_empty() && confinement.write.is_empty() => return Ok(None),
        Level::None => {
            let reason = "places are given to sandboxes that are kept from others; choose a level other than `none`";
            return Err(wrong("isolation", reason.to_owned()));
        }
        Level::Files => {}
    }
    confined::support().map_err(|missing| {
        let reason =
            format!("the level `{}` cannot be had here: {}; {}", Level::Files.name(), missing.reason, missing.remedy);
        wrong("isolation", reason)
    })?;
    if let NetworkPolicy::Only(_) = spec.network {
        let reason =
            format!("at the level `{}` it is `full` or `none`; --runtime docker knows hosts", Level::Files.name());
        return Err(wrong("network", reason));
    }
    let home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let check = |field: &str, place: &Path, is_written: bool| {
        let real = fs::canonicalize(place)
            .map_err(|error| wrong(field, format!("{} cannot be used: {error}", place.display())))?;
        let holds = |other: &Path| fs::canonicalize(other).unwrap_or_else(|_| other.to_owned()).starts_with(&real);
        let is_home = home.as_deref().is_some_and(holds);
        if is_written && is_home {
            let reason =
                "your home directory is in it, which is what is to be protected; name a directory with the work alone";
            return Err(wrong(field, format!("{}: {reason}", place.display())));
        }
        if is_home || holds(state.root()) {
            let reason = "the keys of other sandboxes are in it; name what is needed of it";
            return Err(wrong(field, format!("{}: {reason}", place.display())));
        }
        Ok(real)
    };
    let mut write = Vec::new();
    if let Workspace::Directory(directory) = &spec.workspace {
        fs::create_dir_all(directory).map_err(fault::file("make the workspace", directory))?;
        write.push(check("workspace", directory, true)?);
    }
    for place in &confinement.write {
        write.push(check("allow-write", place, true)?);
    }
    let mut read =
        confinement.read.iter().map(|place| check("allow-read", place, false)).collect::<Result<Vec<_>, _>>()?;
    read.extend(programs(home.as_deref(), state.root(), environment));
    Ok(Some(Confined { read, write, network: spec.network == NetworkPolicy::Full }))
}

/// Where programs are, beside those of the system: what `PATH` names, and what people install for themselves. A place that
/// holds the home directory or the state of sandboxes is none.
fn programs(home: Option<&Path>, state: &Path, environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let path = environment.get("PATH").map_or("", String::as_str);
    let named = env::split_paths(path).filter(|place| place.is_absolute());
    let installed = home.into_iter().flat_map(|home| INSTALLED.iter().map(|name| home.join(name)));
    // A virtual environment, whose programs use what is beside them.
    let active = environment.get("VIRTUAL_ENV").map(PathBuf::from).filter(|place| place.join("pyvenv.cfg").is_file());
    let is_of_system = |place: &Path| confined::system_places().any(|system| place.starts_with(system));
    let truly = |place: &Path| fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let kept: Vec<PathBuf> = home.into_iter().chain([state]).map(truly).collect();
    let mut found = Vec::new();
    for place in named.chain(installed).chain(active) {
        let Ok(real) = fs::canonicalize(place) else { continue };
        let is_closed = kept.iter().any(|closed| closed.starts_with(&real));
        if real.is_dir() && !is_closed && !is_of_system(&real) && !found.contains(&real) {
            found.push(real);
        }
    }
    found
}

/// Makes what the sandbox has for itself in the directory of its server.
pub(crate) fn make_place(directory: &Path) -> Result<PathBuf, ProviderError> {
    let place = directory.join(PLACE);
    for part in [place.clone(), place.join(HOME), place.join(TEMPORARY), place.join(WORKSPACE)] {
        let made = fs::DirBuilder::new().mode(0o700).create(&part);
        made.map_err(fault::file("make the directory", &part))?;
    }
    // By its own name, as all places.
    let place = fs::canonicalize(&place).map_err(fault::file("look at", &place))?;
    Ok(place)
}

/// Where it works if nothing else is asked for, once its directory has the last of its names.
pub(crate) fn workspace(directory: &Path) -> PathBuf {
    directory.join(PLACE).join(WORKSPACE)
}

/// Where its temporary files are, in the same directory.
pub(crate) fn temporary(directory: &Path) -> PathBuf {
    directory.join(PLACE).join(TEMPORARY)
}

/// Programs that look in the home directory for what is installed, and the variables that tell them where it is.
const TOLD: [(&str, &str); 2] = [("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")];

/// Variables that lead tools to what is theirs, and to what is installed.
pub(crate) fn environment(directory: &Path, environment: &mut BTreeMap<String, String>) {
    if let Some(home) = environment.get("HOME").map(PathBuf::from) {
        for (name, place) in TOLD.map(|(name, place)| (name, home.join(place))) {
            if place.is_dir() {
                environment.entry(name.to_owned()).or_insert_with(|| place.display().to_string());
            }
        }
    }
    // The directories of the user that these name are closed.
    environment.retain(|name, _| !name.starts_with("XDG_"));
    for (name, place) in [("HOME", directory.join(PLACE).join(HOME)), ("TMPDIR", temporary(directory))] {
        environment.insert(name.to_owned(), place.display().to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn programs_are_read_and_what_holds_the_home_directory_or_keys_is_not_whatever_leads_there() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let at = |name: &str| top.join(name);
        for directory in ["users/me/.rustup", "users/me/go/bin", "users/me/go/src", "tools", "state/local"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        symlink(at("users"), at("link")).unwrap();
        let named = ["tools", "users", "users/me", "link", "link/me", "state", "", "none"].map(at);
        let path = env::join_paths(named).unwrap().into_string().unwrap();
        let environment = [("PATH".to_owned(), format!("{path}:relative:/usr/bin"))].into();
        let expected = [at("tools"), at("users/me/.rustup"), at("users/me/go/bin")];
        for home in ["users/me", "link/me"] {
            let mut found = programs(Some(&at(home)), &at("state/local"), &environment);
            found.sort();
            assert_eq!(found, expected, "{home}");
        }
    }
}

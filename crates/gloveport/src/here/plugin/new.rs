//! `gloveport plugin new`.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail, ensure};
use gloveport_contract::plugins::BUILT_IN;
use gloveport_plugin::{Manifest, manifest};
use serde_json::json;

use crate::{
    output::{print, print_json},
    plugin::NewArgs,
};

/// What is written, with `@NAME@` for the name.
const MANIFEST: &str = include_str!("template/plugin.toml");
const SERVICE: &str = include_str!("template/serve.py");

pub(super) fn new(arguments: &NewArgs) -> anyhow::Result<ExitCode> {
    let name = &arguments.name;
    ensure!(
        Manifest::is_name(name),
        "`{name}` is not a valid name for a plugin: it must be a lower-case letter, then at most 31 lower-case letters, digits, \
         `_` and `-`"
    );
    ensure!(BUILT_IN.iter().all(|known| known.name != name), "`{name}` is built in; give the plugin another name");
    let directory = arguments.directory.clone().unwrap_or_else(|| PathBuf::from(name));
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let files =
        [(manifest::FILE_NAME, MANIFEST), ("serve.py", SERVICE)].map(|(file, text)| (directory.join(file), text));
    for (path, _) in &files {
        // Looked at before anything is written, so that nothing half made is left.
        if path.symlink_metadata().is_ok() {
            bail!("{} exists already; name another directory", path.display());
        }
    }
    for (path, text) in &files {
        write(path, &text.replace("@NAME@", name)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if arguments.json {
        let written: Vec<_> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        print_json(&json!({"name": name, "files": written}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let at = directory.display();
    print(&format!(
        "{at}/plugin.toml and {at}/serve.py are written.\n\
         Check it with `gloveport plugin check --start {at}/plugin.toml`.\n\
         To use it, move the directory into a folder that `gloveport plugin --help` names.\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

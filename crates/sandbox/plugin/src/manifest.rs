//! Manifests: what a plugin is, written in a TOML file.

mod duration;
mod error;
mod fields;
mod read;
mod suggest;
mod value;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) use self::suggest::did_you_mean;
pub use self::{
    error::{ManifestError, Problem},
    fields::names as field_names,
};
use crate::service::ServiceSpec;

/// Name of the file in a folder of its own.
pub const FILE_NAME: &str = "plugin.toml";

/// A manifest that was read: every value of it is possible.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The file.
    pub path: PathBuf,
    /// The folder of the file, `{plugin}` in commands and variables.
    pub folder: PathBuf,
    /// Name of the plugin: a lower-case letter, then at most 31 lower-case letters, digits, `_` and `-`.
    pub name: String,
    /// What it is, in a sentence.
    pub description: Option<String>,
    /// Plugins that are initialised before it.
    pub requires: Vec<String>,
    /// The command that is run once before anything else, and its time.
    pub set_up: Option<(Vec<OsString>, Duration)>,
    /// The service, with the set-up in it. `{plugin}` is not replaced yet.
    pub service: Option<ServiceSpec>,
    /// The actions that the service executes.
    pub actions: Option<Actions>,
    /// Variables for the shells of the sandbox. `{plugin}`, `{workspace}` and `{base}` are not replaced yet.
    pub environment: BTreeMap<String, String>,
}

/// Which actions a service executes, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actions {
    /// Their kinds on the wire.
    pub handles: Vec<String>,
    /// The path that they are posted to.
    pub path: String,
}

impl Manifest {
    /// Reads a manifest; every error names file, line and column.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        read::file(path)
    }

    /// Reads a manifest that would be in this file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ManifestError> {
        read::text(path, text)
    }

    /// Whether a text can be the name of a plugin.
    pub fn is_name(text: &str) -> bool {
        let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        text.len() <= 32 && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(rest)
    }
}

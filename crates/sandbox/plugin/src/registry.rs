//! The plugins that there are, and those that are asked for, in the order in which they are initialised.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gloveport_contract::plugins::BUILT_IN;

use crate::{
    manifest::{self, Manifest, ManifestError, did_you_mean},
    manifest_plugin::ManifestPlugin,
    plugin::Plugin,
};

/// Most entries of a folder that are looked at.
const ENTRIES: usize = 1000;

/// The plugins that there are.
#[derive(Debug)]
pub struct Registry {
    entries: Vec<Entry>,
    warnings: Vec<String>,
}

/// A plugin that there is.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
}

/// Where a plugin comes from.
#[derive(Debug)]
pub enum Source {
    /// It is part of the program; here, if it can be started by whoever made the registry.
    BuiltIn(Option<Arc<dyn Plugin>>),
    /// It has a manifest.
    Manifest(Box<Manifest>),
    /// Its manifest is broken.
    Broken(ManifestError),
}

/// Why plugins cannot be selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// There is no such plugin.
    #[error("Plugin {name} not found{}; there is {}{}", required(.required_by.as_deref()),
        listed(.available), .meant.as_ref().map(|meant| format!("; {meant}")).unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// The plugin that requires it, if nobody asked for it by name.
        required_by: Option<String>,
        /// What there is.
        available: Vec<String>,
        /// What was probably meant.
        meant: Option<String>,
    },
    /// Its manifest is broken.
    #[error("the manifest of the plugin {name}{} is broken:\n{error}", required(.required_by.as_deref()))]
    Broken {
        /// The name.
        name: String,
        /// The plugin that requires it, if nobody asked for it by name.
        required_by: Option<String>,
        /// What is wrong with it.
        error: ManifestError,
    },
    /// Plugins require each other.
    #[error("the plugins {} require each other in a circle; take one out of `requires`", .0.join(" -> "))]
    Circle(Vec<String>),
}

fn required(by: Option<&str>) -> String {
    by.map(|by| format!(" (required by {by})")).unwrap_or_default()
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The folders in which plugins are looked for: those of `GLOVEPORT_PLUGINS`, the user's own, and those of the machine.
pub fn folders(listed: Option<&OsStr>, home: Option<&Path>) -> Vec<PathBuf> {
    let listed = listed.map(|listed| std::env::split_paths(listed).collect::<Vec<_>>()).unwrap_or_default();
    let own = home.map(|home| home.join(".config/gloveport/plugins"));
    let machine = ["/etc/gloveport/plugins", "/usr/local/share/gloveport/plugins"].map(PathBuf::from);
    listed.into_iter().filter(|folder| !folder.as_os_str().is_empty()).chain(own).chain(machine).collect()
}

impl Registry {
    /// A registry with these plugins that are part of the program. Those of [`BUILT_IN`] that are missing are known by
    /// name only.
    pub fn new(built_in: Vec<Arc<dyn Plugin>>) -> Self {
        let mut entries: Vec<Entry> = BUILT_IN
            .iter()
            .filter(|known| !built_in.iter().any(|plugin| plugin.name() == known.name))
            .map(|known| Entry { name: known.name.to_owned(), source: Source::BuiltIn(None) })
            .collect();
        let given =
            |plugin: Arc<dyn Plugin>| Entry { name: plugin.name().to_owned(), source: Source::BuiltIn(Some(plugin)) };
        entries.extend(built_in.into_iter().map(given));
        Self { entries, warnings: Vec::new() }
    }

    /// Adds the manifests of a folder: `*/plugin.toml` and `*.toml`, in the order of their names. A folder that is not
    /// there has none. A name that is known already stays with its first plugin.
    pub fn add_folder(&mut self, folder: &Path) {
        let listed = match fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                return self.warnings.push(format!("cannot read the plugins in {}: {error}", folder.display()));
            }
        };
        let mut paths: Vec<PathBuf> = listed.flatten().take(ENTRIES + 1).map(|entry| entry.path()).collect();
        if paths.len() > ENTRIES {
            let folder = folder.display();
            self.warnings.push(format!("{folder} has more than {ENTRIES} entries, and the others are not looked at"));
            paths.truncate(ENTRIES);
        }
        paths.sort();
        for path in paths {
            let inside = path.join(manifest::FILE_NAME);
            if inside.exists() {
                self.add_file(&inside);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                self.add_file(&path);
            }
        }
    }

    /// Adds the plugin of a manifest, unless its name is taken.
    pub fn add_file(&mut self, path: &Path) {
        let (name, source) = match Manifest::read(path) {
            Ok(manifest) => (manifest.name.clone(), Source::Manifest(Box::new(manifest))),
            Err(error) => {
                self.warnings.push(format!("a plugin cannot be used:\n{error}"));
                (error.name.clone().unwrap_or_else(|| name_of_file(path)), Source::Broken(error))
            }
        };
        let is_guess = |source: &Source| matches!(source, Source::Broken(error) if error.name.is_none());
        match self.entries.iter_mut().find(|entry| entry.name == name) {
            None => self.entries.push(Entry { name, source }),
            // Whoever says the name has it before a file that could only be called so.
            Some(first) if is_guess(&first.source) && !is_guess(&source) => first.source = source,
            Some(first) => {
                let holder = match &first.source {
                    Source::BuiltIn(_) => "is built in".to_owned(),
                    Source::Manifest(manifest) => format!("is that of {}", manifest.path.display()),
                    Source::Broken(error) => format!("is that of {}", error.path.display()),
                };
                let path = path.display();
                self.warnings.push(format!("{path} is not used: the name `{name}` {holder}; give it another one"));
            }
        }
    }

    /// All plugins that there are.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// What whoever looks after the plugins should know: broken manifests, names that are taken.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The plugins of these names with all that they require, each after what it requires.
    pub fn select(&self, names: &[String]) -> Result<Vec<Arc<dyn Plugin>>, RegistryError> {
        let mut selection = Selection { registry: self, done: Vec::new(), path: Vec::new() };
        for name in names {
            selection.add(name)?;
        }
        Ok(selection.done)
    }

    /// The one of this name, or what there is instead.
    pub fn find(&self, name: &str) -> Result<&Entry, RegistryError> {
        self.get(name).ok_or_else(|| self.unknown(name, None))
    }

    fn make(&self, name: &str, required_by: Option<&String>) -> Result<Arc<dyn Plugin>, RegistryError> {
        match self.get(name).map(|entry| &entry.source) {
            Some(Source::BuiltIn(Some(plugin))) => Ok(Arc::clone(plugin)),
            Some(Source::Manifest(manifest)) => Ok(Arc::new(ManifestPlugin::new(Manifest::clone(manifest)))),
            Some(Source::Broken(error)) => Err(RegistryError::Broken {
                name: name.to_owned(),
                required_by: required_by.cloned(),
                error: error.clone(),
            }),
            Some(Source::BuiltIn(None)) | None => Err(self.unknown(name, required_by)),
        }
    }

    fn unknown(&self, name: &str, required_by: Option<&String>) -> RegistryError {
        let available = self.available();
        let meant = did_you_mean(name, available.iter().map(String::as_str));
        RegistryError::Unknown { name: name.to_owned(), required_by: required_by.cloned(), available, meant }
    }

    /// What can be selected.
    fn available(&self) -> Vec<String> {
        let usable = |entry: &&Entry| !matches!(entry.source, Source::BuiltIn(None) | Source::Broken(_));
        let mut names: Vec<String> = self.entries.iter().filter(usable).map(|entry| entry.name.clone()).collect();
        names.sort();
        names
    }
}

/// What a plugin whose manifest says no name would be called.
fn name_of_file(path: &Path) -> String {
    let is_inside = path.file_name() == Some(OsStr::new(manifest::FILE_NAME));
    let named = if is_inside { path.parent().and_then(Path::file_name) } else { path.file_stem() };
    named.unwrap_or_default().to_string_lossy().into_owned()
}

/// Plugins in the order in which they are initialised.
struct Selection<'a> {
    registry: &'a Registry,
    done: Vec<Arc<dyn Plugin>>,
    /// The one that is being added, and those that require it.
    path: Vec<String>,
}

impl Selection<'_> {
    fn add(&mut self, name: &str) -> Result<(), RegistryError> {
        if self.done.iter().any(|plugin| plugin.name() == name) {
            return Ok(());
        }
        if let Some(at) = self.path.iter().position(|above| above == name) {
            let circle = self.path.iter().skip(at).cloned().chain([name.to_owned()]).collect();
            return Err(RegistryError::Circle(circle));
        }
        let plugin = self.registry.make(name, self.path.last())?;
        self.path.push(name.to_owned());
        for required in plugin.requires() {
            self.add(&required)?;
        }
        self.path.pop();
        self.done.push(plugin);
        Ok(())
    }
}

//! Loads a configuration from a directory of its own.

#![expect(clippy::unwrap_used, reason = "a test stops at the first broken assumption")]

use std::{fs, path::Path};

use gloveport_config::{Config, ConfigError, LoadOptions, Loaded, Note, Overrides};
use tempfile::TempDir;

/// A directory with a file, and an environment.
pub(crate) struct Case {
    pub(crate) directory: TempDir,
    pub(crate) options: LoadOptions,
}

impl Case {
    /// Without a file.
    pub(crate) fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = LoadOptions { current_directory: directory.path().to_owned(), ..LoadOptions::default() };
        Self { directory, options }
    }

    /// With a `config.toml`.
    pub(crate) fn file(text: &str) -> Self {
        Self::empty().with_file("config.toml", text)
    }

    /// With variables alone.
    pub(crate) fn variables(variables: &[(&str, &str)]) -> Self {
        Self::empty().with_variables(variables)
    }

    pub(crate) fn with_file(self, name: &str, text: &str) -> Self {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn with_variables(mut self, variables: &[(&str, &str)]) -> Self {
        self.options.environment = variables.iter().copied().collect();
        self
    }

    pub(crate) fn with_overrides(mut self, overrides: Overrides) -> Self {
        self.options.overrides = overrides;
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn load(&self) -> Loaded {
        self.try_load().unwrap()
    }

    pub(crate) fn try_load(&self) -> Result<Loaded, ConfigError> {
        Config::load(&self.options)
    }

    pub(crate) fn config(&self) -> Config {
        self.load().config
    }

    /// What is wrong with it, as one text.
    pub(crate) fn failure(&self) -> String {
        self.try_load().unwrap_err().to_string()
    }

    /// All notes, as texts with their severity.
    pub(crate) fn notes(&self) -> Vec<String> {
        texts(&gloveport_config::check(&self.options).unwrap())
    }
}

/// Notes as texts with their severity.
pub(crate) fn texts(notes: &[Note]) -> Vec<String> {
    notes.iter().map(|note| format!("{}: {note}", note.severity.name())).collect()
}

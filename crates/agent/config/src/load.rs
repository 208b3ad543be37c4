//! Puts the configuration together: defaults, file, environment, what follows, flags (configuration 1).

mod dotenv;
mod environment;
mod file;
mod finalize;
mod foreign;
mod options;
mod overrides;
mod section;
mod text;
mod variables;

pub use self::{
    options::{LoadOptions, Overrides},
    variables::Environment,
};
use crate::{
    error::ConfigError,
    model::Config,
    note::{Note, Severity},
    origin::{Origin, Origins},
};

/// A configuration, where its values come from, and what to know about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Where its values come from.
    pub origins: Origins,
    /// What was noticed, in the order of the sources.
    pub notes: Vec<Note>,
    /// The environment with the `.env` file.
    pub environment: Environment,
    /// The values that hold where nobody set one.
    pub(crate) defaults: Config,
}

impl Config {
    /// Loads the configuration. Reads the file and the `.env` file, and changes nothing anywhere.
    pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
        let loaded = examine(options)?;
        if loaded.notes.iter().any(|note| note.severity == Severity::Error) {
            return Err(ConfigError::Invalid { notes: loaded.notes });
        }
        Ok(loaded)
    }
}

/// Everything that there is to know about a configuration, also if it cannot be used.
pub fn check(options: &LoadOptions) -> Result<Vec<Note>, ConfigError> {
    examine(options).map(|loaded| loaded.notes)
}

/// The configuration as far as it can be read, with all notes, for whoever shows it. [`Config::load`] is for its use.
pub fn examine(options: &LoadOptions) -> Result<Loaded, ConfigError> {
    let mut notes = Vec::new();
    let variables = environment::variables(options, &mut notes);
    let defaults = options.defaults(&variables);
    let mut loader = Loader { config: defaults.clone(), defaults, origins: Origins::default(), notes, options };
    loader.file()?;
    loader.environment(&variables);
    loader.finalize(cfg!(target_os = "macos"));
    loader.overrides()?;
    let Loader { config, defaults, origins, notes, .. } = loader;
    Ok(Loaded { config, origins, notes, environment: variables.into_environment(), defaults })
}

/// A configuration that is being put together.
struct Loader<'a> {
    options: &'a LoadOptions,
    defaults: Config,
    config: Config,
    origins: Origins,
    notes: Vec<Note>,
}

impl Loader<'_> {
    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    fn derived(&mut self, section: &str, key: &str, from: &str) {
        self.origins.set(section, key, Origin::Derived { from: from.to_owned() });
    }
}

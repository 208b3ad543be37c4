//! Providers by name (runtime-interface 1.2).

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use gloveport_config::Config;

use crate::{Provider, ProviderError};

/// What a provider is made from.
#[derive(Clone, Debug)]
pub struct ProviderContext {
    /// The configuration.
    pub config: Config,
    /// Our own binary, which providers start or put into sandboxes.
    pub program: PathBuf,
    /// The variables of the backend.
    pub environment: BTreeMap<String, String>,
    /// What follows a `:` in the name, for providers that take an argument (`exec:/path/to/program`).
    pub argument: Option<String>,
}

/// Makes a provider. It must not wait for the engine: a provider connects when it is asked something.
pub type Factory = Arc<dyn Fn(&ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> + Send + Sync>;

/// Providers by name. A name with a colon is the name of a provider and an argument for it.
#[derive(Clone, Default)]
pub struct Registry {
    factories: BTreeMap<String, Factory>,
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider; one of the same name is replaced.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(&ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> + Send + Sync + 'static,
    ) {
        self.factories.insert(name.into(), Arc::new(factory));
    }

    /// All names, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.factories.keys().map(String::as_str).collect()
    }

    /// Makes the provider of this name. The lookup is case-sensitive.
    pub fn make(&self, name: &str, context: &ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> {
        let (plain, argument) = match name.split_once(':') {
            Some((plain, argument)) => (plain, Some(argument.to_owned())),
            None => (name, None),
        };
        let Some(factory) = self.factories.get(plain) else {
            let known = self.factories.keys().cloned().collect();
            return Err(ProviderError::UnknownProvider { name: name.to_owned(), known });
        };
        factory(&ProviderContext { argument, ..context.clone() })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}

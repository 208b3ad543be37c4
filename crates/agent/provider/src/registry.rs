//! Providers by name (runtime-interface 1.2).

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use gloveport_config::Config;

use crate::{Provider, ProviderError};

/// What a provider is made from.
#[derive(Clone, Debug)]
pub struct ProviderContext {
    /// The configuration.
    pub config: Config,
    /// Our own binary.
    pub program: PathBuf,
    /// The binary with which providers serve sandboxes: our own, or the small one ([`program`](crate::program)).
    pub inside: PathBuf,
    /// The variables of the backend.
    pub environment: BTreeMap<String, String>,
    /// What follows a `:` in the name, for providers that take an argument (`exec:/path/to/program`).
    pub argument: Option<String>,
}

/// Makes a provider. It must not wait for the engine: a provider connects when it is asked something.
pub type Factory = Arc<dyn Fn(&ProviderContext) -> Result<Arc<dyn Provider>, ProviderError> + Send + Sync>;

/// Makes a provider of a name that nobody registered; `None` if it knows none either.
pub type Fallback =
    Arc<dyn Fn(&str, &ProviderContext) -> Result<Option<Arc<dyn Provider>>, ProviderError> + Send + Sync>;

/// Providers by name. A name with a colon is the name of a provider and an argument for it.
#[derive(Clone, Default)]
pub struct Registry {
    factories: BTreeMap<String, Factory>,
    fallback: Option<Fallback>,
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

    /// Asks this for names that nobody registered (`gloveport-provider-NAME` in `PATH`); one that was there before is
    /// replaced.
    pub fn register_fallback(
        &mut self,
        fallback: impl Fn(&str, &ProviderContext) -> Result<Option<Arc<dyn Provider>>, ProviderError>
        + Send
        + Sync
        + 'static,
    ) {
        self.fallback = Some(Arc::new(fallback));
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
        let context = ProviderContext { argument, ..context.clone() };
        if let Some(factory) = self.factories.get(plain) {
            return factory(&context);
        }
        let other = self.fallback.as_ref().map(|fallback| fallback(plain, &context)).transpose()?.flatten();
        let unknown = || {
            let known = self.factories.keys().cloned().collect();
            ProviderError::UnknownProvider { name: name.to_owned(), known }
        };
        other.ok_or_else(unknown)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_registered_goes_to_the_fallback_and_else_is_an_error_with_all_names() {
        let refused = |what: &str| ProviderError::Closed(what.to_owned());
        let mut registry = Registry::new();
        registry.register("b", move |context| Err(refused(&format!("b{:?}", context.argument))));
        registry.register("a", move |_| Err(refused("a")));
        let context = ProviderContext {
            config: Config::default(),
            program: PathBuf::new(),
            inside: PathBuf::new(),
            environment: BTreeMap::new(),
            argument: None,
        };
        let made = |registry: &Registry, name: &str| registry.make(name, &context).unwrap_err().to_string();
        assert_eq!(made(&registry, "b:c:d"), "the runtime `bSome(\"c:d\")` is closed");
        assert_eq!(made(&registry, "A"), "Runtime A not supported, known are: a, b");
        registry.register_fallback(move |name, context| match name {
            "x" => Err(refused(&format!("x{:?}", context.argument))),
            _ => Ok(None),
        });
        assert_eq!(made(&registry, "x:y"), "the runtime `xSome(\"y\")` is closed");
        assert_eq!(made(&registry, "z"), "Runtime z not supported, known are: a, b");
    }
}

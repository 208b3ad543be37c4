//! What a provider is made from.

use std::path::PathBuf;

use gloveport_config::Config;
use gloveport_provider::ProviderContext;
use serde_json::{Map, Value};

/// A configuration whose table `[extended.NAME]` is this, with these variables. What is put into sandboxes is `/inside`.
pub fn context(name: &str, table: &Value, variables: &[(&str, &str)]) -> ProviderContext {
    let extended = Map::from_iter([(name.to_owned(), table.clone())]).into();
    ProviderContext {
        config: Config { extended, ..Config::default() },
        program: PathBuf::new(),
        inside: PathBuf::from("/inside"),
        environment: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        argument: None,
    }
}

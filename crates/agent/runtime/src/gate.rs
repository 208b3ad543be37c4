//! What decides about actions before they are executed, as the configuration says.

use std::{collections::BTreeMap, sync::Arc};

use gloveport_config::Config;
use gloveport_protocol::Secret;
use gloveport_security::{AnalyzerOptions, Gate, GateOptions, refuses_unattended};

use crate::RuntimeError;

/// The gate of a session with this configuration. The environment has the keys of analyzers; the workspace is where in
/// the sandbox the work is, if that is known better than by the configuration.
pub fn gate(
    config: &Config,
    environment: &BTreeMap<String, String>,
    workspace: Option<&str>,
) -> Result<Gate, RuntimeError> {
    let analyzer = match analyzer_name(config) {
        None => None,
        Some(name) => {
            let keys = environment.iter().filter(|(name, _)| name.starts_with("GRAYSWAN_"));
            let options = AnalyzerOptions {
                workspace: workspace.unwrap_or(&config.workspace_mount_path_in_sandbox).into(),
                environment: keys.map(|(name, value)| (name.clone(), Secret::new(value))).collect(),
                ..AnalyzerOptions::default()
            };
            gloveport_security::analyzer(name, &options)?
        }
    };
    Ok(Gate::new(GateOptions { confirmation_mode: config.security.confirmation_mode, cli_mode: false, analyzer }))
}

/// The same for [`Operations`](crate::Operations): nothing is made where the gate would let everything pass unrated.
pub fn gate_of_operations(
    config: &Config,
    environment: &BTreeMap<String, String>,
    workspace: Option<&str>,
) -> Result<Option<Arc<Gate>>, RuntimeError> {
    if !config.security.confirmation_mode && !analyzer_name(config).is_some_and(refuses_unattended) {
        return Ok(None);
    }
    gate(config, environment, workspace).map(|gate| Some(Arc::new(gate)))
}

fn analyzer_name(config: &Config) -> Option<&str> {
    config.security.security_analyzer.as_deref().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_no_gate_where_everything_would_pass_it() {
        for (analyzer, confirmation, expected) in [
            (None, false, false),
            (Some(""), false, false),
            (Some("llm"), false, false),
            // It has no key, and nobody asks for one.
            (Some("grayswan"), false, false),
            (Some("rules"), false, true),
            (None, true, true),
            (Some("llm"), true, true),
        ] {
            let mut config = Config::default();
            config.security.security_analyzer = analyzer.map(str::to_owned);
            config.security.confirmation_mode = confirmation;
            let gate = gate_of_operations(&config, &BTreeMap::new(), None).unwrap();
            assert_eq!(gate.is_some(), expected, "{analyzer:?} {confirmation}");
        }
    }
}

//! The values of a configuration, as people and logs see them.

use serde_json::Value;

use crate::{
    key::Section,
    load::Loaded,
    mask,
    model::{BASE_AGENT, BASE_LLM, Config},
    origin::Origin,
    setting::Setting,
};

/// One value. Secrets are masked.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownValue {
    /// `core`, `sandbox`, …, `llm`, `llm.NAME`, `agent`, `agent.NAME`, `extended`, `condenser`, `model_routing`.
    pub section: String,
    /// The key; empty for the sections with keys of your own, which are one value each.
    pub key: &'static str,
    /// What holds.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether it is the default, or, in a named group, what the base group has.
    pub is_default: bool,
}

impl Loaded {
    /// All values, section by section.
    pub fn values(&self) -> Vec<ShownValue> {
        let (config, defaults) = (&self.config, &self.defaults);
        let mut values = Vec::new();
        self.section(&mut values, config, defaults);
        self.section(&mut values, &config.sandbox, &defaults.sandbox);
        self.section(&mut values, &config.security, &defaults.security);
        self.section(&mut values, &config.mcp, &defaults.mcp);
        self.section(&mut values, &config.kubernetes, &defaults.kubernetes);
        self.groups(&mut values, &config.agents, BASE_AGENT, &Config::default().agent(BASE_AGENT));
        self.groups(&mut values, &config.llms, BASE_LLM, &Config::default().llm(BASE_LLM));
        self.section(&mut values, &config.cli, &defaults.cli);
        for (section, table) in
            [("extended", &config.extended), ("condenser", &config.condenser), ("model_routing", &config.model_routing)]
        {
            values.push(ShownValue {
                section: section.into(),
                key: "",
                value: Value::Object(mask::table(table)),
                origin: self.origins.of(section, "").clone(),
                is_default: table.is_empty(),
            });
        }
        values
    }

    fn section<S: Section>(&self, values: &mut Vec<ShownValue>, section: &S, defaults: &S) {
        for key in S::KEYS {
            let (Some(setting), Some(default)) = (section.setting(key.name), defaults.setting(key.name)) else {
                continue;
            };
            let origin = self.origins.of(S::NAME, key.name).clone();
            let value = setting.shown();
            // A default path that was made absolute is still the default.
            let is_default = origin == Origin::Default || value == default.shown();
            values.push(ShownValue { section: S::NAME.into(), key: key.name, value, origin, is_default });
        }
    }

    fn groups<S: Section>(
        &self,
        values: &mut Vec<ShownValue>,
        groups: &std::collections::BTreeMap<String, S>,
        base_name: &str,
        defaults: &S,
    ) {
        if let Some(base) = groups.get(base_name) {
            self.section(values, base, defaults);
        }
        for (name, group) in groups.iter().filter(|(name, _)| *name != base_name) {
            let section = format!("{base_name}.{name}");
            for key in S::KEYS {
                let Some(value) = group.setting(key.name).map(Setting::shown) else { continue };
                let origin = self.origins.of(&section, key.name).clone();
                let is_default = origin == *self.origins.of(base_name, key.name);
                values.push(ShownValue { section: section.clone(), key: key.name, value, origin, is_default });
            }
        }
    }
}

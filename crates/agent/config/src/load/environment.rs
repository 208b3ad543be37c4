//! Applies variables (configuration 2).

use std::{collections::BTreeMap, path::PathBuf};

use super::{Environment, LoadOptions, Loader, dotenv};
use crate::{
    key::Section,
    keys::{SECTIONS, SectionKeys},
    kind::Kind,
    mask::MASK,
    model::{BASE_AGENT, BASE_LLM},
    note::{Note, NoteKind, Place},
    origin::{Origin, Origins},
    suggest::nearest,
};

/// Longest piece of a value that is shown.
const SHOWN: usize = 200;

/// Variables with the prefix of a section that are no settings of it.
const OTHERS: [&str; 4] = ["SANDBOX_ENV_", "SANDBOX_VOLUME_OVERLAYS", "KUBERNETES_SERVICE_", "KUBERNETES_PORT"];

/// The environment and the `.env` file.
pub(super) struct Variables(BTreeMap<String, Variable>);

struct Variable {
    value: String,
    /// The `.env` file.
    file: Option<PathBuf>,
}

/// The environment, and what the `.env` file adds to it.
pub(super) fn variables(options: &LoadOptions, notes: &mut Vec<Note>) -> Variables {
    let own = options.environment.iter();
    let mut all: BTreeMap<String, Variable> =
        own.map(|(name, value)| (name.clone(), Variable { value: value.clone(), file: None })).collect();
    if let Some((file, added)) = dotenv::find(&options.current_directory, &options.environment, notes) {
        for (name, value) in added {
            all.entry(name).or_insert_with(|| Variable { value, file: Some(file.clone()) });
        }
    }
    Variables(all)
}

impl Variables {
    /// The value; nothing if it is unset or empty.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|variable| variable.value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn into_environment(self) -> Environment {
        self.0.into_iter().map(|(name, variable)| (name, variable.value)).collect()
    }

    fn place(&self, name: &str) -> Place {
        let file = self.0.get(name).and_then(|variable| variable.file.clone());
        Place::Variable { name: name.to_owned(), file }
    }
}

impl Loader<'_> {
    /// Applies the variables.
    pub(super) fn environment(&mut self, variables: &Variables) {
        let Self { config, origins, notes, .. } = self;
        for keys in &SECTIONS {
            let mut cast = Cast { keys, variables, origins, notes };
            match keys.name {
                "sandbox" => cast.apply(&mut config.sandbox),
                "security" => cast.apply(&mut config.security),
                "mcp" => cast.apply(&mut config.mcp),
                "kubernetes" => cast.apply(&mut config.kubernetes),
                "cli" => cast.apply(&mut config.cli),
                "agent" => cast.apply(config.agents.entry(BASE_AGENT.into()).or_default()),
                "llm" => cast.apply(config.llms.entry(BASE_LLM.into()).or_default()),
                _ => cast.apply(config),
            }
        }
        notes.extend(near_names(variables));
    }
}

/// The variables of one section.
struct Cast<'a> {
    keys: &'a SectionKeys,
    variables: &'a Variables,
    origins: &'a mut Origins,
    notes: &'a mut Vec<Note>,
}

impl Cast<'_> {
    fn apply<S: Section>(&mut self, section: &mut S) {
        for key in self.keys.keys {
            let Some(name) = self.keys.variable(key) else { continue };
            let Some(value) = self.variables.value(&name) else { continue };
            let Some(setting) = section.setting_mut(key.name) else { continue };
            let place = self.variables.place(&name);
            if let Err(mismatch) = setting.cast(value) {
                let message = format!(
                    "Error setting env var {name}={}: check that the value is of the right type",
                    shown(key.kind, value)
                );
                let detail = format!("it{} {}", mismatch.within, mismatch.message);
                let note = Note::warning(NoteKind::Variable, message).at(place).suggest(Some(detail));
                self.notes.push(note.about(self.keys.name, key.name));
                continue;
            }
            if key.kind.inner() == Kind::Bool && is_other_word_for_true(value) {
                let message = format!("{name} is taken for false");
                let note = Note::warning(NoteKind::Variable, message).at(place.clone());
                self.notes.push(note.suggest(Some("only `true` and `1` are true".to_owned())));
            }
            if let Some(instead) = key.deprecated {
                let message = format!("{name} is deprecated");
                let note = Note::hint(NoteKind::Deprecated, message).at(place.clone());
                self.notes.push(note.suggest(Some(instead.to_owned())));
            }
            self.origins.set(self.keys.name, key.name, Origin::Set(place));
        }
    }
}

/// A value that could not be cast. Only what must be a number is shown: lists and tables may hold secrets.
fn shown(kind: Kind, value: &str) -> String {
    if kind.is_open_scalar() { value.chars().take(SHOWN).collect() } else { MASK.to_owned() }
}

fn is_other_word_for_true(value: &str) -> bool {
    matches!(value.to_lowercase().trim(), "yes" | "y" | "on" | "t" | "true" | "1")
        && !matches!(value.to_lowercase().as_str(), "true" | "1")
}

/// Variables that are no settings, but nearly.
fn near_names(variables: &Variables) -> Vec<Note> {
    let sections = || SECTIONS.iter().filter(|section| !section.prefix.is_empty());
    let mut notes = Vec::new();
    for name in variables.0.keys() {
        let in_section = |section: &&SectionKeys| name.starts_with(section.prefix);
        let Some(section) = sections().find(in_section) else { continue };
        let known: Vec<String> = section.keys.iter().filter_map(|key| section.variable(key)).collect();
        if known.contains(name) || OTHERS.iter().any(|other| name.starts_with(other)) {
            continue;
        }
        // What all names of the section start with makes none of them near.
        let own = known.iter().filter_map(|known| known.strip_prefix(section.prefix));
        let Some(near) = name.strip_prefix(section.prefix).and_then(|name| nearest(name, own)) else { continue };
        let note = Note::hint(NoteKind::UnknownVariable, format!("{name} is no setting"));
        let suggestion = format!("did you mean `{}{near}`?", section.prefix);
        notes.push(note.at(variables.place(name)).suggest(Some(suggestion)));
    }
    notes
}

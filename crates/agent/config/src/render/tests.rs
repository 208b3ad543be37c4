use std::{collections::BTreeSet, fs, path::Path};

use super::*;
use crate::{Config, LoadOptions, NoteKind, keys::SECTIONS};

/// Loads a text as the file of a directory of its own.
fn load(text: &str) -> crate::Loaded {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("config.toml"), text).unwrap();
    Config::load(&LoadOptions { current_directory: directory.path().to_owned(), ..LoadOptions::default() }).unwrap()
}

#[test]
fn the_default_file_is_made_from_the_keys() {
    // `cargo run -p gloveport-config --example generate` writes it.
    assert_eq!(DEFAULT_TOML, render_default_toml());
}

#[test]
fn the_default_file_equals_the_defaults_and_names_every_key() {
    let mut loaded = load(DEFAULT_TOML);
    assert_eq!(loaded.notes, []);
    for llm in loaded.config.llms.values_mut() {
        llm.log_completions_folder = "logs/completions".into();
    }
    assert_eq!(loaded.config, Config::default());
    let lines: BTreeSet<&str> = DEFAULT_TOML
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name.trim_start_matches('#'))
        .collect();
    for section in SECTIONS.iter().filter(|section| section.in_file) {
        for key in section.keys {
            assert!(lines.contains(key.name), "{} of [{}]", key.name, section.name);
        }
    }
}

#[test]
fn every_example_of_the_default_file_can_be_used() {
    let uncommented: String = DEFAULT_TOML
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let loaded = load(&uncommented);
    let unexpected: Vec<_> =
        loaded.notes.iter().filter(|note| !matches!(note.kind, NoteKind::Deprecated | NoteKind::NotUsed)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
    let unset: Vec<_> = loaded
        .values()
        .into_iter()
        .filter(|value| value.value.is_null() && !(value.section == "llm" && value.key == "completion_kwargs"))
        .map(|value| (value.section, value.key))
        .collect();
    assert_eq!(unset, []);
}

/// Compares what stands between two marks of the documentation with what is made of the code, or writes it there.
fn compare(mark: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/configuration.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(&format!("<!-- {mark}: begin -->\n")).unwrap();
    let (written, after) = rest.split_once(&format!("<!-- {mark}: end -->\n")).unwrap();
    if std::env::var_os("GLOVEPORT_WRITE_CONFIGURATION").is_some() {
        let made = made.trim_end();
        let text = format!("{before}<!-- {mark}: begin -->\n{made}\n<!-- {mark}: end -->\n{after}");
        return fs::write(path, text).unwrap();
    }
    assert_eq!(written.trim(), made.trim(), "GLOVEPORT_WRITE_CONFIGURATION=1 writes it anew");
}

#[test]
fn the_tables_of_the_documentation_are_made_from_the_keys() {
    compare("effects", &effect_table());
    compare("keys", &key_tables());
}

#[test]
fn the_schema_knows_every_section_and_key() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for section in SECTIONS.iter().filter(|section| section.in_file) {
        for key in section.keys {
            let own = &schema["properties"][section.name]["properties"][key.name];
            let group = &schema["$defs"][format!("{}_group", section.name)]["properties"][key.name];
            assert!(own.is_object() || group.is_object(), "{} of [{}]", key.name, section.name);
        }
    }
    let timeout = &schema["properties"]["sandbox"]["properties"]["timeout"];
    assert_eq!(
        *timeout,
        serde_json::json!({
            "type": "integer",
            "description": "Time limit of an action in seconds, unless it has its own.",
            "default": 120,
        })
    );
    assert_eq!(schema["properties"]["core"]["properties"]["workspace_base"]["deprecated"], true);
    assert_eq!(schema["properties"]["sandbox"]["properties"]["api_key"]["writeOnly"], true);
    assert_eq!(schema["properties"]["llm"]["additionalProperties"]["$ref"], "#/$defs/llm_group");
}

#[test]
fn no_two_keys_have_the_same_variable() {
    let names =
        |section: &'static crate::keys::SectionKeys| section.keys.iter().filter_map(|key| section.variable(key));
    let all: Vec<String> = SECTIONS.iter().flat_map(names).collect();
    let unique: BTreeSet<&String> = all.iter().collect();
    assert_eq!(unique.len(), all.len());
    for expected in [
        "RUNTIME",
        "WORKSPACE_BASE",
        "FILE_UPLOADS_ALLOWED_EXTENSIONS",
        "SANDBOX_TIMEOUT",
        "SECURITY_SECURITY_ANALYZER",
        "KUBERNETES_NAMESPACE",
        "MCP_SHTTP_SERVERS",
        "CLI_VI_MODE",
        "LLM_BASE_URL",
        "AGENT_ENABLE_JUPYTER",
    ] {
        assert!(all.iter().any(|name| name == expected), "{expected}");
    }
}

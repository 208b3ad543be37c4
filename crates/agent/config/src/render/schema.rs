//! The JSON schema of the file.

use serde_json::{Map, Value, json};

use super::{one_line, toml::default};
use crate::{
    key::Key,
    keys::{FREE_SECTIONS, SECTIONS, SectionKeys},
    kind::Kind,
};

/// The JSON schema of the configuration file, draft 2020-12, for editors that check and complete TOML.
pub fn schema() -> Value {
    let mut sections = Map::new();
    let mut groups = Map::new();
    for section in SECTIONS.iter().filter(|section| section.in_file) {
        sections.insert(section.name.into(), object(section, &mut groups));
    }
    for (name, about) in FREE_SECTIONS {
        sections.insert(name.into(), json!({"type": "object", "description": about}));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gloveport configuration",
        "description": "The configuration file of gloveport, and of OpenHands 0.62.",
        "type": "object",
        "properties": sections,
        "additionalProperties": false,
        "$defs": groups,
    })
}

fn object(section: &SectionKeys, groups: &mut Map<String, Value>) -> Value {
    let describe = |key: &&Key| (key.name.to_owned(), property(section, key));
    let all: Map<String, Value> = section.keys.iter().map(|key| describe(&key)).collect();
    let about = one_line(section.about);
    if !section.groups {
        return json!({
            "type": "object", "description": about, "properties": all, "additionalProperties": false,
        });
    }
    let definition = format!("{}_group", section.name);
    let own: Map<String, Value> =
        section.keys.iter().filter(|key| key.kind.inner() != Kind::Table).map(|key| describe(&key)).collect();
    groups.insert(
        definition.clone(),
        json!({
            "type": "object",
            "description": format!("A named group; it inherits from [{}].", section.name),
            "properties": all,
            "additionalProperties": false,
        }),
    );
    json!({
        "type": "object",
        "description": about,
        "properties": own,
        "additionalProperties": {"$ref": format!("#/$defs/{definition}")},
    })
}

fn property(section: &SectionKeys, key: &Key) -> Value {
    let mut property = kind(key.kind);
    property.insert("description".into(), one_line(key.doc).into());
    let default = default(section, key.name);
    if key.dynamic.is_none() && !default.is_null() {
        property.insert("default".into(), default);
    }
    if key.deprecated.is_some() {
        property.insert("deprecated".into(), true.into());
    }
    Value::Object(property)
}

fn kind(kind: Kind) -> Map<String, Value> {
    let value = match kind {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Integer => json!({"type": "integer"}),
        Kind::Float => json!({"type": "number"}),
        Kind::Text => json!({"type": "string"}),
        Kind::Secret => json!({"type": "string", "writeOnly": true}),
        Kind::List(element) => json!({"type": "array", "items": self::kind(*element)}),
        Kind::Map(value) => json!({"type": "object", "additionalProperties": self::kind(*value)}),
        Kind::Table => json!({"type": "object"}),
        Kind::SseServers => json!({"type": "array", "items": {"anyOf": [{"type": "string"}, url_server(false)]}}),
        Kind::ShttpServers => json!({"type": "array", "items": {"anyOf": [{"type": "string"}, url_server(true)]}}),
        Kind::StdioServers => json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^\\s*[a-zA-Z0-9_-]+\\s*$"},
                "command": {"type": "string", "pattern": "^\\s*[^ ]+\\s*$"},
                "args": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
                "env": {"anyOf": [
                    {"type": "object", "additionalProperties": {"type": "string", "writeOnly": true}},
                    {"type": "string", "writeOnly": true},
                ]},
            },
            "required": ["name", "command"],
            "additionalProperties": false,
        }}),
        Kind::Optional(inner) => return self::kind(*inner),
    };
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn url_server(with_timeout: bool) -> Value {
    let mut server = json!({
        "type": "object",
        "properties": {
            "url": {"type": "string"},
            "api_key": {"type": "string", "writeOnly": true},
        },
        "required": ["url"],
        "additionalProperties": false,
    });
    if with_timeout && let Some(Value::Object(properties)) = server.get_mut("properties") {
        properties.insert("timeout".into(), json!({"type": "integer", "minimum": 1, "maximum": 3600, "default": 60}));
    }
    server
}

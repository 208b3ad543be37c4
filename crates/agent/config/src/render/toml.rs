//! The file with the defaults.

use std::fmt::Write as _;

use serde_json::Value;

use super::one_line;
use crate::{
    key::{Key, Section},
    keys::{FREE_SECTIONS, SECTIONS, SectionKeys},
    kind::Kind,
    mcp::McpConfig,
    model::{AgentConfig, Config, KubernetesConfig, LlmConfig, SandboxConfig, SecurityConfig},
};

/// Longest line of a comment.
const WIDTH: usize = 100;

const HEAD: &str = "The configuration of gloveport. This file names every key with its default, so it changes nothing as \
    it is. A line such as `#key = value`, without a blank behind the `#`, shows a key that is unset by default; remove the `#` \
    and give it a value. Values of type secret are never shown by any command. OpenHands 0.62 reads this file, too.";

/// Makes the file from the keys. [`DEFAULT_TOML`](super::DEFAULT_TOML) holds this text.
pub fn render_default_toml() -> String {
    let mut text = String::new();
    comment(&mut text, HEAD);
    comment(&mut text, "");
    comment(
        &mut text,
        "Every key can be set by a variable, too, which then counts: a key of [core] by its name in capitals, such as \
         RUNTIME; a key of another section by both names, such as SANDBOX_TIMEOUT. `gloveport config show` tells what holds \
         and why, `gloveport config check` finds mistakes.",
    );
    for section in SECTIONS.iter().filter(|section| section.in_file) {
        text.push('\n');
        comment(&mut text, section.about);
        line(&mut text, &format!("[{}]", section.name));
        let (nested, own): (Vec<&Key>, Vec<&Key>) =
            section.keys.iter().partition(|key| section.groups && key.kind.inner() == Kind::Table);
        for key in own {
            self::key(&mut text, key, &default(section, key.name));
        }
        if section.groups {
            text.push('\n');
            comment(&mut text, "A named group. It has the values of the section above unless it says otherwise.");
            line(&mut text, &format!("#[{}.name]", section.name));
            for key in nested {
                self::key(&mut text, key, &Value::Null);
            }
        }
    }
    for (name, about) in FREE_SECTIONS {
        text.push('\n');
        comment(&mut text, about);
        line(&mut text, &format!("#[{name}]"));
    }
    text
}

fn key(text: &mut String, key: &Key, default: &Value) {
    text.push('\n');
    comment(text, key.doc);
    if let Some(instead) = key.deprecated {
        comment(text, &format!("Deprecated: {instead}."));
    }
    if let Some(dynamic) = key.dynamic {
        comment(text, &format!("Default: {dynamic}."));
    }
    match (literal(default), key.example) {
        (Some(value), _) if key.dynamic.is_some() => line(text, &format!("#{} = {value}", key.name)),
        (Some(value), _) => line(text, &format!("{} = {value}", key.name)),
        (None, example) => line(text, &format!("#{} = {}", key.name, example.unwrap_or("\"\""))),
    }
}

/// The default of a key.
pub(super) fn default(section: &SectionKeys, key: &str) -> Value {
    fn of<S: Section>(section: &S, key: &str) -> Value {
        section.setting(key).map_or(Value::Null, crate::setting::Setting::shown)
    }
    match section.name {
        SandboxConfig::NAME => of(&SandboxConfig::default(), key),
        SecurityConfig::NAME => of(&SecurityConfig::default(), key),
        McpConfig::NAME => of(&McpConfig::default(), key),
        KubernetesConfig::NAME => of(&KubernetesConfig::default(), key),
        AgentConfig::NAME => of(&AgentConfig::default(), key),
        LlmConfig::NAME => of(&LlmConfig::default(), key),
        crate::model::CliConfig::NAME => of(&crate::model::CliConfig::default(), key),
        _ => of(&Config::default(), key),
    }
}

/// A value as TOML; nothing for one that TOML cannot say.
pub(super) fn literal(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(elements) => {
            let elements: Option<Vec<String>> = elements.iter().map(literal).collect();
            format!("[{}]", elements?.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Some(format!("{name} = {}", literal(value)?));
            let members: Option<Vec<String>> = members.iter().map(member).collect();
            format!("{{ {} }}", members?.join(", "))
        }
    })
}

fn line(text: &mut String, content: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{content}");
}

fn comment(text: &mut String, content: &str) {
    let mut current = String::from("#");
    for word in one_line(content).split(' ') {
        if current.chars().count() + 1 + word.chars().count() > WIDTH {
            line(text, &current);
            current = String::from("#");
        }
        if !word.is_empty() {
            current.push(' ');
            current.push_str(word);
        }
    }
    line(text, &current);
}

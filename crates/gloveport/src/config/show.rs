//! `gloveport config show`.

use std::{fmt::Write as _, process::ExitCode};

use gloveport_config::{Config, Effect, Loaded, Note, NoteKind, Origin, Place, Severity, ShownValue};
use serde_json::{Map, Value, json};

use super::{ShowArgs, options};
use crate::{
    output::{print, print_painted},
    paint::{Paint, Style},
    providers, visible,
};

pub(super) fn show(arguments: &ShowArgs) -> anyhow::Result<ExitCode> {
    let loaded = Config::load(&options(arguments.config_file.as_ref())?)?;
    let values: Vec<ShownValue> =
        loaded.values().into_iter().filter(|value| arguments.all || !value.is_default).collect();
    if arguments.json {
        print(&format!("{:#}\n", json(&loaded, &values, arguments)))?;
    } else {
        print_painted(&text(&loaded, &values, arguments, Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(loaded: &Loaded, values: &[ShownValue], arguments: &ShowArgs, paint: Paint) -> String {
    let mut text = String::new();
    let mut section = "";
    for value in values.iter().filter(|value| !(value.key.is_empty() && value.is_default)) {
        if value.section != section {
            let gap = if text.is_empty() { "" } else { "\n" };
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{gap}{}", paint.text(Style::Heading, &heading(&value.section)));
            section = &value.section;
        }
        let origin = arguments.origin.then(|| value.origin.to_string());
        let effect = is_without_effect(value).then(|| "no effect in gloveport".to_owned());
        let remarks: Vec<String> = origin.into_iter().chain(effect).collect();
        let remark = match remarks.as_slice() {
            [] => String::new(),
            remarks => paint.text(Style::Faint, &format!("  # {}", remarks.join("; "))),
        };
        for line in lines(value) {
            let _ = writeln!(text, "{}{remark}", visible::lines(&line));
        }
    }
    if values.iter().all(|value| value.is_default) && !arguments.all {
        let _ = writeln!(text, "{}", paint.text(Style::Good, "everything is at its default"));
    }
    let hint = match arguments {
        ShowArgs { all: false, origin: false, .. } => {
            "\n--all shows all values, --origin where they come from; `gloveport config default` explains every key"
        }
        ShowArgs { all: false, .. } => "\n--all shows all values; `gloveport config default` explains every key",
        _ => "",
    };
    if !hint.is_empty() {
        let _ = writeln!(text, "{}", paint.text(Style::Faint, hint));
    }
    let (missing, lost): (Vec<&Note>, Vec<&Note>) = loaded
        .notes
        .iter()
        .filter(|note| note.costs_a_setting())
        .partition(|note| matches!(note.kind, NoteKind::MissingFile));
    for place in missing.iter().filter_map(|note| note.place.as_ref()) {
        let message = format!("there is no file {}, so it sets nothing", visible::one_line(&place.to_string()));
        let _ = writeln!(text, "{}", paint.text(Style::Warning, &message));
    }
    if let Some(message) = providers::lost(lost.len()) {
        let _ = writeln!(text, "{}", paint.text(Style::Warning, &message));
    }
    text
}

/// Whether somebody set it, and nothing comes of it here.
fn is_without_effect(value: &ShownValue) -> bool {
    is_set(value) && Effect::of(&value.section, value.key).is_none()
}

/// Whether somebody set it to something else than the default.
pub(super) fn is_set(value: &ShownValue) -> bool {
    matches!(value.origin, Origin::Set(_)) && !value.is_default
}

/// The section as the file writes it.
fn heading(section: &str) -> String {
    match section.split_once('.') {
        Some((base, group)) => format!("[{base}.{}]", name(group)),
        None => format!("[{section}]"),
    }
}

/// A name as TOML writes it.
fn name(name: &str) -> String {
    let bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare && !name.is_empty() { name.to_owned() } else { Value::from(name).to_string() }
}

/// The value as the file writes it; a value that is unset is a comment.
fn lines(value: &ShownValue) -> Vec<String> {
    match (&value.value, value.key) {
        (Value::Object(members), "") => {
            members.iter().map(|(key, member)| format!("{} = {}", name(key), toml(member))).collect()
        }
        (Value::Null, key) => vec![format!("#{key} is unset")],
        // A table inside of [agent] would be a named group.
        (Value::Object(members), key) if members.is_empty() && value.section.starts_with("agent") => {
            vec![format!("#{key} is unset")]
        }
        (other, key) => vec![format!("{key} = {}", toml(other))],
    }
}

fn toml(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".to_owned(),
        Value::Array(elements) => format!("[{}]", elements.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let set = members.iter().filter(|(_, member)| !member.is_null());
            let members: Vec<String> = set.map(|(key, member)| format!("{} = {}", name(key), toml(member))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => other.to_string(),
    }
}

fn json(loaded: &Loaded, values: &[ShownValue], arguments: &ShowArgs) -> Value {
    let mut sections: Map<String, Value> = Map::new();
    let mut origins: Map<String, Value> = Map::new();
    for value in values {
        place(&mut sections, value, value.value.clone());
        place(&mut origins, value, origin(&value.origin));
    }
    let idle = values.iter().filter(|value| is_without_effect(value)).map(name_of);
    let mut shown = json!({
        "values": sections,
        "notes": loaded.notes.iter().map(note).collect::<Vec<_>>(),
        "without_effect": idle.collect::<Vec<_>>(),
    });
    if arguments.origin {
        shown["origins"] = Value::Object(origins);
    }
    shown
}

/// Its name: `sandbox.timeout`.
pub(super) fn name_of(value: &ShownValue) -> String {
    if value.key.is_empty() { value.section.clone() } else { format!("{}.{}", value.section, value.key) }
}

/// Puts a value under its section and key.
fn place(sections: &mut Map<String, Value>, value: &ShownValue, content: Value) {
    if value.key.is_empty() {
        sections.insert(value.section.clone(), content);
        return;
    }
    let section = sections.entry(value.section.clone()).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(section) = section {
        section.insert(value.key.to_owned(), content);
    }
}

fn origin(origin: &Origin) -> Value {
    let mut shown = match origin {
        Origin::Default => json!({}),
        Origin::Set(place) => self::at(Some(place)),
        Origin::Derived { from } => json!({"from": from}),
    };
    shown["kind"] = origin.kind().into();
    shown
}

/// A place as JSON.
fn at(place: Option<&Place>) -> Value {
    match place {
        None => json!({}),
        Some(Place::File { path, line, column }) => {
            let mut shown = json!({"file": path.to_string_lossy()});
            for (name, number) in [("line", line), ("column", column)] {
                if *number > 0 {
                    shown[name] = (*number).into();
                }
            }
            shown
        }
        Some(Place::Variable { name, file: None }) => json!({"variable": name}),
        Some(Place::Variable { name, file: Some(file) }) => json!({"variable": name, "file": file.to_string_lossy()}),
        Some(Place::Flag { name }) => json!({"flag": name}),
    }
}

/// A note as JSON.
pub(super) fn note(note: &Note) -> Value {
    let mut shown = at(note.place.as_ref());
    shown["severity"] = note.severity.name().into();
    shown["kind"] = note.kind.name().into();
    shown["message"] = note.message.clone().into();
    shown["costs_a_setting"] = note.costs_a_setting().into();
    for (name, text) in [("suggestion", &note.suggestion), ("setting", &note.setting)] {
        if let Some(text) = text {
            shown[name] = text.clone().into();
        }
    }
    shown
}

/// The style of a severity.
pub(super) fn style(severity: Severity) -> Style {
    match severity {
        Severity::Hint => Style::Hint,
        Severity::Warning => Style::Warning,
        Severity::Error => Style::Error,
    }
}

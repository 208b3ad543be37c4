//! What front matter may say (runtime-interface 13.3).

use serde_json::Value;

use super::{MicroagentKind, data::Data, error::InvalidKind, mcp_tools};

/// What the front matter of a microagent says, with defaults for what it does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// Its name; that of a file in a directory comes from its path instead.
    pub name: String,
    /// The value of `type`. The kind of a microagent follows from inputs and triggers, not from this.
    pub kind: MicroagentKind,
    /// Its version; numbers have become texts.
    pub version: String,
    /// The agent that it is for.
    pub agent: String,
    /// What a message has to contain for it to be used.
    pub triggers: Vec<String>,
    /// What a task needs to know.
    pub inputs: Vec<Input>,
    /// MCP servers: an object with the lists `stdio_servers` (not empty), `sse_servers` and `shttp_servers`. Fields of
    /// servers beyond `name`, `command` and `url` have yet to be checked.
    pub mcp_tools: Option<Value>,
}

/// Something that a task needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: String,
}

/// Why metadata is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// All that is wrong.
    pub(super) reason: String,
    pub(super) kind: Option<InvalidKind>,
}

impl Metadata {
    /// The defaults, with a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: MicroagentKind::Repo,
            version: "1.0.0".to_owned(),
            agent: "CodeActAgent".to_owned(),
            triggers: Vec::new(),
            inputs: Vec::new(),
            mcp_tools: None,
        }
    }

    /// Reads a map. Keys that are not known are ignored.
    pub(super) fn read(map: &Data) -> Result<Self, Refused> {
        let mut metadata = Self::named("default");
        let mut wrong = Vec::new();
        let mut kind = None;
        let mut keep = |result: Result<(), String>| wrong.extend(result.err());
        keep(set(map.get("name"), &mut metadata.name, |value| text("name", value)));
        keep(set(map.get("version"), &mut metadata.version, |value| Ok(value.python_text())));
        keep(set(map.get("agent"), &mut metadata.agent, |value| text("agent", value)));
        keep(set(map.get("triggers"), &mut metadata.triggers, |value| list("triggers", value, text)));
        keep(set(map.get("inputs"), &mut metadata.inputs, |value| list("inputs", value, input)));
        if let Some(value) = map.get("type") {
            if let Some(known) = MicroagentKind::from_wire(value) {
                metadata.kind = known;
            } else {
                keep(Err("`type` names no type".to_owned()));
                kind = Some(InvalidKind(value.python_text()));
            }
        }
        match map.get("mcp_tools") {
            None | Some(Data::Null) => {}
            Some(value) => match mcp_tools::read(value, &metadata.name) {
                Ok(tools) => metadata.mcp_tools = Some(tools),
                Err(reason) => keep(Err(reason)),
            },
        }
        if wrong.is_empty() { Ok(metadata) } else { Err(Refused { reason: wrong.join("; "), kind }) }
    }
}

/// Replaces a default by what is there.
fn set<T>(value: Option<&Data>, field: &mut T, read: impl Fn(&Data) -> Result<T, String>) -> Result<(), String> {
    if let Some(value) = value {
        *field = read(value)?;
    }
    Ok(())
}

fn text(place: &str, value: &Data) -> Result<String, String> {
    match value {
        Data::Text(text) => Ok(text.clone()),
        other => Err(format!("`{place}` must be a text, not {} (put quotes around it)", other.kind())),
    }
}

fn list<T>(place: &str, value: &Data, item: impl Fn(&str, &Data) -> Result<T, String>) -> Result<Vec<T>, String> {
    let Data::List(items) = value else { return Err(format!("`{place}` must be a list, not {}", value.kind())) };
    items.iter().enumerate().map(|(index, value)| item(&format!("{place}[{index}]"), value)).collect()
}

fn input(place: &str, value: &Data) -> Result<Input, String> {
    let Data::Map(_) = value else { return Err(format!("`{place}` must be a map, not {}", value.kind())) };
    let field = |key: &str| {
        let place = format!("{place}.{key}");
        value.get(key).ok_or_else(|| format!("`{place}` is missing")).and_then(|value| text(&place, value))
    };
    Ok(Input { name: field("name")?, description: field("description")? })
}

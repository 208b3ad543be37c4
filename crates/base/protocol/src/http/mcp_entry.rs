//! One MCP server that the sandbox shall run, checked (action-execution-api 5.2).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::shell_split;
use crate::error::describe;

/// An MCP server that speaks over its standard input and output (action-execution-api 5.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = McpServer)]
pub struct McpServerEntry {
    /// Letters, digits, underscores and hyphens.
    #[schema(pattern = "^[a-zA-Z0-9_-]+$")]
    pub name: String,
    /// The program, without blanks.
    #[schema(pattern = "^\\S+$")]
    pub command: String,
    /// Its arguments. As text, they are split as a shell does it.
    #[schema(required = false)]
    pub args: Vec<String>,
    /// Variables for its environment.
    #[schema(required = false)]
    pub env: BTreeMap<String, String>,
}

/// Why an element of the list is no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpServerEntryError {
    /// The element is no object.
    #[error("an MCP server must be an object, not {found}")]
    NotAnObject {
        /// What was there.
        found: String,
    },
    /// A field is absent.
    #[error("an MCP server has no '{field}'")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field has a value of another type.
    #[error("the MCP server's '{field}' must be {expected}, not {found}")]
    WrongType {
        /// The field.
        field: &'static str,
        /// What it holds.
        expected: &'static str,
        /// What was there.
        found: String,
    },
    /// The name is empty.
    #[error("server name cannot be empty")]
    EmptyName,
    /// The name has other characters than allowed.
    #[error("server name {name:?} can only contain letters, numbers, hyphens and underscores")]
    InvalidName {
        /// The name.
        name: String,
    },
    /// The command is empty.
    #[error("command cannot be empty")]
    EmptyCommand,
    /// The command has a blank.
    #[error("command {command:?} should be a single executable without spaces; put parameters into 'args'")]
    CommandWithSpace {
        /// The command.
        command: String,
    },
    /// A quotation in the text form of the arguments has no end.
    #[error("invalid argument format: no closing quotation")]
    OpenQuote,
    /// The text form of the arguments ends in a backslash.
    #[error("invalid argument format: no escaped character")]
    OpenEscape,
    /// A part of the text form of the environment has no `=`.
    #[error("environment variable {pair:?} must be in KEY=VALUE format")]
    NoEqualsSign {
        /// The part.
        pair: String,
    },
    /// A name in the text form of the environment is none.
    #[error("invalid environment variable name {key:?}")]
    InvalidVariable {
        /// The name.
        key: String,
    },
}

impl McpServerEntry {
    /// Checks one element of the list. Unknown members are ignored.
    pub fn from_value(value: &Value) -> Result<Self, McpServerEntryError> {
        let members = value.as_object().ok_or_else(|| McpServerEntryError::NotAnObject { found: describe(value) })?;
        Ok(Self {
            name: checked_name(text(members.get("name"), "name")?)?,
            command: checked_command(text(members.get("command"), "command")?)?,
            args: args(members.get("args"))?,
            env: env(members.get("env"))?,
        })
    }
}

impl<'de> Deserialize<'de> for McpServerEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn text<'a>(value: Option<&'a Value>, field: &'static str) -> Result<&'a str, McpServerEntryError> {
    let value = value.ok_or(McpServerEntryError::Missing { field })?;
    value.as_str().map(str::trim).ok_or_else(|| wrong_type(field, "a string", value))
}

fn wrong_type(field: &'static str, expected: &'static str, value: &Value) -> McpServerEntryError {
    McpServerEntryError::WrongType { field, expected, found: describe(value) }
}

fn checked_name(name: &str) -> Result<String, McpServerEntryError> {
    if name.is_empty() {
        return Err(McpServerEntryError::EmptyName);
    }
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
        Ok(name.to_owned())
    } else {
        Err(McpServerEntryError::InvalidName { name: name.to_owned() })
    }
}

fn checked_command(command: &str) -> Result<String, McpServerEntryError> {
    if command.is_empty() {
        Err(McpServerEntryError::EmptyCommand)
    } else if command.contains(' ') {
        Err(McpServerEntryError::CommandWithSpace { command: command.to_owned() })
    } else {
        Ok(command.to_owned())
    }
}

/// Whether Python takes the value for false, which stands for an empty list or object here.
fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn args(value: Option<&Value>) -> Result<Vec<String>, McpServerEntryError> {
    const EXPECTED: &str = "a list of strings, or a string";
    match value {
        None => Ok(Vec::new()),
        Some(value) if is_falsy(value) => Ok(Vec::new()),
        Some(Value::String(text)) => shell_split::split(text.trim()),
        Some(Value::Array(elements)) => elements
            .iter()
            .map(|element| element.as_str().map(str::to_owned).ok_or_else(|| wrong_type("args", EXPECTED, element)))
            .collect(),
        Some(other) => Err(wrong_type("args", EXPECTED, other)),
    }
}

fn env(value: Option<&Value>) -> Result<BTreeMap<String, String>, McpServerEntryError> {
    const EXPECTED: &str = "an object of strings, or a string";
    match value {
        None => Ok(BTreeMap::new()),
        Some(value) if is_falsy(value) => Ok(BTreeMap::new()),
        Some(Value::String(text)) => {
            text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(variable).collect()
        }
        Some(Value::Object(members)) => members
            .iter()
            .map(|(key, member)| match member {
                Value::String(text) => Ok((key.clone(), text.clone())),
                other => Err(wrong_type("env", EXPECTED, other)),
            })
            .collect(),
        Some(other) => Err(wrong_type("env", EXPECTED, other)),
    }
}

fn variable(pair: &str) -> Result<(String, String), McpServerEntryError> {
    let (key, value) =
        pair.split_once('=').ok_or_else(|| McpServerEntryError::NoEqualsSign { pair: pair.to_owned() })?;
    let key = key.trim();
    let starts_well = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts_well && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Ok((key.to_owned(), value.to_owned()))
    } else {
        Err(McpServerEntryError::InvalidVariable { key: key.to_owned() })
    }
}

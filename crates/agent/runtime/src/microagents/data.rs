//! A value of front matter, whichever language it is written in.

use gloveport_protocol::python;
use serde_json::{Map, Number, Value};

/// A value. Its nesting is bounded by whoever makes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    /// A date or a point in time, as it is written.
    Date(String),
    List(Vec<Data>),
    /// Keys are scalars and each is there once.
    Map(Vec<(Data, Data)>),
}

impl Data {
    /// What it is called in a message.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    /// The value of a key of a map; nothing if it is no map.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries.iter().find(|(name, _)| matches!(name, Self::Text(name) if name == key)).map(|(_, value)| value)
    }

    /// The value as Python's `str` shows it.
    pub(super) fn python_text(&self) -> String {
        match self {
            Self::Text(text) | Self::Date(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => python::float_text(*number),
            Self::Null | Self::Bool(_) | Self::List(_) | Self::Map(_) => python::repr(&self.to_json()),
        }
    }

    /// The value as JSON. What JSON has no form for becomes a text, keys too.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Integer(number) => i64::try_from(*number)
                .map(Number::from)
                .ok()
                .or_else(|| u64::try_from(*number).map(Number::from).ok())
                .map_or_else(|| Value::String(number.to_string()), Value::Number),
            Self::Float(number) => {
                Number::from_f64(*number).map_or_else(|| Value::String(self.python_text()), Value::Number)
            }
            Self::Text(text) | Self::Date(text) => Value::String(text.clone()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Self::Map(entries) => Value::Object(
                entries.iter().map(|(key, value)| (key.python_text(), value.to_json())).collect::<Map<_, _>>(),
            ),
        }
    }
}

impl From<Value> for Data {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => number
                .as_i64()
                .map(i128::from)
                .or_else(|| number.as_u64().map(i128::from))
                .map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)), Self::Integer),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Map(members.into_iter().map(|(key, value)| (Self::Text(key), Self::from(value))).collect())
            }
        }
    }
}

impl From<toml::Value> for Data {
    fn from(value: toml::Value) -> Self {
        match value {
            toml::Value::Boolean(value) => Self::Bool(value),
            toml::Value::Integer(number) => Self::Integer(number.into()),
            toml::Value::Float(number) => Self::Float(number),
            toml::Value::String(text) => Self::Text(text),
            toml::Value::Datetime(time) => Self::Date(time.to_string()),
            toml::Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            toml::Value::Table(table) => table.into(),
        }
    }
}

impl From<toml::Table> for Data {
    fn from(table: toml::Table) -> Self {
        Self::Map(table.into_iter().map(|(key, value)| (Self::Text(key), Self::from(value))).collect())
    }
}

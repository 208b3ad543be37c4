//! A value as it was written, with the place where it stands.
//!
//! TOML, Python literals and JSON become this one tree, so that every key is read by the same rules.

use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::de::{DeInteger, DeTable, DeValue};

/// Bytes of the file, or nothing for a value that comes from a variable.
pub(crate) type Span = Option<Range<usize>>;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: NodeValue,
    pub(crate) span: Span,
}

/// What can be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeValue {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    /// Something no key takes: a date, a time, or an integer of more than 64 bits.
    Other {
        text: String,
        what: &'static str,
    },
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// One member of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

impl Node {
    /// A TOML table.
    pub(crate) fn from_toml(table: &DeTable<'_>, span: Range<usize>) -> Self {
        Self { value: NodeValue::Table(entries(table)), span: Some(span) }
    }

    /// A value that is in no file.
    pub(crate) fn from_json(value: &Value) -> Self {
        let value = match value {
            Value::Null => NodeValue::Null,
            Value::Bool(value) => NodeValue::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => NodeValue::Integer(integer),
                (None, Some(float)) if !number.is_u64() => NodeValue::Float(float),
                _ => NodeValue::Other { text: number.to_string(), what: LONG_INTEGER },
            },
            Value::String(text) => NodeValue::Text(text.clone()),
            Value::Array(elements) => NodeValue::List(elements.iter().map(Self::from_json).collect()),
            Value::Object(members) => NodeValue::Table(
                members
                    .iter()
                    .map(|(key, value)| Entry { key: key.clone(), key_span: None, node: Self::from_json(value) })
                    .collect(),
            ),
        };
        Self { value, span: None }
    }

    /// The value without its places. Numbers that JSON lacks become texts.
    pub(crate) fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Integer(value) => Value::from(*value),
            NodeValue::Float(value) => float_json(*value),
            NodeValue::Text(text) | NodeValue::Other { text, .. } => Value::String(text.clone()),
            NodeValue::List(elements) => Value::Array(elements.iter().map(Self::to_json).collect()),
            NodeValue::Table(entries) => Value::Object(table_json(entries)),
        }
    }

    /// What it is, for people.
    pub(crate) fn what(&self) -> &'static str {
        match &self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "a truth value",
            NodeValue::Integer(_) => "an integer",
            NodeValue::Float(_) => "a number with a fraction",
            NodeValue::Text(_) => "a text",
            NodeValue::Other { what, .. } => what,
            NodeValue::List(_) => "a list",
            NodeValue::Table(_) => "a table",
        }
    }

    /// The members, if it is a table.
    pub(crate) fn table(&self) -> Option<&[Entry]> {
        match &self.value {
            NodeValue::Table(entries) => Some(entries),
            _ => None,
        }
    }
}

const LONG_INTEGER: &str = "an integer of more than 64 bits";

/// A number as JSON; what JSON has no number for is its text.
pub(crate) fn float_json(value: f64) -> Value {
    Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number)
}

/// The members without their places.
pub(crate) fn table_json(entries: &[Entry]) -> Map<String, Value> {
    entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect()
}

fn entries(table: &DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: Some(key.span()),
            node: Node { value: from_toml(value.get_ref()), span: Some(value.span()) },
        })
        .collect();
    // The order of the file.
    entries.sort_by_key(|entry| entry.key_span.as_ref().map_or(0, |span| span.start));
    entries
}

fn from_toml(value: &DeValue<'_>) -> NodeValue {
    match value {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        DeValue::Integer(integer) => match integer_value(integer) {
            Some(value) => NodeValue::Integer(value),
            None => NodeValue::Other { text: integer.to_string(), what: LONG_INTEGER },
        },
        DeValue::Float(float) => match float.as_str().replace('_', "").parse() {
            Ok(value) => NodeValue::Float(value),
            Err(_) => NodeValue::Other { text: float.to_string(), what: "a number that cannot be read" },
        },
        DeValue::Boolean(value) => NodeValue::Bool(*value),
        DeValue::Datetime(moment) => NodeValue::Other { text: moment.to_string(), what: "a date or time" },
        DeValue::Array(elements) => NodeValue::List(
            elements
                .iter()
                .map(|element| Node { value: from_toml(element.get_ref()), span: Some(element.span()) })
                .collect(),
        ),
        DeValue::Table(table) => NodeValue::Table(entries(table)),
    }
}

fn integer_value(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
}

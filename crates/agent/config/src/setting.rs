//! How the value of a key is read from a file, cast from a variable, and shown.
//!
//! Reading from a file is as lenient as the reference's validation (`"5"` is the integer 5, `"yes"` is true). Casting
//! a variable follows configuration 2.

use std::collections::BTreeMap;

use gloveport_protocol::{Secret, python, python_literal};
use serde_json::{Map, Value};

use crate::{
    free_form::FreeForm,
    kind::Kind,
    mask,
    node::{Node, NodeValue, Span, float_json, table_json},
};

/// Why a value was refused. The text never holds the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// What is wrong, as in "`timeout` …".
    pub(crate) message: String,
    /// Where inside of the value, as in `[1].url`; empty for the value itself.
    pub(crate) within: String,
    /// Where that stands in the file.
    pub(crate) span: Span,
}

impl Mismatch {
    /// The value has another type.
    pub(crate) fn kind(expected: Kind, node: &Node) -> Self {
        Self::rule(format!("must be {}, not {}", expected.describe(), node.what()), node)
    }

    /// The value breaks a rule.
    pub(crate) fn rule(message: impl Into<String>, node: &Node) -> Self {
        Self { message: message.into(), within: String::new(), span: node.span.clone() }
    }

    /// The same, seen from the list or table around it.
    pub(crate) fn inside(self, step: &str) -> Self {
        Self { within: format!("{step}{}", self.within), ..self }
    }
}

/// A type that keys can have.
pub(crate) trait SettingValue: Sized {
    const KIND: Kind;

    /// Reads what a file says.
    fn from_node(node: &Node) -> Result<Self, Mismatch>;

    /// Casts what a variable says; the text is not empty.
    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        let node = literal(text).ok_or_else(|| Mismatch {
            message: format!("must be {} as a Python literal or JSON", Self::KIND.describe()),
            within: String::new(),
            span: None,
        })?;
        Self::from_node(&node)
    }

    /// What people and logs see.
    fn shown(&self) -> Value;
}

/// A field of a section, whatever its type.
pub(crate) trait Setting {
    fn read(&mut self, node: &Node) -> Result<(), Mismatch>;
    fn cast(&mut self, text: &str) -> Result<(), Mismatch>;
    fn shown(&self) -> Value;
}

impl<T: SettingValue> Setting for T {
    fn read(&mut self, node: &Node) -> Result<(), Mismatch> {
        *self = T::from_node(node)?;
        Ok(())
    }

    fn cast(&mut self, text: &str) -> Result<(), Mismatch> {
        *self = T::from_variable(text)?;
        Ok(())
    }

    fn shown(&self) -> Value {
        SettingValue::shown(self)
    }
}

/// A Python literal, or JSON.
fn literal(text: &str) -> Option<Node> {
    let value = python_literal::parse(text).or_else(|| serde_json::from_str(text).ok())?;
    Some(Node::from_json(&value))
}

/// A variable's text that could not be cast.
fn not_a(kind: Kind) -> Mismatch {
    Mismatch { message: format!("must be {}", kind.describe()), within: String::new(), span: None }
}

impl SettingValue for bool {
    const KIND: Kind = Kind::Bool;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let value = match &node.value {
            NodeValue::Bool(value) => Some(*value),
            NodeValue::Integer(0) | NodeValue::Float(0.0) => Some(false),
            NodeValue::Integer(1) | NodeValue::Float(1.0) => Some(true),
            NodeValue::Text(text) => match text.to_lowercase().as_str() {
                "0" | "off" | "f" | "false" | "n" | "no" => Some(false),
                "1" | "on" | "t" | "true" | "y" | "yes" => Some(true),
                _ => None,
            },
            _ => None,
        };
        value.ok_or_else(|| Mismatch::kind(Self::KIND, node))
    }

    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        Ok(matches!(text.to_lowercase().as_str(), "true" | "1"))
    }

    fn shown(&self) -> Value {
        Value::Bool(*self)
    }
}

/// Reads an integer as Python's `int(text)` does, for ASCII texts.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let well_placed = !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    if !well_placed || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return None;
    }
    text.replace('_', "").parse().ok()
}

impl SettingValue for i64 {
    const KIND: Kind = Kind::Integer;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let value = match &node.value {
            NodeValue::Bool(value) => Some(i64::from(*value)),
            NodeValue::Integer(value) => Some(*value),
            // The text of a float without a fraction and exponent is that of an integer.
            NodeValue::Float(value) => integer(&value.to_string()),
            NodeValue::Text(text) => match text.trim().split_once('.') {
                Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => integer(whole),
                Some(_) => None,
                None => integer(text),
            },
            _ => None,
        };
        value.ok_or_else(|| Mismatch::kind(Self::KIND, node))
    }

    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        integer(text).ok_or_else(|| not_a(Self::KIND))
    }

    fn shown(&self) -> Value {
        Value::from(*self)
    }
}

impl SettingValue for f64 {
    const KIND: Kind = Kind::Float;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let value = match &node.value {
            NodeValue::Bool(value) => Some(f64::from(u8::from(*value))),
            // Through the text, as there is no exact conversion for large integers.
            NodeValue::Integer(value) => value.to_string().parse().ok(),
            NodeValue::Float(value) => Some(*value),
            NodeValue::Text(text) => python::parse_float(text),
            _ => None,
        };
        value.ok_or_else(|| Mismatch::kind(Self::KIND, node))
    }

    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        python::parse_float(text).ok_or_else(|| not_a(Self::KIND))
    }

    fn shown(&self) -> Value {
        float_json(*self)
    }
}

impl SettingValue for String {
    const KIND: Kind = Kind::Text;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        match &node.value {
            NodeValue::Text(text) => Ok(text.clone()),
            _ => Err(Mismatch::kind(Self::KIND, node)),
        }
    }

    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        Ok(text.to_owned())
    }

    fn shown(&self) -> Value {
        Value::String(mask::text(self))
    }
}

impl SettingValue for Secret {
    const KIND: Kind = Kind::Secret;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        String::from_node(node).map(Self::from)
    }

    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        Ok(Self::from(text))
    }

    fn shown(&self) -> Value {
        Value::String(if self.is_empty() { String::new() } else { self.to_string() })
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    const KIND: Kind = Kind::Optional(&T::KIND);

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        match node.value {
            NodeValue::Null => Ok(None),
            _ => T::from_node(node).map(Some),
        }
    }

    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        T::from_variable(text).map(Some)
    }

    fn shown(&self) -> Value {
        self.as_ref().map_or(Value::Null, SettingValue::shown)
    }
}

/// A variable is not validated by the reference: plain values where texts belong become texts.
fn scalars_as_texts(node: Node) -> Node {
    let value = match node.value {
        NodeValue::List(elements) => NodeValue::List(elements.into_iter().map(scalar_as_text).collect()),
        NodeValue::Table(mut entries) => {
            for entry in &mut entries {
                entry.node = scalar_as_text(entry.node.clone());
            }
            NodeValue::Table(entries)
        }
        other => other,
    };
    Node { value, span: node.span }
}

fn scalar_as_text(node: Node) -> Node {
    let value = match node.value {
        value @ (NodeValue::Bool(_) | NodeValue::Integer(_) | NodeValue::Float(_)) => {
            NodeValue::Text(python::repr(&Node { value, span: None }.to_json()))
        }
        other => other,
    };
    Node { value, span: node.span }
}

impl SettingValue for Vec<String> {
    const KIND: Kind = Kind::List(&Kind::Text);

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        list(node, Self::KIND)
    }

    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        let node = literal(text).ok_or_else(|| not_a_literal(Self::KIND))?;
        Self::from_node(&scalars_as_texts(node))
    }

    fn shown(&self) -> Value {
        self.iter().map(SettingValue::shown).collect()
    }
}

impl SettingValue for Vec<BTreeMap<String, String>> {
    const KIND: Kind = Kind::List(&Kind::Map(&Kind::Text));

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        list(node, Self::KIND)
    }

    fn shown(&self) -> Value {
        self.iter().map(SettingValue::shown).collect()
    }
}

fn not_a_literal(kind: Kind) -> Mismatch {
    let message = format!("must be {} as a Python literal or JSON", kind.describe());
    Mismatch { message, within: String::new(), span: None }
}

/// Reads every element of a list.
pub(crate) fn list<T: SettingValue>(node: &Node, kind: Kind) -> Result<Vec<T>, Mismatch> {
    let NodeValue::List(elements) = &node.value else { return Err(Mismatch::kind(kind, node)) };
    let read = |(at, element)| T::from_node(element).map_err(|mismatch| mismatch.inside(&format!("[{at}]")));
    elements.iter().enumerate().map(read).collect()
}

impl<T: SettingValue> SettingValue for BTreeMap<String, T> {
    const KIND: Kind = Kind::Map(&T::KIND);

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let entries = node.table().ok_or_else(|| Mismatch::kind(Self::KIND, node))?;
        let read = |entry: &crate::node::Entry| match T::from_node(&entry.node) {
            Ok(value) => Ok((entry.key.clone(), value)),
            Err(mismatch) => Err(mismatch.inside(&format!(".{}", entry.key))),
        };
        entries.iter().map(read).collect()
    }

    fn from_variable(text: &str) -> Result<Self, Mismatch> {
        let node = literal(text).ok_or_else(|| not_a_literal(Self::KIND))?;
        Self::from_node(&scalars_as_texts(node))
    }

    fn shown(&self) -> Value {
        let shown = |(name, value): (&String, &T)| match value.shown() {
            Value::String(text) => (name.clone(), member_shown(name, text)),
            other => (name.clone(), other),
        };
        Value::Object(self.iter().map(shown).collect())
    }
}

/// A text whose name may tell that it is a secret.
fn member_shown(name: &str, text: String) -> Value {
    let member = Map::from_iter([(name.to_owned(), Value::String(text))]);
    mask::table(&member).into_iter().next().map_or(Value::Null, |(_, value)| value)
}

impl SettingValue for FreeForm {
    const KIND: Kind = Kind::Table;

    fn from_node(node: &Node) -> Result<Self, Mismatch> {
        let entries = node.table().ok_or_else(|| Mismatch::kind(Self::KIND, node))?;
        Ok(table_json(entries).into())
    }

    fn shown(&self) -> Value {
        Value::Object(mask::table(self))
    }
}

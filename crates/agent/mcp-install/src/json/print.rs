//! How a file writes its JSON, and values written so.

use jsonc_parser::ast::Object;
use serde_json::Value;

use super::{range, scan};
use crate::edit;

/// The indentation of a file that has none.
const INDENTATION: &str = "  ";

/// How a file is written.
#[derive(Debug)]
pub(super) struct Style<'a> {
    /// The end of a line.
    pub(super) newline: &'static str,
    /// What a line is indented by beyond the line of the object that it is in.
    pub(super) unit: &'a str,
    /// Whether everything is on one line.
    pub(super) one_line: bool,
    /// What is between a colon or comma and what follows in the same line.
    pub(super) gap: &'static str,
}

impl Default for Style<'_> {
    fn default() -> Self {
        Self { newline: "\n", unit: INDENTATION, one_line: false, gap: " " }
    }
}

impl<'a> Style<'a> {
    /// The one of a file with this at the top level.
    pub(super) fn of(text: &'a str, root: &Object<'_>) -> Self {
        let mut style = Self { newline: edit::newline(text), ..Self::default() };
        let Some(first) = root.properties.first() else { return style };
        let range = range(root.range);
        style.one_line = !text[range].contains(['\n', '\r']);
        let colon = scan::next_token(text, end_of_name(first));
        if scan::next_token(text, colon + 1) == colon + 1 {
            style.gap = "";
        }
        let (outer, inner) = (edit::indentation(text, root.range.start), edit::indentation(text, first.range.start));
        if edit::starts_line(text, first.range.start)
            && let Some(unit) = inner.strip_prefix(outer)
            && !unit.is_empty()
        {
            style.unit = unit;
        }
        style
    }

    /// A member on lines of its own, but for the indentation of the first.
    pub(super) fn member_on_lines(&self, key: &str, value: &Value, indentation: &str) -> String {
        format!("{}: {}", text(key), self.on_lines(value, indentation))
    }

    /// A member within a line.
    pub(super) fn member_in_line(&self, key: &str, value: &Value) -> String {
        format!("{}:{}{}", text(key), self.gap, self.in_line(value))
    }

    /// A value whose first line is indented by this: objects on several lines, lists on one.
    pub(super) fn on_lines(&self, value: &Value, indentation: &str) -> String {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let inner = format!("{indentation}{}", self.unit);
                let newline = self.newline;
                let lines = members
                    .iter()
                    .map(|(key, value)| format!("{newline}{inner}{}", self.member_on_lines(key, value, &inner)));
                format!("{{{}{newline}{indentation}}}", lines.collect::<Vec<_>>().join(","))
            }
            Value::Array(values) => {
                let values = values.iter().map(|value| self.on_lines(value, indentation));
                format!("[{}]", values.collect::<Vec<_>>().join(", "))
            }
            value => value.to_string(),
        }
    }

    /// A value within a line.
    pub(super) fn in_line(&self, value: &Value) -> String {
        let comma = format!(",{}", self.gap);
        match value {
            Value::Object(members) => {
                let members = members.iter().map(|(key, value)| self.member_in_line(key, value));
                format!("{{{}}}", members.collect::<Vec<_>>().join(&comma))
            }
            Value::Array(values) => {
                format!("[{}]", values.iter().map(|value| self.in_line(value)).collect::<Vec<_>>().join(&comma))
            }
            value => value.to_string(),
        }
    }
}

fn end_of_name(member: &jsonc_parser::ast::ObjectProp<'_>) -> usize {
    use jsonc_parser::common::Ranged as _;
    member.name.range().end
}

/// A text in quotes.
fn text(text: &str) -> Value {
    Value::from(text)
}

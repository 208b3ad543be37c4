//! Python's `repr` of texts and JSON values, which names and values of the flattened tree are written in.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use crate::printable::is_printable;

/// Lists and dictionaries deeper than this are written as `...`; no value of an accessibility tree is nested.
const DEEPEST: usize = 32;

/// What `str.isspace` answers, by which `str.strip` and `\s` of Python go.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// What `str.strip()` leaves.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Appends the `repr` of a text.
pub(crate) fn push_str_repr(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote => {
                out.push('\\');
                out.push(c);
            }
            _ if is_printable(c) => out.push(c),
            _ => push_escaped(out, u32::from(c)),
        }
    }
    out.push(quote);
}

fn push_escaped(out: &mut String, code: u32) {
    // Writing to a string does not fail.
    let _ = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Appends the `repr` of what Python's `json` makes of a value.
pub(crate) fn push_repr(out: &mut String, value: &Value) {
    push_nested(out, value, 0);
}

fn push_nested(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Number(number) => push_number(out, number),
        Value::String(text) => push_str_repr(out, text),
        Value::Array(_) | Value::Object(_) if depth == DEEPEST => out.push_str("..."),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                push_nested(out, item, depth + 1);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (position, (name, member)) in members.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                push_str_repr(out, name);
                out.push_str(": ");
                push_nested(out, member, depth + 1);
            }
            out.push('}');
        }
    }
}

fn push_number(out: &mut String, number: &Number) {
    match number.as_f64() {
        Some(float) if number.is_f64() => push_float(out, float),
        _ => out.push_str(&number.to_string()),
    }
}

/// The shortest digits that give the same number, with an exponent below 1e-4 and from 1e16.
fn push_float(out: &mut String, float: f64) {
    let scientific = format!("{float:e}");
    let exponent = scientific.rsplit_once('e').and_then(|(_, digits)| digits.parse::<i32>().ok()).unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{float}");
        out.push_str(&plain);
        if !plain.contains('.') {
            out.push_str(".0");
        }
    } else {
        let (digits, _) = scientific.rsplit_once('e').unwrap_or((&scientific, ""));
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn repr(value: &Value) -> String {
        let mut out = String::new();
        push_repr(&mut out, value);
        out
    }

    #[test]
    fn values_are_written_as_python_writes_them() {
        for (value, expected) in [
            (json!("a"), "'a'"),
            (json!("it's"), "\"it's\""),
            (json!("it's \"x\""), "'it\\'s \"x\"'"),
            (json!("\\ \n\r\t\u{7f}\u{0}"), r"'\\ \n\r\t\x7f\x00'"),
            (json!("\u{a0}\u{200b}\u{2028}é😀\u{e000}\u{1d173}"), r"'\xa0\u200b\u2028é😀\ue000\U0001d173'"),
            (json!(true), "True"),
            (json!(null), "None"),
            (json!(-5), "-5"),
            (json!(1.0), "1.0"),
            (json!(0.1), "0.1"),
            (json!(1e16), "1e+16"),
            (json!(1.5e22), "1.5e+22"),
            (json!(123_456_789_012_345.6), "123456789012345.6"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(-0.0), "-0.0"),
            (json!(["a", 1, {"b": false}]), "['a', 1, {'b': False}]"),
        ] {
            assert_eq!(repr(&value), expected);
        }
    }

    #[test]
    fn values_that_are_nested_too_deep_end() {
        let mut value = json!(1);
        for _ in 0..100 {
            value = json!([value]);
        }
        assert_eq!(repr(&value), format!("{}...{}", "[".repeat(32), "]".repeat(32)));
    }

    #[test]
    fn text_is_stripped_of_what_python_calls_space() {
        assert_eq!(strip("\u{1c}\u{1f} \u{85}\u{3000}a\u{200b}\n"), "a\u{200b}");
    }
}

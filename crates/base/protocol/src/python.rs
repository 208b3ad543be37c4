//! The Python renderings of values that texts on the wire contain.

pub mod json;

use std::fmt::{self, Write};

use serde_json::{Map, Number, Value};

/// A float as Python prints it: `1.0`, `2.5`, `1e+16`.
pub fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => {
            let mut text = number.to_string();
            if !text.contains('.') {
                text.push_str(".0");
            }
            text
        }
    }
}

/// Reads a float as Python's `float(text)` does, for ASCII texts: blanks around it and underscores between digits are
/// allowed.
pub fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let misplaced = bytes
        .iter()
        .enumerate()
        .any(|(at, byte)| *byte == b'_' && !(is_digit(at.checked_sub(1)) && is_digit(Some(at + 1))));
    if misplaced {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// A JSON value as Python's `repr` prints its Python counterpart.
pub fn repr(value: &Value) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write_repr(&mut text, value);
    text
}

/// Like [`repr`], for an object without its wrapper.
pub fn repr_object(members: &Map<String, Value>) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write_object(&mut text, members);
    text
}

/// Like [`repr`], cut after `limit` code points. The work is bounded, too.
pub fn repr_bounded(value: &Value, limit: usize) -> String {
    let mut out = Bounded { text: String::new(), left: limit };
    // The only error is that the limit is reached.
    let _ = write_repr(&mut out, value);
    out.text
}

/// Like [`repr_bounded`], for an object without its wrapper.
pub(crate) fn object_bounded(members: &Map<String, Value>, limit: usize) -> String {
    let mut out = Bounded { text: String::new(), left: limit };
    // The only error is that the limit is reached.
    let _ = write_object(&mut out, members);
    out.text
}

/// The first `limit` code points of a text.
pub(crate) fn bounded(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}

fn write_repr(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value {
        Value::Null => out.write_str("None"),
        Value::Bool(true) => out.write_str("True"),
        Value::Bool(false) => out.write_str("False"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(elements) => {
            out.write_char('[')?;
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.write_str(", ")?;
                }
                write_repr(out, element)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => write_object(out, members),
    }
}

fn write_object(out: &mut impl Write, members: &Map<String, Value>) -> fmt::Result {
    out.write_char('{')?;
    for (index, (key, member)) in members.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_string(out, key)?;
        out.write_str(": ")?;
        write_repr(out, member)?;
    }
    out.write_char('}')
}

fn write_number(out: &mut impl Write, number: &Number) -> fmt::Result {
    match number.as_f64() {
        Some(float) if number.is_f64() => out.write_str(&float_text(float)),
        _ => write!(out, "{number}"),
    }
}

fn write_string(out: &mut impl Write, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if is_printable(c) => out.write_char(c)?,
            c => match u32::from(c) {
                code @ ..=0xff => write!(out, "\\x{code:02x}")?,
                code @ ..=0xffff => write!(out, "\\u{code:04x}")?,
                code => write!(out, "\\U{code:08x}")?,
            },
        }
    }
    out.write_char(quote)
}

/// Whether Python prints the character as it is.
///
/// Rust's debug form of a string escapes by the same Unicode categories, except that it also escapes a combining
/// character at the start of the string; the leading letter avoids that.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut buffer = [0; 5];
    let (letter, rest) = buffer.split_at_mut(1);
    letter.fill(b'a');
    let length = 1 + c.encode_utf8(rest).len();
    let text = buffer.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
    text.escape_debug().eq(text.chars())
}

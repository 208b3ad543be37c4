//! JSON as Python's `json` module writes it: `", "` and `": "` between the parts, everything beyond ASCII escaped
//! (event-stream 4.1).

use std::io::{self, Write};

use serde::Serialize as _;
use serde_json::{Serializer, Value, ser::CharEscape, ser::Formatter};

use super::float_text;

/// One line.
pub fn line(value: &Value) -> String {
    let mut text = String::new();
    render(value, Layout::line(), &mut text);
    text
}

/// Many lines, indented by four spaces, as an element of a list in a file of its own. The first line is not indented.
pub fn element(value: &Value) -> String {
    let mut text = String::new();
    render(value, Layout { indent: Some(4), depth: 1, is_empty: true }, &mut text);
    text
}

fn render(value: &Value, layout: Layout, text: &mut String) {
    // Neither a JSON value nor a text in memory gives a reason to fail.
    let _ = value.serialize(&mut Serializer::with_formatter(Sink(text), layout));
}

/// Takes what the formatter writes, all of which is ASCII.
struct Sink<'a>(&'a mut String);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.push_str(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Layout {
    /// Spaces per level; `None` for one line.
    indent: Option<usize>,
    depth: usize,
    /// Whether nothing stands in the innermost list or object yet.
    is_empty: bool,
}

impl Layout {
    const fn line() -> Self {
        Self { indent: None, depth: 0, is_empty: true }
    }

    fn begin<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        writer.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if !self.is_empty {
            self.break_line(writer)?;
        }
        self.is_empty = false;
        writer.write_all(bracket)
    }

    fn separate<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(if self.indent.is_some() { b"," } else { b", " })?;
        }
        self.break_line(writer)
    }

    fn break_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        if let Some(indent) = self.indent {
            write!(writer, "\n{:width$}", "", width = indent * self.depth)?;
        }
        Ok(())
    }
}

impl Formatter for Layout {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float_text(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, character) in fragment.char_indices() {
            if matches!(character, ' '..='~') {
                continue;
            }
            writer.write_all(fragment.get(plain..at).unwrap_or_default().as_bytes())?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            plain = at + character.len_utf8();
        }
        writer.write_all(fragment.get(plain..).unwrap_or_default().as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        let text: &[u8] = match escape {
            CharEscape::Quote => b"\\\"",
            CharEscape::ReverseSolidus => b"\\\\",
            CharEscape::Solidus => b"/",
            CharEscape::Backspace => b"\\b",
            CharEscape::FormFeed => b"\\f",
            CharEscape::LineFeed => b"\\n",
            CharEscape::CarriageReturn => b"\\r",
            CharEscape::Tab => b"\\t",
            CharEscape::AsciiControl(byte) => return write!(writer, "\\u{byte:04x}"),
        };
        writer.write_all(text)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.is_empty = false;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.is_empty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_what_python_writes() {
        for (value, expected) in [
            (json!({}), "{}"),
            (json!([]), "[]"),
            (json!({"a": 1, "b": [1, 2, {}], "c": null}), r#"{"a": 1, "b": [1, 2, {}], "c": null}"#),
            (json!("é漢😀\u{7f}"), r#""\u00e9\u6f22\ud83d\ude00\u007f""#),
            (json!("\"\\/\u{8}\u{c}\n\r\t\u{1}\u{1f}"), r#""\"\\/\b\f\n\r\t\u0001\u001f""#),
            (json!([1.0, 1e16, 0.1, -0.00001]), "[1.0, 1e+16, 0.1, -1e-05]"),
            (json!([true, false]), "[true, false]"),
        ] {
            assert_eq!(line(&value), expected);
        }
    }

    #[test]
    fn an_element_is_indented_by_four_spaces() {
        let value = json!({"a": [1, []], "b": {}, "c": {"d": "é"}});
        let expected = r#"{
        "a": [
            1,
            []
        ],
        "b": {},
        "c": {
            "d": "\u00e9"
        }
    }"#;
        assert_eq!(element(&value), expected);
    }
}

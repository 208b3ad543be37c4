//! Fields of the editor that may come in more than one form.

use serde_json::Value;

use super::{InsertLine, ReadAction};
use crate::{error::FREE_TEXT_LIMIT, python};

/// Elements of a wrong range that its error shows.
const SHOWN_ELEMENTS: usize = 100;

impl InsertLine {
    /// The line number, whether it came as a number or as text.
    ///
    /// # Errors
    ///
    /// The text is no integer; then the text of the error (file-editor 3.1).
    pub fn number(&self) -> Result<i64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(text) => {
                integer(text).ok_or_else(|| format!("Invalid insert_line value: '{text}'. Expected an integer."))
            }
        }
    }
}

impl ReadAction {
    /// The lines of `view_range`, if there is one.
    ///
    /// # Errors
    ///
    /// It has something else than integers; then as Python prints it, bounded.
    pub fn view_lines(&self) -> Option<Result<Vec<i64>, String>> {
        let range = self.view_range.as_ref()?;
        // A boolean is an integer to the reference.
        let number = |value: &Value| value.as_i64().or_else(|| value.as_bool().map(i64::from));
        let lines: Option<Vec<i64>> = range.iter().map(number).collect();
        Some(lines.ok_or_else(|| {
            let shown: Vec<Value> = range.iter().take(SHOWN_ELEMENTS).cloned().collect();
            python::repr_bounded(&Value::Array(shown), FREE_TEXT_LIMIT)
        }))
    }
}

/// An integer as Python's `int` reads it: blanks around it, a sign, and underscores between digits.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let groups_are_numbers =
        digits.split('_').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()));
    groups_are_numbers.then(|| text.replace('_', "").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_number_in_text_is_read_as_python_reads_it() {
        for (text, expected) in [
            ("185", Some(185)),
            (" +5\n", Some(5)),
            ("-1", Some(-1)),
            ("1_000", Some(1000)),
            ("007", Some(7)),
            ("", None),
            ("x", None),
            ("1__0", None),
            ("_1", None),
            ("1.0", None),
            ("+ 1", None),
            ("--1", None),
        ] {
            assert_eq!(integer(text), expected, "{text:?}");
        }
    }
}

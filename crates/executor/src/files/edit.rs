//! The `edit` action, and `read` through the editor (`file-editor` §3).

use gloveport_editor::{EditReport, EditRequest, Editor, EditorError, ViewRange};
use gloveport_protocol::{
    EditAction, EditObservation, FileEditSource, FileReadSource, InsertLine, Observation, ReadAction, ReadObservation,
    python,
};
use serde_json::Value;

use super::Files;

/// Elements of a wrong range that its error shows.
const SHOWN_ELEMENTS: usize = 100;

impl Files {
    /// Performs one command of the editor.
    pub(crate) fn edit(&self, action: &EditAction) -> Observation {
        let result = insert_line(action.insert_line.as_ref()).map(|insert_line| {
            self.editor.run(&EditRequest {
                command: &action.command,
                path: &action.path,
                file_text: action.file_text.as_deref(),
                view_range: None,
                old_str: action.old_str.as_deref(),
                new_str: action.new_str.as_deref(),
                insert_line,
            })
        });
        let (content, diff) = match result {
            Ok(Ok(report)) => (report.output, report.diff),
            Ok(Err(error)) => (failed(&error), String::new()),
            Err(text) => (format!("ERROR:\n{text}"), String::new()),
        };
        Observation::Edit(EditObservation {
            path: action.path.clone(),
            old_content: action.old_str.clone(),
            new_content: action.new_str.clone(),
            impl_source: FileEditSource::OhAci,
            diff: Some(diff),
            ..EditObservation::new(content)
        })
    }
}

/// The observation of a `read` through the editor.
pub(super) fn view(editor: &Editor, action: &ReadAction) -> Observation {
    let content = match show(editor, action) {
        Ok(report) => report.output,
        Err(error) => failed(&error),
    };
    let impl_source = FileReadSource::OhAci;
    Observation::Read(ReadObservation { impl_source, ..ReadObservation::new(content, action.path.clone()) })
}

fn show(editor: &Editor, action: &ReadAction) -> Result<EditReport, EditorError> {
    let request = |view_range| EditRequest {
        command: "view",
        path: &action.path,
        file_text: None,
        view_range,
        old_str: None,
        new_str: None,
        insert_line: None,
    };
    let Some(range) = &action.view_range else { return editor.run(&request(None)) };
    // A boolean is an integer to the reference.
    let integer = |value: &Value| value.as_i64().or_else(|| value.as_bool().map(i64::from));
    let lines: Option<Vec<i64>> = range.iter().map(integer).collect();
    if let Some(lines) = lines {
        return editor.run(&request(Some(ViewRange::Lines(&lines))));
    }
    let shown: Vec<Value> = range.iter().take(SHOWN_ELEMENTS).cloned().collect();
    let text = python::repr_bounded(&Value::Array(shown), gloveport_protocol::error::FREE_TEXT_LIMIT);
    editor.run(&request(Some(ViewRange::Malformed(&text))))
}

fn failed(error: &EditorError) -> String {
    format!("ERROR:\n{error}")
}

/// The line number of an `insert`, whether it came as a number or as text.
fn insert_line(given: Option<&InsertLine>) -> Result<Option<i64>, String> {
    match given {
        None => Ok(None),
        Some(InsertLine::Number(number)) => Ok(Some(*number)),
        Some(InsertLine::Text(text)) => match python_integer(text) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("Invalid insert_line value: '{text}'. Expected an integer.")),
        },
    }
}

/// An integer as Python's `int` reads it: blanks around it, a sign, and underscores between digits.
fn python_integer(text: &str) -> Option<i64> {
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
            assert_eq!(python_integer(text), expected, "{text:?}");
        }
    }
}

//! The `edit` action, and `read` through the editor (`file-editor` §3).

use gloveport_editor::{EditRequest, Editor, EditorError, ViewRange, documents::Interrupt};
use gloveport_protocol::{
    EditAction, EditObservation, FileEditSource, FileReadSource, InsertLine, Observation, ReadAction, ReadObservation,
};

/// What comes of an `edit` action whose file is found at `path`.
pub fn edit(editor: &Editor, action: &EditAction, path: &str, interrupt: &Interrupt) -> EditObservation {
    let result = action.insert_line.as_ref().map(InsertLine::number).transpose().map(|insert_line| {
        let request = EditRequest {
            file_text: action.file_text.as_deref(),
            old_str: action.old_str.as_deref(),
            new_str: action.new_str.as_deref(),
            insert_line,
            ..EditRequest::new(&action.command, path)
        };
        editor.run_until(&request, interrupt)
    });
    let (content, diff) = match result {
        Ok(Ok(report)) => (report.output, report.diff),
        Ok(Err(error)) => (failed(&error), String::new()),
        Err(text) => (format!("ERROR:\n{text}"), String::new()),
    };
    EditObservation {
        path: action.path.clone(),
        old_content: action.old_str.clone(),
        new_content: action.new_str.clone(),
        impl_source: FileEditSource::OhAci,
        diff: Some(diff),
        ..EditObservation::new(content)
    }
}

/// What comes of a `read` through the editor, of the file at `path`.
pub fn view(editor: &Editor, action: &ReadAction, path: &str, interrupt: &Interrupt) -> Observation {
    let run = |view_range| editor.run_until(&EditRequest { view_range, ..EditRequest::new("view", path) }, interrupt);
    let result = match action.view_lines() {
        None => run(None),
        Some(Ok(lines)) => run(Some(ViewRange::Lines(&lines))),
        Some(Err(text)) => run(Some(ViewRange::Malformed(&text))),
    };
    let content = result.map_or_else(|error| failed(&error), |report| report.output);
    let impl_source = FileReadSource::OhAci;
    Observation::Read(ReadObservation { impl_source, ..ReadObservation::new(content, action.path.clone()) })
}

fn failed(error: &EditorError) -> String {
    format!("ERROR:\n{error}")
}

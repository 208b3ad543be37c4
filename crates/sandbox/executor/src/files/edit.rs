//! The `edit` action, and `read` through the editor (`file-editor` §3).

use gloveport_editor::{EditReport, EditRequest, Editor, EditorError, ViewRange, documents::Interrupt};
use gloveport_protocol::{
    EditAction, EditObservation, FileEditSource, FileReadSource, InsertLine, Observation, ReadAction, ReadObservation,
};

use super::Files;

impl Files {
    /// Performs one command of the editor.
    pub(crate) fn edit(&self, action: &EditAction, interrupt: &Interrupt) -> Observation {
        let result = action.insert_line.as_ref().map(InsertLine::number).transpose().map(|insert_line| {
            let request = EditRequest {
                command: &action.command,
                path: &action.path,
                file_text: action.file_text.as_deref(),
                view_range: None,
                old_str: action.old_str.as_deref(),
                new_str: action.new_str.as_deref(),
                insert_line,
            };
            self.editor.run_until(&request, interrupt)
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
pub(super) fn view(editor: &Editor, action: &ReadAction, interrupt: &Interrupt) -> Observation {
    let content = match show(editor, action, interrupt) {
        Ok(report) => report.output,
        Err(error) => failed(&error),
    };
    let impl_source = FileReadSource::OhAci;
    Observation::Read(ReadObservation { impl_source, ..ReadObservation::new(content, action.path.clone()) })
}

fn show(editor: &Editor, action: &ReadAction, interrupt: &Interrupt) -> Result<EditReport, EditorError> {
    let request = |view_range| EditRequest {
        command: "view",
        path: &action.path,
        file_text: None,
        view_range,
        old_str: None,
        new_str: None,
        insert_line: None,
    };
    match action.view_lines() {
        None => editor.run_until(&request(None), interrupt),
        Some(Ok(lines)) => editor.run_until(&request(Some(ViewRange::Lines(&lines))), interrupt),
        Some(Err(text)) => editor.run_until(&request(Some(ViewRange::Malformed(&text))), interrupt),
    }
}

fn failed(error: &EditorError) -> String {
    format!("ERROR:\n{error}")
}

//! A request and its answer, one JSON object a line each.

use gloveport_editor::{EditReport, EditRequest, EditorError, ViewRange, normalised};
use serde::{Deserialize, Serialize};

/// What a kernel asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    /// Comes back in the answer.
    pub(crate) id: u64,
    command: String,
    pub(crate) path: String,
    file_text: Option<String>,
    view_range: Option<Range>,
    old_str: Option<String>,
    new_str: Option<String>,
    insert_line: Option<i64>,
    /// Whether the edit is judged.
    pub(crate) enable_linting: bool,
}

/// Numbers, or what was given instead of them as it is printed.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Range {
    Lines(Vec<i64>),
    Malformed(String),
}

impl Request {
    /// The request for the editor.
    pub(crate) fn edit(&self) -> EditRequest<'_> {
        EditRequest {
            command: &self.command,
            path: &self.path,
            file_text: self.file_text.as_deref(),
            view_range: self.view_range.as_ref().map(|range| match range {
                Range::Lines(lines) => ViewRange::Lines(lines),
                Range::Malformed(text) => ViewRange::Malformed(text),
            }),
            old_str: self.old_str.as_deref(),
            new_str: self.new_str.as_deref(),
            insert_line: self.insert_line,
        }
    }

    /// The answer to it.
    pub(crate) fn answer<'a>(&self, result: &'a Result<EditReport, EditorError>) -> Answer<'a> {
        match result {
            Ok(report) => Answer::Done {
                id: self.id,
                output: &report.output,
                path: normalised(&self.path),
                prev_exist: self.command != "create",
                old_content: report.old_text.as_ref().map(|text| text.as_str()),
                new_content: report.new_text.as_ref().map(|text| text.as_str()),
            },
            Err(error) => Answer::Failed { id: self.id, error: error.to_string() },
        }
    }
}

/// What a kernel gets.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer<'a> {
    /// The request was done.
    Done {
        /// The request's.
        id: u64,
        /// The text for the caller.
        output: &'a str,
        /// The path as the editor names it.
        path: String,
        /// Whether there was a file before.
        prev_exist: bool,
        /// Its text before.
        old_content: Option<&'a str>,
        /// Its text behind the edit.
        new_content: Option<&'a str>,
    },
    /// The editor refuses the request.
    Failed {
        /// The request's.
        id: u64,
        /// Why.
        error: String,
    },
    /// There was no request, or nothing answers it. The connection ends.
    Refused {
        /// Why.
        refused: String,
    },
}

impl Answer<'_> {
    /// The end of a connection.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { refused: reason.into() }
    }

    /// The line that is sent.
    pub(crate) fn line(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

//! The result of a call: a text for models, the same as data for programs, and pictures.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::computer::Failure;

/// What a tool answers.
pub(crate) struct Answer {
    /// For models.
    pub(crate) text: String,
    /// Behind the text: pictures and links.
    pub(crate) more: Vec<ContentBlock>,
    /// For programs, in the tool's output schema.
    pub(crate) data: Value,
}

impl Answer {
    pub(crate) const fn new(text: String, data: Value) -> Self {
        Self { text, more: Vec::new(), data }
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut content = vec![ContentBlock::text(self.text)];
        content.extend(self.more);
        let mut result = CallToolResult::success(content);
        result.structured_content = Some(self.data);
        result
    }
}

/// A failure is a result, which the model reads and can act upon.
pub(crate) fn failed(failure: Failure) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(failure.text)])
}

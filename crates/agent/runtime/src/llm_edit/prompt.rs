//! What models are told.

use serde_json::{Value, json};

/// The tool by which a model corrects a file.
pub(super) const TOOL: &str = "edit_file";

/// Asks for a draft to be merged into lines.
pub(super) fn merge(original: &str, draft: &str) -> Value {
    let text = format!(
        "Merge a draft of a change into the lines of a file that it is for.\n\
         The lines stand between <original_code> and </original_code>, the draft between <update_snippet> and \
         </update_snippet>. The draft may leave out lines that stay as they are, and say so in a comment such as \
         \"... existing code ...\".\n\
         Answer with all of the lines as they are after the change, between <updated_code> and </updated_code>. Start \
         right behind the opening tag and end right before the closing one, keep the indentation, and put nothing else \
         between the tags: no explanation, no Markdown fence, no line numbers.\n\n\
         <original_code>{original}</original_code>\n\n\
         <update_snippet>{draft}</update_snippet>"
    );
    json!([{"role": "user", "content": text}])
}

/// Asks for what a linter finds wrong to be corrected.
pub(super) fn correct(path: &str, text: &str, problems: &str) -> Value {
    let system = format!(
        "You correct source files. You get a file and what a linter finds wrong with it. Correct all of that and change \
         nothing else: what the code does, and how it is written, stays.\n\
         Call `{TOOL}` once, for the lines that have to change. If you cannot call tools, answer with the whole text of \
         the corrected file between <updated_code> and </updated_code>, and nothing else between these tags."
    );
    let user = format!("File: {path}\n\n<problems>\n{problems}\n</problems>\n\n<file>{text}</file>");
    json!([{"role": "system", "content": system}, {"role": "user", "content": user}])
}

/// The description of the tool.
pub(super) fn tools() -> Value {
    json!([{
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "Replaces lines of the file by a draft. Lines of the draft that say that existing code stays \
                            are filled in.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The path of the file, as given."},
                    "content": {"type": "string", "description": "The draft of the lines as they are to be."},
                    "start": {
                        "type": "integer",
                        "description": "The first line to replace, counted from 1; -1 appends at the end. Default 1.",
                    },
                    "end": {
                        "type": "integer",
                        "description": "The last line to replace; -1 is the last line of the file. Default -1.",
                    },
                },
                "required": ["path", "content"],
            },
        },
    }])
}

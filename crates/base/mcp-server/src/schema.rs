//! The shapes of what tools are given and answer (JSON Schema).

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::tool::Tool;

/// Longest time that a call waits for a command, in seconds.
pub(crate) const LONGEST_WAIT: f64 = 600.0;
/// How long each call waits unless it says.
pub(crate) const SHELL_WAIT: f64 = 30.0;
pub(crate) const OUTPUT_WAIT: f64 = 2.0;
pub(crate) const INPUT_WAIT: f64 = 10.0;
/// The time limit of a cell unless its call has one, in seconds.
pub(crate) const CELL_LIMIT: f64 = 120.0;
/// Matches that a search answers with unless it says, and at most.
pub(crate) const FOUND: usize = 100;
pub(crate) const MOST_FOUND: usize = 1000;

/// The arguments of a tool.
pub(crate) fn input(tool: Tool) -> JsonObject {
    let id = json!({"type": "string", "description": "The command's id."});
    let path = json!({"type": "string", "description": "A relative path starts in the workspace."});
    let wait = |seconds: f64, text: &str| json!({"type": "number", "minimum": 0, "maximum": LONGEST_WAIT, "default": seconds, "description": text});
    let (required, properties) = match tool {
        Tool::Shell => (
            json!(["command"]),
            json!({
                "command": {"type": "string", "description": "One or more lines for bash."},
                "wait": wait(SHELL_WAIT, "Seconds to wait for its end."),
                "background": {
                    "type": "boolean",
                    "default": false,
                    "description": "Run it in a shell of its own and return at once."
                },
            }),
        ),
        Tool::ShellOutput => (
            json!(["id"]),
            json!({
                "id": id,
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Byte to start from; without it, where the last answer ended."
                },
                "wait": wait(OUTPUT_WAIT, "Seconds to wait for its end."),
            }),
        ),
        Tool::ShellInput => (
            json!(["id", "input"]),
            json!({
                "id": id,
                "input": {"type": "string", "description": "A line, sent with Enter; or the name of a key."},
                "wait": wait(INPUT_WAIT, "Seconds to wait until it ends or waits for input again."),
            }),
        ),
        Tool::ShellStop => (json!(["id"]), json!({"id": id})),
        Tool::Python => (
            json!(["code"]),
            json!({
                "code": {"type": "string", "description": "Python code; lines with % or ! as in IPython."},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "default": CELL_LIMIT,
                    "description": "Seconds after which it is interrupted."
                },
            }),
        ),
        Tool::ReadFile => (
            json!(["path"]),
            json!({
                "path": path,
                "start_line": {"type": "integer", "minimum": 1, "default": 1, "description": "First line to read."},
                "lines": {"type": "integer", "minimum": 1, "description": "How many lines; without it, as many as fit."},
            }),
        ),
        Tool::WriteFile => (
            json!(["path", "content"]),
            json!({
                "path": path,
                "content": {"type": "string", "description": "The whole file."},
                "encoding": {
                    "enum": ["text", "base64"],
                    "default": "text",
                    "description": "`base64` for a file that is not text."
                },
            }),
        ),
        Tool::EditFile => (
            json!(["path", "old_text", "new_text"]),
            json!({
                "path": path,
                "old_text": {"type": "string", "description": "What is replaced, with its indentation."},
                "new_text": {"type": "string", "description": "What takes its place."},
            }),
        ),
        Tool::SearchFiles => (
            json!([]),
            json!({
                "pattern": {"type": "string", "description": "Regular expression for lines."},
                "glob": {"type": "string", "description": "Names to look at, such as *.py or src/**/*.rs."},
                "path": {"type": "string", "description": "File or directory to search; without it, the workspace."},
                "ignore_case": {"type": "boolean", "default": false, "description": "Upper and lower case are the same."},
                "context": {"type": "integer", "minimum": 0, "maximum": 20, "default": 0,
                    "description": "Lines to show around each match."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND,
                    "description": "Most matches."},
            }),
        ),
        Tool::BrowserOpen => (
            json!(["url"]),
            json!({"url": {"type": "string", "description": "An address, or `back`, `forward` or `reload`."}}),
        ),
        Tool::BrowserAct => (json!(["action"]), browser_act()),
        Tool::BrowserRead => (json!([]), browser_read()),
    };
    object(&json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}))
}

/// The arguments of `browser_act`.
fn browser_act() -> Value {
    json!({
        "action": {
            "enum": ["click", "fill", "press", "select", "hover", "scroll", "type"],
            "description": "`fill` replaces what a field contains, `select` chooses in a list, `press` presses keys, `type` \
                types where the focus is."
        },
        "target": {
            "type": "string",
            "description": "The element: its id in the tree, such as 12, or a text that it shows. Not for scroll and type."
        },
        "text": {"type": "string", "description": "For fill and type."},
        "keys": {"type": "string", "description": "For press: such as Enter or Control+a."},
        "options": {
            "type": "array",
            "items": {"type": "string"},
            "description": "For select: values or labels."
        },
        "x": {"type": "number", "description": "For scroll: pixels to the right."},
        "y": {"type": "number", "description": "For scroll: pixels down; 600 unless it or x is given."},
        "submit": {"type": "boolean", "default": false, "description": "For fill: press Enter afterwards."},
    })
}

/// The arguments of `browser_read`.
fn browser_read() -> Value {
    json!({
        "format": {
            "enum": ["tree", "markdown", "screenshot"],
            "default": "tree",
            "description": "What to look at."
        },
        "offset": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Character of the tree or the text to start from."
        },
    })
}

/// The structured content of a tool's result. A call that failed has none.
pub(crate) fn output(tool: Tool) -> JsonObject {
    let (required, properties) = match tool {
        Tool::Shell | Tool::ShellOutput | Tool::ShellInput | Tool::ShellStop => (
            json!(["id", "state", "exit_code", "output", "next_offset"]),
            json!({
                "id": {"type": "string"},
                "state": {"enum": ["running", "waiting_for_input", "ended"]},
                "exit_code": {"type": ["integer", "null"], "description": "Null while it runs, or if it has none."},
                "output": {"type": "string", "description": "What a terminal shows of it."},
                "next_offset": {"type": "integer", "description": "Where shell_output goes on."},
                "omitted_bytes": {"type": "integer", "description": "Bytes between the beginning and the end of `output`."},
                "directory": {"type": "string", "description": "Where the shell is afterwards."},
                "note": {"type": "string", "description": "What is to be known beside that."},
            }),
        ),
        Tool::Python => (
            json!(["state", "output", "images"]),
            json!({
                "state": {"enum": ["completed", "raised", "timed_out", "died"]},
                "output": {"type": "string"},
                "images": {"type": "integer", "description": "Pictures in the content of the result."},
                "variables_lost": {"type": "boolean", "description": "The session had ended; a new one began."},
            }),
        ),
        Tool::ReadFile => (
            json!(["path", "kind"]),
            json!({
                "path": {"type": "string"},
                "kind": {"enum": ["text", "image", "binary", "directory"]},
                "content": {"type": "string", "description": "The text, or the entries of a directory, one a line."},
                "start_line": {"type": "integer"},
                "lines": {"type": "integer", "description": "Lines in `content`."},
                "next_line": {"type": "integer", "description": "The file goes on with this line."},
                "size": {"type": "integer", "description": "Bytes of the whole file."},
            }),
        ),
        Tool::WriteFile => {
            (json!(["path", "bytes"]), json!({"path": {"type": "string"}, "bytes": {"type": "integer"}}))
        }
        Tool::EditFile => (
            json!(["path"]),
            json!({"path": {"type": "string"}, "diff": {"type": "string", "description": "Unified diff of the change."}}),
        ),
        Tool::SearchFiles => (
            json!(["truncated"]),
            json!({
                "matches": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["path", "line", "text", "is_match"],
                        "properties": {
                            "path": {"type": "string"},
                            "line": {"type": "integer"},
                            "text": {"type": "string"},
                            "is_match": {"type": "boolean", "description": "False for a line around a match."},
                        },
                    },
                },
                "files": {"type": "array", "items": {"type": "string"}},
                "truncated": {"type": "boolean", "description": "There are more."},
            }),
        ),
        Tool::BrowserOpen | Tool::BrowserAct | Tool::BrowserRead => (json!(["url", "title", "pages"]), page()),
    };
    object(&json!({"type": "object", "properties": properties, "required": required}))
}

/// A web page as data.
fn page() -> Value {
    json!({
        "url": {"type": "string"},
        "title": {"type": "string"},
        "pages": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["url", "title", "active"],
                "properties": {
                    "url": {"type": "string"},
                    "title": {"type": "string"},
                    "active": {"type": "boolean"},
                },
            },
        },
        "tree": {"type": "string"},
        "markdown": {"type": "string"},
        "next_offset": {"type": "integer", "description": "Where browser_read goes on."},
        "focused": {"type": "string", "description": "Id of the element that has the focus."},
        "error": {"type": "string", "description": "Why what was asked for failed."},
        "downloads": {"type": "array", "items": {"type": "string"}},
        "dialogs": {"type": "array", "items": {"type": "string"}},
    })
}

fn object(schema: &Value) -> JsonObject {
    schema.as_object().cloned().unwrap_or_default()
}

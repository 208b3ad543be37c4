//! The native file routes.

use serde_json::{Map, Value, json};

use super::{Paths, answer, object, operation, parameter, reference, refusal, typed};

/// The paths of the native file API.
pub(super) fn paths() -> Paths {
    let mut paths = reading();
    paths.extend(changing());
    paths
}

/// The two ways to give a path, and more.
fn with_path(mut operation: Value, required: bool, more: Vec<Value>) -> Value {
    let none = if required { "One of the two is needed." } else { "Without one: where the tools start." };
    let mut parameters = vec![
        parameter("query", "path", json!({"type": "string"}), none),
        parameter("query", "path_base64", json!({"type": "string"}), "The bytes of a path that is not UTF-8."),
    ];
    parameters.extend(more);
    operation["parameters"] = Value::Array(parameters);
    operation["responses"]["400"] = refusal("A wrong query.");
    operation["responses"]["403"] = refusal("The system does not permit it (or the session key is wrong).");
    operation["responses"]["404"] = refusal("Nothing is there.");
    operation
}

fn flag(name: &str, default: bool, description: &str) -> Value {
    parameter("query", name, json!({"type": "boolean", "default": default}), description)
}

fn number(name: &str, description: &str) -> Value {
    parameter("query", name, json!({"type": "integer", "minimum": 0}), description)
}

fn reading() -> Paths {
    let stat = operation(
        "What is at a path",
        "A link itself, or what it leads to with follow=true.",
        None,
        json!({"200": answer("The entry.", reference("FileEntry"))}),
    );
    let list = operation(
        "What is below a directory",
        "Sorted bytewise. Links are not followed.",
        None,
        json!({"200": answer("The entries.", reference("FileList")), "409": refusal("No directory.")}),
    );
    let bytes = json!({"type": "string", "format": "binary"});
    let content = operation(
        "Content of a file",
        "The whole, or the part that the header Range names. An answer that can not be completed breaks off.",
        None,
        json!({
            "200": typed("The bytes; ETag, Accept-Ranges and X-File-Mode (octal) describe them.", "application/octet-stream", bytes.clone()),
            "206": typed("The part that was asked for.", "application/octet-stream", bytes),
            "304": json!({"description": "The client has this version (If-None-Match)."}),
            "409": refusal("A directory, FIFO, socket or device."),
            "416": refusal("The range is behind the end."),
        }),
    );
    let watch = operation(
        "Watch files",
        "Streams events: `ready` {path, recursive} when everything is watched, `change` (FileEvent), and `end` when what \
         is watched is gone.",
        None,
        json!({"200": typed("The events.", "text/event-stream", json!({"type": "string"}))}),
    );
    let header = |name: &str, description: &str| parameter("header", name, json!({"type": "string"}), description);
    let ranges = vec![
        header("Range", "One range of bytes."),
        header("If-Range", "The ETag that the range belongs to; another version is answered whole."),
        header("If-None-Match", "The ETag that the client has."),
    ];
    let depth = parameter("query", "depth", json!({"type": "integer", "default": 1}), "Levels.");
    let limit = number("limit", "Most entries; 10,000 if absent, 100,000 at most.");
    let hidden = flag("hidden", true, "Names that begin with a dot, too.");
    super::paths([
        ("/v1/files/stat", json!({"get": with_path(stat, true, vec![flag("follow", false, "Follow a link.")])})),
        ("/v1/files/list", json!({"get": with_path(list, false, vec![depth, hidden, limit])})),
        ("/v1/files/content", json!({"get": with_path(content, true, ranges), "put": store()})),
        (
            "/v1/files/watch",
            json!({"get": with_path(watch, false, vec![flag("recursive", false, "All below it, too.")])}),
        ),
    ])
}

fn store() -> Value {
    let mut store = operation(
        "Store a file",
        "Whole or not at all: readers see the old content or the new one. The answer has the new ETag.",
        None,
        json!({
            "200": answer("It is stored.", reference("Stored")),
            "408": refusal("The body stood still."),
            "409": refusal("What is there does not allow it."),
            "412": refusal("The file has another ETag than If-Match says."),
            "413": refusal("The body is too large."),
            "503": refusal("Too many files are transferred."),
            "507": refusal("The disk is full."),
        }),
    );
    store["requestBody"] = json!({
        "required": true,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    });
    let octal = json!({"type": "string", "pattern": "^[0-7]{1,4}$"});
    let more = vec![
        parameter("query", "mode", octal, "Permission bits in octal; an existing file keeps its own without them."),
        flag("parents", false, "Make missing parent directories."),
        flag("exclusive", false, "Fail if something is there."),
        parameter("header", "If-Match", json!({"type": "string"}), "The ETag that the file must still have."),
    ];
    with_path(store, true, more)
}

fn changing() -> Paths {
    let posted = |summary: &str, description: &str, request: &str, result: Value| {
        let answers = json!({
            "200": result,
            "400": refusal("A wrong field, path or pattern."),
            "404": refusal("Nothing is there."),
            "409": refusal("What is there does not allow it."),
        });
        json!({"post": operation(summary, description, Some(reference(request)), answers)})
    };
    let done = || answer("Done.", json!({"type": "object"}));
    super::paths([
        (
            "/v1/files/glob",
            posted(
                "Find names",
                "Ends after a minute with what it has.",
                "GlobRequest",
                answer("The entries.", reference("FileList")),
            ),
        ),
        (
            "/v1/files/grep",
            posted(
                "Find lines",
                "Binary files are passed over. Ends after a minute with what it has.",
                "GrepRequest",
                answer("The lines.", reference("GrepMatches")),
            ),
        ),
        ("/v1/files/move", posted("Move a file or directory", "Within one file system.", "MoveRequest", done())),
        ("/v1/files/remove", posted("Remove a file or directory", "Links are not followed.", "RemoveRequest", done())),
        ("/v1/files/mkdir", posted("Make a directory", "", "MkdirRequest", done())),
    ])
}

/// The schemas of the native file API.
pub(super) fn schemas() -> Map<String, Value> {
    let (string, integer, flag) = (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "boolean"}));
    let list = |schema: Value| json!({"type": "array", "items": schema});
    let strict = |mut schema: Value| {
        schema["additionalProperties"] = json!(false);
        schema
    };
    let optional_text = json!({"type": ["string", "null"]});
    let limit = json!({"type": ["integer", "null"], "minimum": 0});
    let kind = json!({"enum": ["file", "directory", "symlink", "other"]});
    let entry = object([
        ("path", string.clone()),
        ("path_base64?", string.clone()),
        ("kind", kind.clone()),
        ("size", integer.clone()),
        ("mode", integer.clone()),
        ("uid", integer.clone()),
        ("gid", integer.clone()),
        ("modified", json!({"type": "number", "description": "Seconds since 1970."})),
        ("target?", string.clone()),
        ("target_kind?", kind),
    ]);
    let line =
        object([("path", string.clone()), ("line", integer), ("text", string.clone()), ("is_match", flag.clone())]);
    let change = json!({"enum": ["created", "modified", "attributes", "removed", "overflow"]});
    super::paths([
        ("FileEntry", entry),
        ("FileList", object([("entries", list(reference("FileEntry"))), ("truncated", flag.clone())])),
        (
            "GlobRequest",
            strict(object([
                ("path?", optional_text.clone()),
                ("patterns", list(string.clone())),
                ("hidden?", flag.clone()),
                ("respect_ignore?", flag.clone()),
                ("limit?", limit.clone()),
            ])),
        ),
        (
            "GrepRequest",
            strict(object([
                ("path?", optional_text),
                ("pattern", string.clone()),
                ("literal?", flag.clone()),
                ("ignore_case?", flag.clone()),
                ("globs?", list(string.clone())),
                ("hidden?", flag.clone()),
                ("respect_ignore?", flag.clone()),
                ("context?", json!({"type": "integer", "minimum": 0})),
                ("limit?", limit),
            ])),
        ),
        (
            "GrepMatches",
            object([("lines", list(line)), ("truncated", flag.clone()), ("skipped", list(string.clone()))]),
        ),
        (
            "MoveRequest",
            strict(object([
                ("from", string.clone()),
                ("to", string.clone()),
                ("overwrite?", flag.clone()),
                ("parents?", flag.clone()),
            ])),
        ),
        (
            "RemoveRequest",
            strict(object([("path", string.clone()), ("recursive?", flag.clone()), ("missing_ok?", flag.clone())])),
        ),
        (
            "MkdirRequest",
            strict(object([
                ("path", string.clone()),
                ("parents?", flag.clone()),
                ("mode?", json!({"type": ["integer", "null"]})),
            ])),
        ),
        (
            "Stored",
            object([
                ("path", string.clone()),
                ("files", json!({"type": "integer"})),
                ("bytes", json!({"type": "integer"})),
            ]),
        ),
        ("FileEvent", object([("change", change), ("path", string), ("is_directory", flag)])),
    ])
}

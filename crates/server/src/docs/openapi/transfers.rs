//! Routes that carry files.

use serde_json::{Value, json};

use super::{Paths, answer, failure, operation, parameter, reference, refusal, typed};

/// All of them.
pub(super) fn paths() -> Paths {
    super::paths([
        ("/upload_file", json!({"post": upload()})),
        ("/download_files", json!({"get": download()})),
        ("/v1/files/archive", json!({"get": pack(), "put": unpack()})),
    ])
}

fn text() -> Value {
    json!({"type": "string"})
}

fn bytes() -> Value {
    json!({"type": "string", "format": "binary"})
}

/// A request whose body is not JSON.
fn with_body(mut operation: Value, content_type: &str, schema: Value) -> Value {
    operation["requestBody"] = json!({"required": true, "content": {content_type: {"schema": schema}}});
    operation
}

fn upload() -> Value {
    let mut upload = operation(
        "Upload a file",
        "The destination is a directory, and is made if it is missing. A file whose name ends with .zip is unpacked \
         there. A file that exists is replaced when everything has arrived, and keeps mode and owner.",
        None,
        json!({
            "200": answer("It is stored.", reference("Stored")),
            "400": failure("The body is no whole form."),
            "408": failure("The body stood still."),
            "413": failure("The body is too large."),
            "422": answer("The request does not have the form.", reference("ValidationError")),
            "500": failure("The destination is relative, the file is no zip file, or it can not be stored."),
            "503": failure("Too many files are transferred."),
        }),
    );
    upload["parameters"] = json!([
        parameter("query", "destination", json!({"type": "string", "default": "/"}), "Absolute path of a directory."),
        parameter("query", "recursive", json!({"type": "boolean", "default": false}), "The file must be a zip file."),
    ]);
    let form = json!({"type": "object", "required": ["file"], "properties": {"file": bytes()}});
    with_body(upload, "multipart/form-data", form)
}

fn download() -> Value {
    let mut download = operation(
        "Download a directory",
        "A zip of all regular files below it, links to files included. Anything but a directory gives a zip without \
         files. A failure on the way breaks the connection.",
        None,
        json!({
            "200": typed("The zip file.", "application/zip", bytes()),
            "422": answer("The path is missing.", reference("ValidationError")),
            "500": failure("The path is relative, there is nothing, or something can not be read."),
            "503": failure("Too many files are transferred."),
        }),
    );
    let mut path = parameter("query", "path", text(), "Absolute path.");
    path["required"] = json!(true);
    download["parameters"] = json!([path]);
    download
}

fn path_parameters() -> Vec<Value> {
    vec![
        parameter("query", "path", text(), "Relative ones begin where the tools start."),
        parameter("query", "path_base64", text(), "Instead of path: the bytes of one that is not UTF-8."),
    ]
}

fn pack() -> Value {
    let mut pack = operation(
        "Read a tree as a tar stream",
        "A directory becomes ./ and what is in it; anything else becomes one entry. Modes, owners, times and links are \
         kept; FIFOs, devices and sockets are left out. A failure on the way breaks the connection.",
        None,
        json!({
            "200": typed("The stream.", "application/x-tar", bytes()),
            "400": refusal("A wrong path or query."),
            "403": refusal("Something may not be read, or the session key is wrong."),
            "404": refusal("There is nothing."),
            "503": refusal("Too many files are transferred."),
        }),
    );
    pack["parameters"] = path_parameters().into();
    pack
}

fn unpack() -> Value {
    let mut unpack = operation(
        "Write a tree from a tar stream",
        "Unpacks into a directory. Nothing is written outside of it, whatever names and links the stream has; devices, \
         FIFOs and sparse files are refused. What was unpacked before a failure stays, but no half of a file.",
        None,
        json!({
            "200": answer("It is stored.", reference("Stored")),
            "400": refusal("A wrong path or query, a damaged stream, or an entry that is refused."),
            "404": refusal("The directory is missing."),
            "408": refusal("The body stood still."),
            "409": refusal("Something is in the way."),
            "413": refusal("The body or what it becomes is too large."),
            "503": refusal("Too many files are transferred."),
            "507": refusal("There is no room."),
        }),
    );
    let mut parameters = path_parameters();
    let parents = json!({"type": "boolean", "default": false});
    parameters.push(parameter("query", "parents", parents, "Makes the directory and its parents."));
    unpack["parameters"] = parameters.into();
    with_body(unpack, "application/x-tar", bytes())
}

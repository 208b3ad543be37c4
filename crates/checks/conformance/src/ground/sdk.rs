//! The SDK 1.x: each command is a process of its own.

use serde_json::json;

use crate::server::{Part, Request};

/// The request that runs a command.
pub(super) fn command(text: &str) -> Request {
    Request::json("/api/bash/execute_bash_command", &json!({"command": text, "timeout": 30}))
}

/// The request that stores a file.
pub(crate) fn upload(path: &str, content: &[u8]) -> Request {
    Request::form("/api/file/upload", &[Part::file("file", "upload", content)]).query("path", path)
}

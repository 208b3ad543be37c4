//! SWE-ReX: commands beside the sessions, and sessions that have to be closed.

use serde_json::json;

use crate::server::{Part, Request};

/// The request that runs a command beside the sessions.
pub(super) fn command(text: &str) -> Request {
    Request::json("/execute", &json!({"command": text, "shell": true, "timeout": 30}))
}

/// The request that closes a session.
pub(super) fn close(session: &str) -> Request {
    Request::json("/close_session", &json!({"session": session, "session_type": "bash"}))
}

/// The request that stores a file, or unpacks an archive.
pub(crate) fn upload(path: &str, content: &[u8], is_archive: bool) -> Request {
    let unzip = if is_archive { "true" } else { "false" };
    let parts = [Part::file("file", "upload", content), Part::field("target_path", path), Part::field("unzip", unzip)];
    Request::form("/upload", &parts)
}

//! What a server keeps for clients of SWE-ReX, and how it knows them.

use std::sync::Arc;

use axum::response::Response;
use gloveport_executor::Executor;
use gloveport_swerex::SweRex;
use http::{HeaderMap, StatusCode};

use super::answers::Answers;
use crate::answer;

/// The header of the key.
pub(crate) const KEY_HEADER: &str = "x-api-key";

/// Whether a path belongs to this interface.
pub(crate) fn owns(path: &str) -> bool {
    matches!(
        path,
        "/is_alive"
            | "/create_session"
            | "/run_in_session"
            | "/close_session"
            | "/execute"
            | "/read_file"
            | "/write_file"
            | "/upload"
            | "/close"
    )
}

/// The answer to somebody without the key.
pub(crate) fn stranger(headers: &HeaderMap) -> Response {
    match headers.get(KEY_HEADER) {
        None => answer::detail(StatusCode::FORBIDDEN, "Not authenticated"),
        Some(_) => answer::detail(StatusCode::UNAUTHORIZED, "Invalid API Key"),
    }
}

/// The sessions, and the answers that were given.
#[derive(Debug)]
pub(crate) struct Face {
    pub(super) swerex: Arc<SweRex>,
    pub(super) answers: Arc<Answers>,
}

impl Face {
    pub(crate) fn new(executor: &Arc<Executor>) -> Self {
        Self { swerex: Arc::new(SweRex::new(Arc::clone(executor))), answers: Arc::default() }
    }

    /// Ends all sessions.
    pub(crate) async fn close(&self) {
        self.swerex.close().await;
    }
}

//! Errors of the native API: `{"error": {"code", "message", "hint"}}`.

use std::io::{self, ErrorKind};

use axum::{
    extract::rejection::{PathRejection, QueryRejection},
    response::{IntoResponse, Response},
};
use gloveport_executor::{
    ExecError, KernelsError, PauseError, ProcessesError, TerminalsError, browser::BrowserError, files::FileError,
    kernels::KernelError,
};
use gloveport_terminal::TerminalError;
use http::StatusCode;
use rustix::io::Errno;

use super::{
    files::{ArchiveRefusal, PathError},
    follower::FollowError,
};
use crate::{
    answer,
    body::{BodyError, JsonError, closing},
    transfer::Busy,
};

/// Why a request of the native API is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error(transparent)]
    Terminal(#[from] TerminalsError),
    #[error(transparent)]
    Process(#[from] ProcessesError),
    #[error("a terminal is attached to over a WebSocket, and this request does not ask for one: {0}")]
    NoWebSocket(String),
    #[error("columns and rows must both be given, or neither, and be at least 1")]
    Size,
    #[error("offset {asked} is behind the end of the output of terminal `{id}`, which is {end}")]
    TerminalAhead { id: String, asked: u64, end: u64 },
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("the body is not what it must be: {0}")]
    Json(serde_json::Error),
    #[error("the query is not what it must be: {}", .0.body_text())]
    Query(#[from] QueryRejection),
    #[error("the path is not what it must be: {}", .0.body_text())]
    Path(#[from] PathRejection),
    #[error("Last-Event-ID belongs to a command, and the request has no id")]
    NoId,
    #[error("Last-Event-ID must be an offset, and is {0:?}")]
    LastEventId(String),
    #[error("the output of exec `{id}` at offset {asked} is no longer kept; the oldest kept offset is {oldest}")]
    Gone { id: String, asked: u64, oldest: u64 },
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error(transparent)]
    Target(#[from] PathError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the range {asked:?} is behind the end of the file, which has {size} bytes")]
    Range { asked: String, size: u64 },
    #[error("the file has the tag {found}, and not {expected}")]
    Changed { expected: String, found: String },
    #[error(transparent)]
    Archive(#[from] ArchiveRefusal),
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Kernel(#[from] KernelsError),
    #[error("this sandbox was started without the plugin `jupyter`")]
    NoNotebook,
    #[error(transparent)]
    Browser(#[from] BrowserError),
    #[error("this sandbox was started without a browser")]
    NoBrowser,
    #[error("this sandbox has no plugin `{0}`")]
    UnknownPlugin(String),
    #[error("the plugin `{0}` has no service")]
    NoService(String),
    #[error("timeout must be a positive number of seconds, and is {0}")]
    CellTimeout(f64),
    #[error("the sandbox cannot be paused: {0}")]
    Pause(#[from] PauseError),
    #[error("the work did not end: {0}")]
    Defect(tokio::task::JoinError),
}

impl From<JsonError> for ApiError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Body(error) => Self::Body(error),
            JsonError::Json(error) => Self::Json(error),
            JsonError::Defect(error) => Self::Defect(error),
        }
    }
}

impl ApiError {
    fn status_code_hint(&self) -> (StatusCode, &'static str, &'static str) {
        const FIELDS: &str = "see /docs for the fields";
        match self {
            Self::Exec(error) => exec(error),
            Self::Terminal(error) => terminal(error),
            Self::Process(error) => process(error),
            Self::NoWebSocket(_) => {
                (StatusCode::UPGRADE_REQUIRED, "not_a_websocket", "connect with a WebSocket client (RFC 6455)")
            }
            Self::Size => {
                (StatusCode::BAD_REQUEST, "invalid_size", "give the size of your terminal, such as 80 and 24")
            }
            Self::TerminalAhead { .. } => {
                (StatusCode::RANGE_NOT_SATISFIABLE, "offset_ahead", "GET /v1/terminals/{id} tells the end")
            }
            Self::Body(error) => match error {
                BodyError::TooLarge { .. } | BodyError::TooManyValues => {
                    (error.status(), "body_too_large", "put large data into files")
                }
                BodyError::TooSlow { .. } | BodyError::Stalled { .. } => {
                    (error.status(), "body_too_slow", "send the body without pauses")
                }
                BodyError::Broken(_) => (error.status(), "body_broken", "send the request again"),
            },
            Self::Json(_) => (StatusCode::BAD_REQUEST, "invalid_request", FIELDS),
            Self::Query(_) => (StatusCode::BAD_REQUEST, "invalid_query", FIELDS),
            Self::Path(_) => (StatusCode::BAD_REQUEST, "invalid_path", FIELDS),
            Self::Target(_) => (StatusCode::BAD_REQUEST, "invalid_path", "give one path, as text or as base64"),
            Self::File(error) => file(error),
            Self::Range { .. } => {
                (StatusCode::RANGE_NOT_SATISFIABLE, "range_behind_end", "GET /v1/files/stat tells the size")
            }
            Self::Changed { .. } => (
                StatusCode::PRECONDITION_FAILED,
                "changed",
                "read the file again, and send the change of what it is now",
            ),
            Self::Archive(error) => error.status_code_hint(),
            Self::Busy(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "too_many_transfers", "wait for one to end, and try again")
            }
            Self::Kernel(error) => kernel(error),
            Self::NoNotebook => (StatusCode::NOT_FOUND, "no_notebook", "start the server with the plugin jupyter"),
            Self::Browser(error) => browser(error),
            Self::NoBrowser => (
                StatusCode::NOT_FOUND,
                "no_browser",
                "start the server with its plugins, and without GLOVEPORT_BROWSER=off",
            ),
            Self::UnknownPlugin(_) | Self::NoService(_) => {
                (StatusCode::NOT_FOUND, "unknown_plugin", "GET /v1/plugins lists those that there are")
            }
            Self::CellTimeout(_) => (StatusCode::BAD_REQUEST, "invalid_timeout", "leave it out for no limit"),
            Self::Pause(PauseError::NoGuard) => {
                (StatusCode::NOT_IMPLEMENTED, "not_supported", "start the server with the gloveport program")
            }
            Self::Pause(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "pause_failed", "nothing is stopped; end what runs, and try again")
            }
            Self::Defect(_) => (StatusCode::INTERNAL_SERVER_ERROR, "work_failed", "look into the log of the server"),
            Self::LastEventId(_) | Self::NoId => (
                StatusCode::BAD_REQUEST,
                "invalid_last_event_id",
                "repeat the request with its id, and send the id of the last event that was received",
            ),
            Self::Follow(FollowError::Ahead { .. }) => {
                (StatusCode::RANGE_NOT_SATISFIABLE, "offset_ahead", "continue at the offset of X-Output-Next")
            }
            Self::Gone { .. } => (StatusCode::GONE, "output_gone", "continue at the oldest kept offset"),
            Self::Follow(FollowError::Unreadable { .. }) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "output_unreadable", "look into the log of the server")
            }
        }
    }
}

fn exec(error: &ExecError) -> (StatusCode, &'static str, &'static str) {
    match error {
        ExecError::Conflict(_) => (StatusCode::CONFLICT, "id_conflict", "choose another id"),
        ExecError::Unknown(_) => (StatusCode::NOT_FOUND, "unknown_exec", "GET /v1/exec lists those that are known"),
        ExecError::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request", "see /docs for the fields"),
        ExecError::TooMany => {
            (StatusCode::TOO_MANY_REQUESTS, "too_many_execs", "wait for one to end, or interrupt one")
        }
        ExecError::Directory(_) => (StatusCode::BAD_REQUEST, "no_such_directory", "make the directory first"),
        ExecError::NotRunning(_) => (StatusCode::CONFLICT, "not_running", "GET /v1/exec/{id} tells how it stands"),
        ExecError::Output(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "output_unreadable", "look into the log of the server")
        }
        ExecError::Terminal(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "shell_failed", "`gloveport doctor` tells what is missing")
        }
    }
}

fn kernel(error: &KernelsError) -> (StatusCode, &'static str, &'static str) {
    match error {
        KernelsError::Name(_) => (StatusCode::BAD_REQUEST, "invalid_name", "choose another name"),
        KernelsError::TooMany => {
            (StatusCode::TOO_MANY_REQUESTS, "too_many_kernels", "DELETE /v1/kernels/{name} ends one")
        }
        KernelsError::Unknown(_) => (StatusCode::NOT_FOUND, "unknown_kernel", "GET /v1/kernels lists them"),
        KernelsError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "ending", "start another sandbox"),
        // Nothing is wrong with the kernel: the limit is too short for what it still has to do.
        KernelsError::Kernel(KernelError::NotReady(_)) => {
            (StatusCode::CONFLICT, "kernel_not_ready", "the cell has not run; give it more time")
        }
        KernelsError::Plugin(_) | KernelsError::Kernel(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "kernel_failed", "GET /ready tells how the plugin jupyter stands")
        }
    }
}

fn browser(error: &BrowserError) -> (StatusCode, &'static str, &'static str) {
    match error {
        BrowserError::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request", "see /docs for the fields"),
        BrowserError::NotStarted { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "browser_not_started", "GET /v1/browser tells the reason and the remedy")
        }
        BrowserError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "ending", "start another sandbox"),
        BrowserError::Died(_) => (StatusCode::BAD_GATEWAY, "browser_died", "try again: it is started again"),
        BrowserError::TooLong => (StatusCode::GATEWAY_TIMEOUT, "too_long", "open another address, or try again"),
        BrowserError::Page(_) => {
            (StatusCode::CONFLICT, "page_failed", "GET /v1/browser/page tells what the page is like")
        }
    }
}

fn terminal(error: &TerminalsError) -> (StatusCode, &'static str, &'static str) {
    match error {
        TerminalsError::Conflict(_) => (StatusCode::CONFLICT, "id_conflict", "choose another id"),
        TerminalsError::Unknown(_) => {
            (StatusCode::NOT_FOUND, "unknown_terminal", "GET /v1/terminals lists those that are known")
        }
        TerminalsError::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request", "see /docs for the fields"),
        TerminalsError::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too_many_terminals", "remove one with DELETE"),
        TerminalsError::TooManyAttached => (StatusCode::TOO_MANY_REQUESTS, "too_many_clients", "detach one of them"),
        TerminalsError::NotReplaced => (StatusCode::CONFLICT, "still_attached", "try again"),
        TerminalsError::Directory(_) => (StatusCode::BAD_REQUEST, "no_such_directory", "make the directory first"),
        TerminalsError::NoProgram(_) => {
            (StatusCode::BAD_REQUEST, "no_such_program", "install it in the sandbox, or give its absolute path")
        }
        TerminalsError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "ending", "start another sandbox"),
        TerminalsError::Terminal(TerminalError::Closed) => {
            (StatusCode::CONFLICT, "not_running", "GET /v1/terminals/{id} tells how it stands")
        }
        TerminalsError::Terminal(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "terminal_failed", "`gloveport doctor` tells what is missing")
        }
    }
}

fn process(error: &ProcessesError) -> (StatusCode, &'static str, &'static str) {
    match error {
        ProcessesError::Unknown(_) => {
            (StatusCode::NOT_FOUND, "unknown_process", "GET /v1/processes lists those that are known")
        }
        ProcessesError::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request", "see /docs for the fields"),
        ProcessesError::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too_many_processes", "remove one with DELETE"),
        ProcessesError::TooManyFollow => (StatusCode::TOO_MANY_REQUESTS, "too_many_clients", "let one of them go"),
        ProcessesError::NotRunning(_) => {
            (StatusCode::CONFLICT, "not_running", "GET /v1/processes/{id} tells how it stands")
        }
        ProcessesError::NoInput(_) => (StatusCode::CONFLICT, "no_input", "start it with stdin"),
        ProcessesError::Stalled { .. } => (StatusCode::CONFLICT, "input_stalled", "send the rest when it reads again"),
        ProcessesError::Directory(_) => (StatusCode::BAD_REQUEST, "no_such_directory", "make the directory first"),
        ProcessesError::NoProgram(_) => {
            (StatusCode::BAD_REQUEST, "no_such_program", "install it in the sandbox, or give its absolute path")
        }
        ProcessesError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "ending", "start another sandbox"),
        ProcessesError::Start(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "process_failed", "`gloveport doctor` tells what is missing")
        }
    }
}

fn file(error: &FileError) -> (StatusCode, &'static str, &'static str) {
    match error {
        FileError::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request", "see /docs for the fields"),
        FileError::Busy(_) => {
            (StatusCode::TOO_MANY_REQUESTS, "too_many_searches", "wait for one to end, and try again")
        }
        FileError::Exists(_) => (StatusCode::CONFLICT, "exists", "choose another path, or set overwrite"),
        FileError::NotEmpty(_) => (StatusCode::CONFLICT, "not_empty", "set recursive to remove everything in it"),
        FileError::Os { source, .. } => system(source),
    }
}

/// What the system does not let happen to a path. That is a fault of the server only when the server lacks something;
/// otherwise it is what is at the path, or the path.
pub(super) fn system(error: &io::Error) -> (StatusCode, &'static str, &'static str) {
    match error.kind() {
        ErrorKind::NotFound => (StatusCode::NOT_FOUND, "not_found", "GET /v1/files/list tells what is there"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            (StatusCode::FORBIDDEN, "permission_denied", "the server's user may not do this")
        }
        ErrorKind::IsADirectory => (StatusCode::CONFLICT, "is_a_directory", "this needs a file"),
        ErrorKind::NotADirectory => (StatusCode::CONFLICT, "not_a_directory", "this needs a directory"),
        ErrorKind::AlreadyExists => (StatusCode::CONFLICT, "exists", "choose another path"),
        ErrorKind::InvalidFilename => (StatusCode::BAD_REQUEST, "name_too_long", "choose a shorter path"),
        ErrorKind::InvalidInput => {
            (StatusCode::CONFLICT, "not_a_regular_file", "FIFOs, sockets and devices have no content to transfer")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            (StatusCode::INSUFFICIENT_STORAGE, "storage_full", "make room, and send the request again")
        }
        // Of open files and of memory there is none left for a while.
        _ if [Errno::NFILE, Errno::MFILE, Errno::NOMEM]
            .map(|lack| Some(lack.raw_os_error()))
            .contains(&error.raw_os_error()) =>
        {
            (StatusCode::INTERNAL_SERVER_ERROR, "server_exhausted", "end what is not needed, and try again")
        }
        // A defect: it does not come from the system.
        _ if error.raw_os_error().is_none() => {
            (StatusCode::INTERNAL_SERVER_ERROR, "file_failed", "look into the log of the server")
        }
        _ => (StatusCode::CONFLICT, "file_refused", "look at the path in the sandbox"),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code, hint) = self.status_code_hint();
        let response = answer::native(status, code, self.to_string(), hint);
        // A part of the request may still be on its way.
        if matches!(self, Self::Body(_) | Self::Archive(_) | Self::File(_) | Self::Changed { .. } | Self::Busy(_)) {
            closing(response)
        } else {
            response
        }
    }
}

//! `/api/file` (`agent-server-workspace-api` §5). Nothing is contained here: whoever has the key may do what commands may.

mod archive;
mod listing;
mod upload;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    body::Body,
    extract::{Path as Segment, Request, State},
    response::Response,
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{CONTENT_DISPOSITION, CONTENT_RANGE},
};
use serde_json::json;
use tokio::task::spawn_blocking;

use super::answers::{Parameters, failed, invalid, missing, os_text, wrong};
use crate::{
    answer,
    app::App,
    route::Route,
    v1::{self, FileAnswerError},
};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/file/upload", upload),
        Route::post("/api/file/upload/{*path}", old_upload),
        Route::get("/api/file/download", download),
        Route::get("/api/file/download/{*path}", old_download),
        Route::get("/api/file/download-trajectory/{conversation}", trajectory),
        Route::post("/api/file/create_directory", create_directory),
        Route::get("/api/file/home", listing::home),
        Route::get("/api/file/search_subdirs", listing::search_subdirs),
        Route::get("/api/file/archive", archive::get),
    ]
}

/// The path that a query names, or what to answer.
fn path_of(uri: &Uri) -> Result<PathBuf, Box<Response>> {
    let parameters = Parameters::of(uri);
    let text = parameters.get("path").ok_or_else(|| Box::new(invalid(&[missing("query", "path")])))?;
    absolute(text)
}

fn absolute(text: &str) -> Result<PathBuf, Box<Response>> {
    if text.starts_with('/') && !text.contains('\0') {
        // A slash at the end says nothing.
        return Ok(Path::new("/").join(text.trim_matches('/')));
    }
    Err(Box::new(answer::detail(StatusCode::BAD_REQUEST, "Path must be absolute")))
}

async fn upload(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap, body: Body) -> Response {
    match path_of(&uri) {
        Ok(path) => upload::store(&app, path, &headers, body).await,
        Err(refusal) => crate::body::closing(*refusal),
    }
}

async fn old_upload(
    State(app): State<Arc<App>>,
    Segment(path): Segment<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    // Clients until 1.13 send it so, with the slash that it begins with.
    match absolute(&path) {
        Ok(path) => upload::store(&app, path, &headers, body).await,
        Err(refusal) => crate::body::closing(*refusal),
    }
}

async fn download(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Response {
    match path_of(&uri) {
        Ok(path) => give(&app, path, &headers).await,
        Err(refusal) => *refusal,
    }
}

async fn old_download(State(app): State<Arc<App>>, Segment(path): Segment<String>, headers: HeaderMap) -> Response {
    match absolute(&path) {
        Ok(path) => give(&app, path, &headers).await,
        Err(refusal) => *refusal,
    }
}

async fn give(app: &App, path: PathBuf, headers: &HeaderMap) -> Response {
    app.action_arrived();
    let looked = path.clone();
    match spawn_blocking(move || fs::metadata(looked)).await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(metadata) if !metadata.is_file() => return answer::detail(StatusCode::BAD_REQUEST, "Path is not a file"),
        Ok(_) => {}
        Err(error) if is_absent(&error) => return answer::detail(StatusCode::NOT_FOUND, "File not found"),
        Err(error) => return not_given(&os_text(&error, &path)),
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match v1::file_answer(path, headers).await {
        Ok(mut response) => {
            response.headers_mut().insert(CONTENT_DISPOSITION, answer::disposition(&name, ""));
            response
        }
        Err(FileAnswerError::Range { size, .. }) => {
            let mut response = answer::with_type(StatusCode::RANGE_NOT_SATISFIABLE, "text/plain; charset=utf-8", "");
            if let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}")) {
                response.headers_mut().insert(CONTENT_RANGE, range);
            }
            response
        }
        Err(error) => not_given(&error.to_string()),
    }
}

fn not_given(text: &str) -> Response {
    failed(StatusCode::INTERNAL_SERVER_ERROR, &format!("Failed to download file: {text}"))
}

/// Whether there is nothing at a path.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

async fn create_directory(State(app): State<Arc<App>>, uri: Uri) -> Response {
    app.action_arrived();
    let path = match path_of(&uri) {
        Ok(path) => path,
        Err(refusal) => return *refusal,
    };
    let wanted = path.clone();
    let made = spawn_blocking(move || fs::create_dir_all(&wanted));
    match made.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(()) => answer::json(StatusCode::OK, &json!({"success": true})),
        Err(error) => match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                answer::detail(StatusCode::BAD_REQUEST, "Path exists and is not a directory")
            }
            io::ErrorKind::PermissionDenied => {
                answer::detail(StatusCode::FORBIDDEN, format!("Permission denied: {}", os_text(&error, &path)))
            }
            _ => {
                let text = format!("Failed to create directory: {}", os_text(&error, &path));
                failed(StatusCode::INTERNAL_SERVER_ERROR, &text)
            }
        },
    }
}

/// Trajectories are those of an agent.
async fn trajectory(State(app): State<Arc<App>>, Segment(id): Segment<String>, request: Request) -> Response {
    if let Some(hosted) = app.hosted_agent() {
        app.action_arrived();
        return hosted.pass(request).await;
    }
    if uuid::Uuid::parse_str(&id).is_err() {
        let what = "Input should be a valid UUID";
        return invalid(&[wrong("uuid_parsing", "path", "conversation_id", what, &id.into())]);
    }
    answer::detail(StatusCode::NOT_FOUND, "Conversation not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_absolute() {
        assert_eq!(absolute("/workspace/x/").unwrap(), Path::new("/workspace/x"));
        assert!(
            absolute("workspace/x").is_err()
                && absolute("x").is_err()
                && absolute("/x\0").is_err()
                && absolute("/x/../y").is_ok()
        );
    }
}

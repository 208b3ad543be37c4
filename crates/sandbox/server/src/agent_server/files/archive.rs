//! `/api/file/archive` (`agent-server-workspace-api` §5.1).

use std::{fs, path::Path, sync::Arc};

use axum::{extract::State, response::Response};
use gloveport_repository::{Archive, ArchiveError, ArchiveRequest, DEFAULT_EXCLUDES, Format, Origin, archive};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::{is_absent, path_of};
use crate::{
    agent_server::answers::{Parameters, failed, invalid, os_text, wrong},
    answer,
    app::App,
    v1,
};

/// What stays as it is in the value of a header.
const SAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub(super) async fn get(State(app): State<Arc<App>>, uri: Uri) -> Response {
    app.action_arrived();
    let request = match request_of(&uri) {
        Ok(request) => request,
        Err(refusal) => return *refusal,
    };
    if let Some(refusal) = no_directory(&request.path).await {
        return refusal;
    }
    // Whoever goes away gives it up, and the next one gets the turn.
    let turn = match app.transfers.turn().await {
        Ok(turn) => turn,
        Err(busy) => return failed(StatusCode::SERVICE_UNAVAILABLE, &busy.to_string()),
    };
    let stop = CancellationToken::new();
    let _gone = stop.clone().drop_guard();
    let format = request.format;
    let made = archive(&app.executor.surroundings(), request, &stop).await;
    drop(turn);
    match made {
        Ok(made) => answer_with(made, format),
        Err(error @ (ArchiveError::Git(_) | ArchiveError::Files { .. })) => {
            failed(StatusCode::INTERNAL_SERVER_ERROR, &format!("Failed to archive: {error}"))
        }
        Err(error) => answer::detail(StatusCode::BAD_REQUEST, error.to_string()),
    }
}

fn request_of(uri: &Uri) -> Result<ArchiveRequest, Box<Response>> {
    let parameters = Parameters::of(uri);
    let mut mistakes = Vec::new();
    let format = match parameters.get("format") {
        None | Some("git-delta") => Format::GitDelta,
        Some("tar.gz") => Format::TarGz,
        Some(other) => {
            let mut mistake =
                wrong("literal_error", "query", "format", "Input should be 'git-delta' or 'tar.gz'", &other.into());
            mistake["ctx"] = json!({"expected": "'git-delta' or 'tar.gz'"});
            mistakes.push(mistake);
            Format::GitDelta
        }
    };
    let with_defaults = parameters.boolean("use_default_excludes", true).unwrap_or_else(|mistake| {
        mistakes.push(mistake);
        true
    });
    if !mistakes.is_empty() {
        return Err(Box::new(invalid(&mistakes)));
    }
    let path = path_of(uri)?;
    let defaults = DEFAULT_EXCLUDES.iter().filter(|_| with_defaults).map(|pattern| (*pattern).to_owned());
    Ok(ArchiveRequest {
        path,
        format,
        base: parameters.get("base_ref").map(str::to_owned),
        excludes: defaults.chain(parameters.all("exclude").map(str::to_owned)).collect(),
    })
}

/// What to answer if there is no such directory.
async fn no_directory(path: &Path) -> Option<Response> {
    let looked = path.to_owned();
    let found = spawn_blocking(move || fs::metadata(looked)).await.ok()?;
    match found {
        Ok(metadata) if metadata.is_dir() => None,
        Ok(_) => Some(answer::detail(StatusCode::BAD_REQUEST, "Path is not a directory")),
        Err(error) if is_absent(&error) => Some(answer::detail(StatusCode::NOT_FOUND, "Directory not found")),
        Err(error) => {
            let text = format!("Failed to archive: {}", os_text(&error, path));
            Some(failed(StatusCode::INTERNAL_SERVER_ERROR, &text))
        }
    }
}

fn answer_with(made: Archive, format: Format) -> Response {
    let (kind, extension) = match format {
        Format::GitDelta => ("text/x-patch; charset=utf-8", "patch"),
        Format::TarGz => ("application/gzip", "tar.gz"),
    };
    let Archive { name, origin, base, content, size } = made;
    let mut response = Response::new(v1::file_pieces(content, size));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(CONTENT_DISPOSITION, answer::disposition(&format!("{name}.{extension}"), ""));
    if let Some(Origin { remote, branch, head, root }) = origin {
        tell(headers, "x-archive-repo-remote", remote.as_deref());
        tell(headers, "x-archive-branch", Some(&branch));
        tell(headers, "x-archive-head-commit", head.as_deref());
        tell(headers, "x-archive-repo-root", Some(&root));
    }
    if let Some((commit, name)) = base {
        tell(headers, "x-archive-base-commit", Some(&commit));
        tell(headers, "x-archive-base-ref", Some(&name));
    }
    response
}

/// Adds a header with a value that may be any text.
fn tell(headers: &mut HeaderMap, name: &'static str, value: Option<&str>) {
    let Some(value) = value else { return };
    if let Ok(value) = HeaderValue::try_from(utf8_percent_encode(value, SAFE).to_string()) {
        headers.insert(name, value);
    }
}

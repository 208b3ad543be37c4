//! Storing a file.

use std::{
    fs,
    io::{BufWriter, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
};

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use futures_util::{StreamExt as _, pin_mut};
use gloveport_executor::files::FileError;
use gloveport_protocol::files::{FileMode, Stored};
use gloveport_sys::replace::{NewFile, Replacement};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MATCH},
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::tag;
use crate::{
    answer::{self, ErrorEnvelope},
    app::App,
    docs::Binary,
    transfer::{self, Source},
    v1::{error::ApiError, files::path},
};

/// Bytes that are written at once.
const PIECE: usize = 256 * 1024;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::v1::files) struct PutQuery {
    /// The path; a relative one begins where the tools start. This or path_base64 is needed.
    #[param(min_length = 1)]
    path: Option<String>,
    /// Instead of path: the bytes of one that is not UTF-8, in base64.
    #[param(min_length = 1)]
    path_base64: Option<String>,
    /// Permission bits in octal; an existing file keeps its own without them.
    #[param(value_type = Option<String>, pattern = "^[0-7]{1,4}$", example = "0644")]
    mode: Option<FileMode>,
    /// Makes missing parent directories.
    #[serde(default)]
    #[param(default = false)]
    parents: bool,
    /// It is an error if something is there.
    #[serde(default)]
    #[param(default = false)]
    exclusive: bool,
}

/// How the file is stored.
struct Terms {
    mode: Option<u32>,
    parents: bool,
    exclusive: bool,
    if_match: Option<String>,
}

/// Stores the body as a file, whole or not at all.
#[utoipa::path(
    put,
    path = "/v1/files/content",
    tag = "files",
    operation_id = "write_file",
    summary = "Write a file",
    description = "Whole or not at all: readers see the old content or the new one. The answer has the new ETag.",
    params(
        PutQuery,
        ("If-Match" = Option<String>, Header, description = "The ETag that the file must still have."),
    ),
    request_body(content = Binary, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "It is stored.", body = Stored),
        (status = 412, description = "The file has another ETag than If-Match says.", body = ErrorEnvelope),
    ),
)]
pub(in crate::v1::files) async fn put(
    State(app): State<Arc<App>>,
    query: Result<Query<PutQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let directory = app.executor.working_directory();
    let path = path::resolve(directory, query.path.as_deref(), query.path_base64.as_deref())?;
    let terms = Terms {
        mode: query.mode.map(FileMode::bits),
        parents: query.parents,
        exclusive: query.exclusive,
        if_match: headers.get(IF_MATCH).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
    };
    let turn = app.transfers.turn().await?;
    let pieces = transfer::pieces(body, &app.options.limits)?;
    let (feeder, source) = transfer::pipe();
    let target = path.clone();
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        store(source, &target, &terms)
    });
    pin_mut!(pieces);
    while let Some(piece) = pieces.next().await {
        // The error of the body says more than what the thread sees of it.
        if feeder.send(piece?).await.is_err() {
            break;
        }
    }
    feeder.end().await;
    let (bytes, tag) = work.await.map_err(ApiError::Defect)??;
    let stored = Stored { path: path.to_string_lossy().into_owned(), files: 1, bytes };
    let mut response = answer::json(StatusCode::OK, &stored);
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

fn store(mut source: Source, path: &Path, terms: &Terms) -> Result<(u64, String), ApiError> {
    let refused = |error| ApiError::from(FileError::Os { path: path.to_owned(), source: error });
    if terms.parents
        && let Some(parent) = path.parent()
    {
        fs::create_dir_all(parent).map_err(|source| FileError::Os { path: parent.to_owned(), source })?;
    }
    if let Some(expected) = &terms.if_match {
        let found = fs::metadata(path).ok().map(|metadata| tag(&metadata));
        if found.as_ref() != Some(expected) {
            return Err(ApiError::Changed { expected: expected.clone(), found: found.unwrap_or("nothing".to_owned()) });
        }
    }
    let new = NewFile { mode: terms.mode, owner: None };
    let mut replacement = Replacement::begin(path, new).map_err(refused)?;
    let mut out = BufWriter::with_capacity(PIECE, replacement.file());
    let mut bytes = 0;
    while let Some(piece) = source.next().map_err(refused)? {
        out.write_all(&piece).map_err(refused)?;
        bytes += piece.len() as u64;
    }
    out.flush().map_err(refused)?;
    drop(out);
    if let Some(mode) = terms.mode {
        replacement.file().set_permissions(fs::Permissions::from_mode(mode)).map_err(refused)?;
    }
    let stored = if terms.exclusive { replacement.commit_new() } else { replacement.commit() };
    drop(stored.map_err(refused)?);
    let metadata = fs::metadata(path).map_err(refused)?;
    Ok((bytes, tag(&metadata)))
}

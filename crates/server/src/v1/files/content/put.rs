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
use gloveport_protocol::files::Stored;
use gloveport_sys::replace::{NewFile, Replacement};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MATCH},
};
use serde::Deserialize;

use super::tag;
use crate::{
    answer,
    app::App,
    transfer::{self, Source},
    v1::{error::ApiError, files::path},
};

/// Bytes that are written at once.
const PIECE: usize = 256 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::v1::files) struct PutQuery {
    path: Option<String>,
    path_base64: Option<String>,
    /// Permission bits in octal; an existing file keeps its own without them.
    mode: Option<String>,
    /// Makes missing parent directories.
    #[serde(default)]
    parents: bool,
    /// It is an error if something is there.
    #[serde(default)]
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
        mode: query.mode.as_deref().map(octal).transpose()?,
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

fn octal(text: &str) -> Result<u32, ApiError> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o7777 => Ok(mode),
        _ => {
            Err(FileError::Invalid(format!("mode must be permission bits in octal, such as 0644, and is {text:?}"))
                .into())
        }
    }
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

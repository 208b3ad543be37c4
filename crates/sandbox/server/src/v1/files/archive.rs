//! `/v1/files/archive`: files and trees as tar streams.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, pin_mut};
use gloveport_archive::{ArchiveError, ArchiveLimits, Summary, tar};
use gloveport_audit::{Event, Text, record};
use gloveport_protocol::files::Stored;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::path;
use crate::{
    answer,
    app::App,
    body::BodyError,
    docs::Binary,
    transfer::{self, Feeder, Source},
    v1::error::{ApiError, system},
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PackQuery {
    /// The path; a relative one begins where the tools start. This or path_base64 is needed.
    #[param(min_length = 1)]
    path: Option<String>,
    /// Instead of path: the bytes of one that is not UTF-8, in base64.
    #[param(min_length = 1)]
    path_base64: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct UnpackQuery {
    /// The path; a relative one begins where the tools start. This or path_base64 is needed.
    #[param(min_length = 1)]
    path: Option<String>,
    /// Instead of path: the bytes of one that is not UTF-8, in base64.
    #[param(min_length = 1)]
    path_base64: Option<String>,
    /// Makes the directory and its parents.
    #[serde(default)]
    #[param(default = false)]
    parents: bool,
}

/// Why an archive was not made or not unpacked.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct ArchiveRefusal(#[from] ArchiveError);

impl ArchiveRefusal {
    pub(in crate::v1) fn status_code_hint(&self) -> (StatusCode, &'static str, &'static str) {
        let os = self.0.os_error().map(io::Error::kind);
        match (self.0.reason(), os) {
            (ArchiveError::Input(_), _) => (StatusCode::BAD_REQUEST, "broken_upload", "send the whole stream again"),
            (_, Some(io::ErrorKind::NotFound)) => {
                (StatusCode::NOT_FOUND, "no_such_path", "make the directory first, or give parents=true")
            }
            (_, Some(io::ErrorKind::PermissionDenied)) => {
                (StatusCode::FORBIDDEN, "permission_denied", "look at the mode and the owner of the path")
            }
            (_, Some(io::ErrorKind::NotADirectory)) => {
                (StatusCode::CONFLICT, "not_a_directory", "an archive is unpacked into a directory")
            }
            (_, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)) => {
                (StatusCode::INSUFFICIENT_STORAGE, "storage_full", "make room and send the stream again")
            }
            (ArchiveError::Damaged(_) | ArchiveError::NotAZip, _) => {
                (StatusCode::BAD_REQUEST, "damaged_archive", "the body must be a whole tar stream without compression")
            }
            (ArchiveError::Unsupported { .. } | ArchiveError::Escapes { .. }, _) => {
                (StatusCode::BAD_REQUEST, "refused_entry", "leave the entry out of the archive")
            }
            (ArchiveError::InTheWay { .. }, _) => {
                (StatusCode::CONFLICT, "in_the_way", "remove what is there, or unpack elsewhere")
            }
            (ArchiveError::TooManyBytes { .. } | ArchiveError::TooManyFiles { .. } | ArchiveError::Bomb { .. }, _) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "archive_too_large", "send it in several parts")
            }
            _ => match self.0.os_error() {
                Some(error) => system(error),
                None => (StatusCode::INTERNAL_SERVER_ERROR, "archive_failed", "look into the log of the server"),
            },
        }
    }
}

/// Streams a path as tar.
#[utoipa::path(
    get,
    path = "/v1/files/archive",
    tag = "files",
    operation_id = "read_archive",
    summary = "Read a tree as a tar stream",
    description = "A directory becomes ./ and what is in it; anything else becomes one entry. Modes, owners, times and links are \
        kept; FIFOs, devices and sockets are left out. A failure on the way breaks the connection.",
    params(PackQuery),
    responses((status = 200, description = "The stream.", body = Binary, content_type = "application/x-tar")),
)]
pub(super) async fn pack(
    State(app): State<Arc<App>>,
    query: Result<Query<PackQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let directory = app.executor.working_directory();
    let path = path::resolve(directory, query.path.as_deref(), query.path_base64.as_deref())?;
    let turn = app.transfers.turn().await?;
    let body = transfer::stream(turn, move |sink| tar::pack(&path, sink).map(drop)).await;
    Ok(answer::with_type(StatusCode::OK, "application/x-tar", body.map_err(ArchiveRefusal)?))
}

/// Unpacks a tar stream into a directory.
#[utoipa::path(
    put,
    path = "/v1/files/archive",
    tag = "files",
    operation_id = "write_archive",
    summary = "Write a tree from a tar stream",
    description = "Unpacks into a directory. Nothing is written outside of it, whatever names and links the stream has; devices, \
        FIFOs and sparse files are refused. What was unpacked before a failure stays, but no half of a file.",
    params(UnpackQuery),
    request_body(content = Binary, content_type = "application/x-tar"),
    responses((status = 200, description = "It is stored.", body = Stored)),
)]
pub(super) async fn unpack(
    State(app): State<Arc<App>>,
    query: Result<Query<UnpackQuery>, QueryRejection>,
    body: Body,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let directory = app.executor.working_directory();
    let path = path::resolve(directory, query.path.as_deref(), query.path_base64.as_deref())?;
    let turn = app.transfers.turn().await?;
    let pieces = transfer::pieces(body, &app.options.limits)?;
    let (feeder, source) = transfer::pipe();
    let (target, limits) = (path.clone(), app.options.limits.archive);
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        store(source, &target, query.parents, &limits)
    });
    let fed = feed(pieces, &feeder).await;
    if fed.is_ok() {
        feeder.end().await;
    } else {
        drop(feeder);
    }
    // Also after a failure, so that nothing is left of it when it is answered.
    let unpacked = work.await.map_err(ApiError::Defect)?;
    // The error of the body says more than what the thread sees of it.
    fed?;
    let summary = unpacked.map_err(ArchiveRefusal)?;
    let stored = Stored { path: path.to_string_lossy().into_owned(), files: summary.files, bytes: summary.bytes };
    Ok(answer::json(StatusCode::OK, &stored))
}

/// Hands on the body, as long as it is taken.
async fn feed(pieces: impl Stream<Item = Result<Bytes, BodyError>>, feeder: &Feeder) -> Result<(), BodyError> {
    pin_mut!(pieces);
    while let Some(piece) = pieces.next().await {
        if feeder.send(piece?).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn store(source: Source, path: &Path, parents: bool, limits: &ArchiveLimits) -> Result<Summary, ArchiveError> {
    if parents {
        fs::create_dir_all(path).map_err(|source| ArchiveError::Destination { path: PathBuf::from(path), source })?;
    }
    record(|| Event::Unpacked { path: Text::of(path) });
    tar::unpack(source, path, tar::Origin::Trusted, limits)
}

//! The content of a file, whole or in part.

pub(super) mod put;

use std::{
    fs::{File, Metadata},
    io::{Read as _, Seek as _, SeekFrom},
    ops::Range,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use axum::{
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream;
use gloveport_executor::files::FileError;
use gloveport_sys::replace;
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_NONE_MATCH, IF_RANGE,
        LAST_MODIFIED, RANGE,
    },
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::path;
use crate::{
    answer::{ErrorEnvelope, with_type},
    app::App,
    docs::Binary,
    v1::blocking::blocking,
    v1::error::ApiError,
};

pub(super) use put::put;

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;
/// Most bytes of a file without a length, as those of the kernel.
const UNKNOWN_LENGTH_LIMIT: u64 = 16 * 1024 * 1024;
/// Header with the permission bits in octal.
const FILE_MODE: HeaderName = HeaderName::from_static("x-file-mode");

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ContentQuery {
    /// The path; a relative one begins where the tools start. This or path_base64 is needed.
    #[param(min_length = 1)]
    path: Option<String>,
    /// Instead of path: the bytes of one that is not UTF-8, in base64.
    #[param(min_length = 1)]
    path_base64: Option<String>,
}

#[utoipa::path(
    get,
    path = "/v1/files/content",
    tag = "files",
    operation_id = "read_file",
    summary = "Read a file",
    description = "The whole, or the part that the header Range names. An answer that cannot be completed breaks off. ETag, \
        Accept-Ranges and X-File-Mode (octal) describe the file.",
    params(
        ContentQuery,
        ("Range" = Option<String>, Header, description = "One range of bytes."),
        ("If-Range" = Option<String>, Header, description = "The ETag that the range belongs to; another version is answered whole."),
        ("If-None-Match" = Option<String>, Header, description = "The ETag that the client has."),
    ),
    responses(
        (status = 200, description = "The bytes.", body = Binary, content_type = "application/octet-stream"),
        (status = 206, description = "The part that was asked for.", body = Binary, content_type = "application/octet-stream"),
        (status = 304, description = "The client has this version (If-None-Match)."),
        (status = 409, description = "A directory, FIFO, socket or device, or something that cannot be read.", body = ErrorEnvelope),
        (status = 416, description = "The range is behind the end.", body = ErrorEnvelope),
    ),
)]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    query: Result<Query<ContentQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let path = path::resolve(app.executor.working_directory(), query.path.as_deref(), query.path_base64.as_deref())?;
    file_answer(path, &headers).await
}

/// The answer with a file, or with the part of it that the headers of a request name.
pub(crate) async fn file_answer(path: PathBuf, headers: &HeaderMap) -> Result<Response, ApiError> {
    let asked = Asked::from(headers);
    let found = blocking(move || open(&path, &asked)).await?;
    let mut response = match found.part {
        Part::NotModified => with_type(StatusCode::NOT_MODIFIED, "application/octet-stream", Body::empty()),
        Part::Whole(bytes) => with_type(StatusCode::OK, "application/octet-stream", bytes),
        Part::Stream { status, file, range, .. } => {
            let length = range.end - range.start;
            let mut response = with_type(status, "application/octet-stream", pieces(file, length));
            let headers = response.headers_mut();
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            if status == StatusCode::PARTIAL_CONTENT {
                let text = format!("bytes {}-{}/{}", range.start, range.end - 1, found.size);
                headers.insert(CONTENT_RANGE, header(&text));
            }
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, header(&found.tag));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    if let Some(modified) = found.modified {
        headers.insert(LAST_MODIFIED, header(&httpdate::fmt_http_date(modified)));
    }
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(FILE_MODE, header(&format!("{:04o}", found.mode)));
    Ok(response)
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// What the headers of a request ask for.
#[derive(Debug)]
struct Asked {
    range: Option<String>,
    if_range: Option<String>,
    if_none_match: Option<String>,
}

impl From<&HeaderMap> for Asked {
    fn from(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self { range: text(RANGE), if_range: text(IF_RANGE), if_none_match: text(IF_NONE_MATCH) }
    }
}

struct Found {
    tag: String,
    mode: u32,
    size: u64,
    modified: Option<SystemTime>,
    part: Part,
}

enum Part {
    NotModified,
    Whole(Bytes),
    Stream { status: StatusCode, file: File, range: Range<u64> },
}

/// A tag that changes with the content.
fn tag(metadata: &Metadata) -> String {
    format!("\"{:x}-{:x}-{:x}.{:x}\"", metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

fn open(path: &Path, asked: &Asked) -> Result<Found, ApiError> {
    let refused = |source| ApiError::File(FileError::Os { path: path.to_owned(), source });
    let mut file = replace::open_to_read(path).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    let (tag, mode, size) = (tag(&metadata), metadata.mode() & 0o7777, metadata.len());
    let matches = |tags: &str| tags.split(',').any(|known| known.trim() == tag || known.trim() == "*");
    // A time that the header can not hold is left out.
    let modified = metadata.modified().ok().filter(|time| *time >= SystemTime::UNIX_EPOCH);
    let found = |part| Found { tag: tag.clone(), mode, size, modified, part };
    if asked.if_none_match.as_deref().is_some_and(matches) {
        return Ok(found(Part::NotModified));
    }
    if size == 0 {
        let mut bytes = Vec::new();
        (&file).take(UNKNOWN_LENGTH_LIMIT).read_to_end(&mut bytes).map_err(refused)?;
        return Ok(found(Part::Whole(bytes.into())));
    }
    // A part of another version than the one that the client has is no use to it.
    let wanted = asked.range.as_deref().filter(|_| asked.if_range.as_deref().is_none_or(|known| known == tag));
    let (status, range) = match wanted.map(|text| parse_range(text, size)) {
        None | Some(Wanted::Everything) => (StatusCode::OK, 0..size),
        Some(Wanted::Part(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(Wanted::Nothing) => return Err(ApiError::Range { asked: wanted.unwrap_or_default().to_owned(), size }),
    };
    file.seek(SeekFrom::Start(range.start)).map_err(refused)?;
    Ok(found(Part::Stream { status, file, range }))
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Everything,
    Part(Range<u64>),
    Nothing,
}

/// One range of bytes (RFC 9110, 14.1.2). What is not understood, and several ranges, count as the whole.
fn parse_range(text: &str, size: u64) -> Wanted {
    let Some((first, last)) = text.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Wanted::Everything;
    };
    let (first, last) = (first.trim(), last.trim());
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Ok(first), Err(_)) if last.is_empty() => first..size,
        (Err(_), Ok(count)) if first.is_empty() => size.saturating_sub(count)..size,
        _ => return Wanted::Everything,
    };
    if range.is_empty() { Wanted::Nothing } else { Wanted::Part(range) }
}

/// The next `length` bytes of a file. One that has become shorter breaks the answer off.
pub(crate) fn pieces(file: File, length: u64) -> Body {
    Body::from_stream(stream::unfold((file, length), async |(file, left)| {
        if left == 0 {
            return None;
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::with_capacity(usize::try_from(left).unwrap_or(PIECE).min(PIECE));
            let result = (&file).take(bytes.capacity() as u64).read_to_end(&mut bytes);
            (file, result.map(|_| bytes))
        });
        match read.await.map_err(std::io::Error::other) {
            Ok((file, Ok(bytes))) if !bytes.is_empty() => {
                let left = left.saturating_sub(bytes.len() as u64);
                Some((Ok(Bytes::from(bytes)), (file, left)))
            }
            Ok((file, Ok(_))) => Some((Err(std::io::Error::other("the file has become shorter")), (file, 0))),
            Ok((file, Err(error))) => Some((Err(error), (file, 0))),
            Err(error) => {
                tracing::error!(%error, "a file could not be read by a defect of the server");
                None
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_to_the_file_and_what_is_not_understood_is_the_whole() {
        for (text, expected) in [
            ("bytes=0-4", Wanted::Part(0..5)),
            ("bytes=5-", Wanted::Part(5..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-30", Wanted::Part(0..10)),
            ("bytes=9-100", Wanted::Part(9..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=10-20", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=4-2", Wanted::Everything),
            ("bytes=0-1,3-4", Wanted::Everything),
            ("lines=0-4", Wanted::Everything),
            ("bytes=x-", Wanted::Everything),
            ("", Wanted::Everything),
        ] {
            assert_eq!(parse_range(text, 10), expected, "{text}");
        }
    }
}

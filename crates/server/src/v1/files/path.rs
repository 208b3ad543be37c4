//! Paths in requests.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{app::App, v1::error::ApiError};

/// The path of a request: text, or bytes as base64 for a path that is not UTF-8. A relative one begins at the
/// directory that the tools start in.
pub(super) fn required(app: &App, text: Option<&str>, base64: Option<&str>) -> Result<PathBuf, ApiError> {
    optional(app, text, base64)?.ok_or_else(|| ApiError::FilePath("path is missing".to_owned()))
}

/// Like [`required`], but none is fine.
pub(super) fn optional(app: &App, text: Option<&str>, base64: Option<&str>) -> Result<Option<PathBuf>, ApiError> {
    let bytes = match (text, base64) {
        (Some(_), Some(_)) => {
            return Err(ApiError::FilePath("path and path_base64 are both given; give one".to_owned()));
        }
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(base64)) => STANDARD
            .decode(base64)
            .map_err(|error| ApiError::FilePath(format!("path_base64 is not base64: {error}")))?,
        (None, None) => return Ok(None),
    };
    if bytes.is_empty() {
        return Err(ApiError::FilePath("path is empty".to_owned()));
    }
    if bytes.contains(&0) {
        return Err(ApiError::FilePath("path contains a NUL byte".to_owned()));
    }
    Ok(Some(app.executor.working_directory().join(Path::new(OsStr::from_bytes(&bytes)))))
}

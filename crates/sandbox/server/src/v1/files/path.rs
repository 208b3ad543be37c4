//! Paths in requests.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt as _,
    path::{Path, PathBuf},
};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// A path that can not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("the request has no `path`")]
    Missing,
    #[error("the request has both `path` and `path_base64`")]
    Both,
    #[error("the path is empty")]
    Empty,
    #[error("the path has a NUL")]
    Nul,
    #[error("`path_base64` is not base64: {0}")]
    Base64(String),
}

/// The path of a request from its two forms: as text, or as base64 of its bytes. A relative one is relative to the
/// directory that the tools start in.
pub(super) fn resolve(
    working_directory: &Path,
    path: Option<&str>,
    path_base64: Option<&str>,
) -> Result<PathBuf, PathError> {
    let bytes = match (path, path_base64) {
        (Some(path), None) => path.as_bytes().to_owned(),
        (None, Some(encoded)) => decoded(encoded)?,
        (Some(_), Some(_)) => return Err(PathError::Both),
        (None, None) => return Err(PathError::Missing),
    };
    if bytes.is_empty() {
        return Err(PathError::Empty);
    }
    if bytes.contains(&0) {
        return Err(PathError::Nul);
    }
    Ok(working_directory.join(OsString::from_vec(bytes)))
}

/// Like [`resolve`], but without a path it is the directory that the tools start in.
pub(super) fn resolve_or_start(
    working_directory: &Path,
    path: Option<&str>,
    path_base64: Option<&str>,
) -> Result<PathBuf, PathError> {
    match resolve(working_directory, path, path_base64) {
        Err(PathError::Missing) => Ok(working_directory.to_owned()),
        other => other,
    }
}

/// Base64 in the usual alphabet or the one for URLs, with or without padding. A `+` in a query arrives as a blank.
fn decoded(text: &str) -> Result<Vec<u8>, PathError> {
    const PADDING: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let usual: String = text
        .chars()
        .map(|character| match character {
            '-' | ' ' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    GeneralPurpose::new(&STANDARD, PADDING).decode(usual).map_err(|error| PathError::Base64(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn paths_are_read_in_both_forms() {
        let start = Path::new("/start");
        for (path, encoded, expected) in [
            (Some("a/ü"), None, Ok("/start/a/ü".as_bytes())),
            (Some("/abs"), None, Ok(b"/abs".as_slice())),
            (Some("../up"), None, Ok(b"/start/../up")),
            (None, Some("Y2Fm6Q=="), Ok(b"/start/caf\xe9")),
            (None, Some("Y2Fm6Q"), Ok(b"/start/caf\xe9")),
            (None, Some("L_vv"), Ok(b"/\xfb\xef")),
            (None, Some("L/vv"), Ok(b"/\xfb\xef")),
            (None, Some("L/ v"), Ok(b"/\xff\xaf")),
            (None, None, Err(PathError::Missing)),
            (Some("a"), Some("YQ"), Err(PathError::Both)),
            (Some(""), None, Err(PathError::Empty)),
            (Some("a\0b"), None, Err(PathError::Nul)),
        ] {
            let found = resolve(start, path, encoded);
            assert_eq!(
                found.as_ref().map(|path| path.as_os_str().as_bytes()),
                expected.as_ref().copied(),
                "{path:?} {encoded:?}"
            );
        }
        assert!(matches!(resolve(start, None, Some("*")), Err(PathError::Base64(_))));
    }
}

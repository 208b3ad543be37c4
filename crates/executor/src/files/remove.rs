//! Removing files and trees.

use std::{fs, io, path::Path};

use gloveport_protocol::files::RemoveRequest;

use super::FileError;

/// Removes what is at `path`: a link itself, never what it leads to.
///
/// # Errors
///
/// Nothing is there and `missing_ok` is not set, it is a directory that is not empty and `recursive` is not set, or
/// the system refuses it; of a tree a part may be gone then.
pub fn remove(path: &Path, request: &RemoveRequest) -> Result<(), FileError> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && request.missing_ok => return Ok(()),
        other => other.map_err(FileError::os(path))?,
    };
    if path.parent().is_none() {
        return Err(FileError::Invalid("the root of the file system can not be removed".to_owned()));
    }
    let result = if !metadata.is_dir() {
        fs::remove_file(path)
    } else if request.recursive {
        fs::remove_dir_all(path)
    } else {
        fs::remove_dir(path)
    };
    match result {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Err(FileError::NotEmpty(path.to_owned())),
        other => other.map_err(FileError::os(path)),
    }
}

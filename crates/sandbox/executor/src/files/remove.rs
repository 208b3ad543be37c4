//! Removing files and trees.

use std::{io, path::Path};

use gloveport_audit::{Event, Text, record};
use gloveport_protocol::files::RemoveRequest;
use gloveport_sys::held::{self, RemoveError};

use super::FileError;

/// Removes what is at `path`: a link itself, never what it leads to.
///
/// # Errors
///
/// Nothing is there and `missing_ok` is not set, it is a directory that is not empty and `recursive` is not set, or
/// the system refuses it; of a tree a part may be gone then. The root, what ends with `.` or `..`, and mounted file
/// systems are not removed.
pub fn remove(path: &Path, request: &RemoveRequest) -> Result<(), FileError> {
    record(|| Event::Removed { path: Text::of(path) });
    let error = match held::remove(path, request.recursive) {
        Err(RemoveError::System(error)) => error,
        Err(error) => return Err(FileError::Invalid(format!("{} cannot be removed: {error}", path.display()))),
        Ok(()) => return Ok(()),
    };
    match error.kind() {
        io::ErrorKind::NotFound if request.missing_ok => Ok(()),
        io::ErrorKind::DirectoryNotEmpty => Err(FileError::NotEmpty(path.to_owned())),
        _ => Err(FileError::os(path)(error)),
    }
}

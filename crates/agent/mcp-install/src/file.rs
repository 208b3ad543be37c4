//! Files as text, read with bounds and without a wait.

use std::{
    io::{self, Read as _},
    path::Path,
};

use crate::error::InstallError;

/// The largest file, in bytes.
pub(crate) const LIMIT: u64 = 16 * 1024 * 1024;

/// The text of a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, InstallError> {
    let failed = |source| InstallError::Read { path: path.to_owned(), source };
    let file = match gloveport_platform::open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match path.symlink_metadata() {
                Ok(_) => Err(InstallError::DanglingLink(path.to_owned())),
                Err(_) => Ok(None),
            };
        }
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    check_length(path, bytes.len())?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(InstallError::NotUtf8 { path: path.to_owned(), at: error.utf8_error().valid_up_to() }),
    }
}

pub(crate) fn check_length(path: &Path, length: usize) -> Result<(), InstallError> {
    if length as u64 > LIMIT { Err(InstallError::TooLarge { path: path.to_owned(), limit: LIMIT }) } else { Ok(()) }
}

//! What is done where Linux's own is missing.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

pub(crate) fn boot_id() -> Option<String> {
    None
}

pub(crate) fn has_ipv6() -> bool {
    true
}

pub(crate) fn reserve(_file: &File, _offset: u64, _length: u64) -> io::Result<()> {
    Err(missing("room cannot be taken ahead"))
}

pub(crate) fn zero(_file: &File, _offset: u64, _length: u64) -> io::Result<()> {
    Err(missing("a part of a file cannot be emptied"))
}

#[expect(clippy::unnecessary_wraps, reason = "where it can be done, it can fail")]
pub(crate) fn sync_file_system(_directory: &Path) -> io::Result<bool> {
    Ok(false)
}

/// A new name is never given to two files, and the old one goes when the new one is there.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without second names.
        Err(_) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
    }
}

fn missing(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{what} on this system"))
}

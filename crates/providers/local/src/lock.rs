//! Files that are locked as long as somebody lives: the kernel frees the lock of whoever is killed.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// Makes a file that must not exist, and locks it. Whoever inherits the descriptor holds the lock, too.
pub(crate) fn make_locked(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // Somebody who looks at the file at this very moment holds it for a moment only.
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Takes the lock of an existing file or directory, if nobody has it.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::open(path)?;
    Ok(try_lock_file(&file)?.then_some(file))
}

/// Takes the lock of an open file, if nobody has it.
pub(crate) fn try_lock_file(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits for the lock of an existing file or directory that others hold for moments only.
pub(crate) fn wait_lock(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Whether the path still leads to this file, and not to a later one of the same name.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

//! One file that comes into being in a directory: all of it, or nothing.

use std::{fs::File, io::Write as _, os::fd::OwnedFd, sync::Arc};

use rustix::{
    fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid},
    io::Errno,
};

use crate::{
    confine::{kind, kind_name, shown},
    error::ArchiveError,
    limits::Account,
};

/// What a file that replaces another takes over from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Mode and owner.
    Attributes,
    /// Nothing.
    Nothing,
}

/// A file that is written. Dropping it removes what there is of it.
#[derive(Debug)]
pub(crate) struct NewFile {
    directory: Arc<OwnedFd>,
    /// Its name in the end.
    name: Vec<u8>,
    /// Its name in the archive, for messages.
    entry: String,
    /// Its name until then, if something is replaced.
    temporary: Option<String>,
    file: File,
    complete: bool,
}

impl NewFile {
    /// Begins a file. A regular file or a link that has its name is replaced at the end.
    pub(crate) fn begin(directory: &Arc<OwnedFd>, name: &[u8], entry: &[u8], keep: Keep) -> Result<Self, ArchiveError> {
        let failed = |error: Errno| ArchiveError::Write { entry: shown(entry), source: error.into() };
        let (directory, name, entry_name) = (Arc::clone(directory), name.to_owned(), shown(entry));
        match create(&directory, &name) {
            Ok(file) => {
                return Ok(Self { directory, name, entry: entry_name, temporary: None, file, complete: false });
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let old = rustix::fs::statat(&*directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let old_kind = FileType::from_raw_mode(old.st_mode);
        replaceable(old_kind, entry)?;
        let temporary = temporary_name().map_err(failed)?;
        let file = create(&directory, temporary.as_bytes()).map_err(failed)?;
        let new = Self { directory, name, entry: entry_name, temporary: Some(temporary), file, complete: false };
        if keep == Keep::Attributes && old_kind == FileType::RegularFile {
            // Who may not give files away gets one of its own, with the same mode.
            let _given =
                rustix::fs::fchown(&new.file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
            rustix::fs::fchmod(&new.file, Mode::from_raw_mode(old.st_mode)).map_err(failed)?;
        }
        Ok(new)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Writes a piece of it, within the bounds.
    pub(crate) fn write(&mut self, bytes: &[u8], account: &mut Account<'_>) -> Result<(), ArchiveError> {
        account.write(bytes.len())?;
        self.file.write_all(bytes).map_err(|source| ArchiveError::Write { entry: self.entry.clone(), source })
    }

    /// It is complete.
    pub(crate) fn finish(mut self) -> Result<(), ArchiveError> {
        if let Some(temporary) = &self.temporary {
            rustix::fs::renameat(&*self.directory, temporary.as_str(), &*self.directory, self.name.as_slice())
                .map_err(|error| ArchiveError::Write { entry: self.entry.clone(), source: error.into() })?;
        }
        self.complete = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.complete {
            return;
        }
        let name = self.temporary.as_ref().map_or(self.name.as_slice(), |name| name.as_bytes());
        if let Err(error) = rustix::fs::unlinkat(&*self.directory, name, AtFlags::empty()) {
            tracing::warn!(%error, name = %shown(name), "a file that is not complete can not be removed");
        }
    }
}

/// Removes what has the name of a link that is about to be made.
pub(crate) fn make_room(directory: &OwnedFd, name: &[u8], entry: &[u8]) -> Result<(), ArchiveError> {
    let failed = |error: Errno| ArchiveError::Write { entry: shown(entry), source: error.into() };
    match kind(directory, name) {
        Ok(kind) => replaceable(kind, entry)?,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    rustix::fs::unlinkat(directory, name, AtFlags::empty()).map_err(failed)
}

fn replaceable(kind: FileType, entry: &[u8]) -> Result<(), ArchiveError> {
    match kind {
        FileType::RegularFile | FileType::Symlink => Ok(()),
        other => Err(ArchiveError::InTheWay { entry: shown(entry), kind: kind_name(other) }),
    }
}

fn create(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::from_bits_truncate(0o666)).map(File::from)
}

fn temporary_name() -> rustix::io::Result<String> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!(".gloveport-{:016x}.tmp", u64::from_ne_bytes(bytes)))
}

//! One file that comes into being in a directory: all of it, or nothing.

use std::{
    fs::File,
    io::Write as _,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use gloveport_sys::beneath::{kind, kind_name};
use rustix::{
    fs::{AtFlags, FileType, Gid, Mode, OFlags, RawMode, Timespec, Timestamps, UTIME_OMIT, Uid},
    io::Errno,
};

use crate::{
    error::ArchiveError,
    limits::Account,
    names::{Given, Keep, shown, temporary_name},
};

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
        let failed = |error| failed(entry, error);
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
        let temporary = temporary_name(entry)?;
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

    /// Gives it what it gets.
    pub(crate) fn give(&self, given: &Given) -> Result<(), ArchiveError> {
        let give = give(&self.file, permissions(given.mode), given);
        give.map_err(|error| ArchiveError::Write { entry: self.entry.clone(), source: error.into() })
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

/// Whether files can be given to others.
pub(crate) fn gives_away() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a link.
pub(crate) fn symlink(
    directory: &OwnedFd,
    name: &[u8],
    target: &[u8],
    entry: &[u8],
    given: &Given,
) -> Result<(), ArchiveError> {
    let failed = |error| failed(entry, error);
    make_room(directory, name, entry)?;
    rustix::fs::symlinkat(target, directory, name).map_err(failed)?;
    if let Some((user, group)) = given.owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::chownat(directory, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
    }
    rustix::fs::utimensat(directory, name, &times(given.modified), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)
}

/// Makes a second name of a file.
pub(super) fn hard_link(
    parent: &OwnedFd,
    target: &[u8],
    directory: &OwnedFd,
    name: &[u8],
    entry: &[u8],
) -> Result<(), ArchiveError> {
    // A link to itself, or a second one to the same file, is there already.
    if kind(parent, target).is_ok() && !same(parent, target, directory, name) {
        make_room(directory, name, entry)?;
    }
    match rustix::fs::linkat(parent, target, directory, name, AtFlags::empty()) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) if same(parent, target, directory, name) => Ok(()),
        Err(error) => Err(failed(entry, error)),
    }
}

/// Gives a directory what it gets.
pub(super) fn give_directory(directory: &OwnedFd, given: &Given, closed: bool) -> rustix::io::Result<()> {
    let mut mode = permissions(given.mode);
    if closed {
        let had = Mode::from_raw_mode(rustix::fs::fstat(directory)?.st_mode);
        mode &= !(Mode::WGRP | Mode::WOTH) | had;
    }
    give(directory, mode, given)
}

/// Gives owner, mode and time, in this order, because a change of the owner clears bits of the mode.
fn give(file: impl AsFd, mode: Mode, given: &Given) -> rustix::io::Result<()> {
    if let Some((user, group)) = given.owner {
        rustix::fs::fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
    }
    rustix::fs::fchmod(&file, mode)?;
    rustix::fs::futimens(&file, &times(given.modified))
}

#[cfg(target_os = "linux")]
const fn permissions(mode: RawMode) -> Mode {
    Mode::from_raw_mode(mode)
}

/// Modes of these systems have 16 bits.
#[cfg(not(target_os = "linux"))]
fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(RawMode::try_from(mode & 0o7777).unwrap_or_default())
}

fn same(one: &OwnedFd, one_name: &[u8], other: &OwnedFd, other_name: &[u8]) -> bool {
    let number = |directory: &OwnedFd, name: &[u8]| {
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((found.st_dev, found.st_ino))
    };
    let one = number(one, one_name);
    one.is_some() && one == number(other, other_name)
}

fn times(modified: (i64, u32)) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: modified.0, tv_nsec: modified.1.into() },
    }
}

pub(super) fn failed(entry: &[u8], error: Errno) -> ArchiveError {
    ArchiveError::Write { entry: shown(entry), source: error.into() }
}

/// Removes what has the name of a link that is about to be made.
fn make_room(directory: &OwnedFd, name: &[u8], entry: &[u8]) -> Result<(), ArchiveError> {
    let failed = |error| failed(entry, error);
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

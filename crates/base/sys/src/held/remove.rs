//! Removing an entry of a directory, with everything below.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxAttributes, StatxFlags},
    io::Errno,
};

use super::{Identity, look, parent, readable};

/// How often directories may turn out not to be empty any more before somebody fills them faster than we empty them.
const MOST_REFILLS: usize = 1_000;

/// Why something was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The path is the root, or ends with `.` or `..`: it names no entry of a directory.
    #[error("it is the root, or ends with `.` or `..`; name the directory that is to be removed")]
    NoEntry,
    /// It is the root of the file system under another name.
    #[error("it is the root of the file system")]
    Root,
    /// A file system is mounted there, or below.
    #[error("a file system is mounted at {}; unmount it first", .0.display())]
    Mounted(OsString),
    /// The system refused it.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<Errno> for RemoveError {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// Removes what has this path: a link itself, never what it leads to. A directory must be empty, unless all that is in it
/// is to go with it; then a mounted file system ends the removal, and what is outside stays whatever is renamed meanwhile.
///
/// # Errors
///
/// Nothing is there, it is the root or a mounted file system, or the system refuses it; of a tree a part may be gone.
pub fn remove(path: &Path, with_contents: bool) -> Result<(), RemoveError> {
    let (directory, name) = parent(path)?.ok_or(RemoveError::NoEntry)?;
    let stat = look(&directory, &name)?.ok_or(Errno::NOENT)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(rustix::fs::unlinkat(&directory, &name, AtFlags::empty())?);
    }
    if Identity::of(&stat) == Identity::of(&rustix::fs::stat("/")?) {
        return Err(RemoveError::Root);
    }
    if with_contents {
        empty(descend(&directory, &name)?)?;
    }
    Ok(rustix::fs::unlinkat(&directory, &name, AtFlags::REMOVEDIR)?)
}

/// Opens a directory to read it, unless a file system is mounted there.
fn descend(directory: &impl AsFd, name: &OsStr) -> Result<OwnedFd, RemoveError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    if is_mounted(&found, directory)? { Err(RemoveError::Mounted(name.to_owned())) } else { Ok(found) }
}

/// Whether a file system, or a part of one, is mounted at a directory.
fn is_mounted(found: &OwnedFd, parent: &impl AsFd) -> io::Result<bool> {
    if let Ok(statx) = rustix::fs::statx(found, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
        && statx.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
    {
        return Ok(statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    Ok(Identity::at(found)?.device != Identity::at(parent)?.device)
}

/// Removes all entries of a directory. One directory is open at a time, so that no tree is too deep; the way back is
/// checked, so that one that is moved elsewhere meanwhile takes nothing with it.
fn empty(root: OwnedFd) -> Result<(), RemoveError> {
    let mut here = root;
    let mut above: Vec<(Identity, OsString)> = Vec::new();
    let mut refills = 0;
    loop {
        if let Some(name) = first_full(&here)? {
            match descend(&here, &name) {
                Ok(found) => {
                    above.push((Identity::at(&here)?, name));
                    here = found;
                    continue;
                }
                // Somebody else removed or replaced it meanwhile.
                Err(RemoveError::System(error)) if is_change(&error) => {}
                Err(error) => return Err(error),
            }
        } else {
            let Some((identity, name)) = above.pop() else { return Ok(()) };
            let up = readable_parent(&here)?;
            if Identity::at(&up)? != identity {
                let text = format!("the directory {} was moved while it was removed", name.display());
                return Err(io::Error::other(text).into());
            }
            here = up;
            match rustix::fs::unlinkat(&here, &name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        refills += 1;
        if refills > MOST_REFILLS {
            return Err(Errno::NOTEMPTY.into());
        }
    }
}

fn is_change(error: &io::Error) -> bool {
    let changes = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    error.raw_os_error().is_some_and(|code| changes.iter().any(|change| change.raw_os_error() == code))
}

fn readable_parent(here: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(here, "..", flags, Mode::empty())?)
}

/// Removes what is no directory with something in it; the first one that is, is told.
fn first_full(directory: &OwnedFd) -> Result<Option<OsString>, RemoveError> {
    for entry in Dir::new(readable(directory)?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let name = OsStr::from_bytes(name);
        if entry.file_type() != FileType::Directory {
            match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                // It is a directory by now, or the file system did not say so.
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Some(name.to_owned())),
            Err(Errno::BUSY) => return Err(RemoveError::Mounted(name.to_owned())),
            Err(Errno::NOTDIR) => return Err(Errno::PERM.into()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

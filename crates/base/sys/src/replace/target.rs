//! The file that is replaced, and its neighbours: reached by a path, or in a directory that is open.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::{READ, checked_regular, journal, open_regular};

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

#[derive(Debug)]
pub(super) enum Target {
    /// By a path without links at its end.
    At(PathBuf),
    /// By a name in a directory.
    In {
        directory: OwnedFd,
        name: OsString,
        /// For messages and the journal.
        path: PathBuf,
        link: Link,
    },
}

/// What becomes of a link that has the name of a file in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// It is an error.
    Refused,
    /// The new file takes its place.
    Replaced,
}

impl Target {
    /// The file that a path with links leads to.
    pub(super) fn behind_links(path: &Path) -> io::Result<Self> {
        let mut path = path.to_owned();
        // As many as the kernel follows.
        for _ in 0..40 {
            match fs::read_link(&path) {
                Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
                // Not a link, or nothing at all.
                Err(_) => return Ok(Self::At(path)),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::At(path) | Self::In { path, .. } => path,
        }
    }

    /// Whether a file with other names is filled, so that it changes under all of them.
    pub(super) fn fills_others(&self) -> bool {
        matches!(self, Self::At(_))
    }

    /// Whether an error at opening it says that it is a link, whose place the new file takes.
    pub(super) fn replaces_link(&self, error: &io::Error) -> bool {
        matches!(self, Self::In { link: Link::Replaced, .. })
            && error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
    }

    /// Opens it, if it is a regular file.
    pub(super) fn open(&self, access: Access) -> io::Result<File> {
        match self {
            Self::At(path) => {
                open_regular(path, OpenOptions::new().read(access == Access::Read).write(access == Access::Write))
            }
            Self::In { directory, name, .. } => {
                let mode = if access == Access::Read { OFlags::RDONLY } else { OFlags::WRONLY };
                let flags = READ | mode | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                checked_regular(rustix::fs::openat(directory, name, flags, Mode::empty()).map_err(io::Error::from))
            }
        }
    }

    pub(super) fn check_writable(&self) -> io::Result<()> {
        let (directory, name) = self.place();
        let mut flags = AtFlags::EACCESS;
        if matches!(self, Self::In { .. }) {
            flags |= AtFlags::SYMLINK_NOFOLLOW;
        }
        Ok(rustix::fs::accessat(directory, name, rustix::fs::Access::WRITE_OK, flags)?)
    }

    /// A new file in the same directory, noted in the journal before it exists; its path from there on.
    pub(super) fn create_beside(&self, replaces: bool) -> io::Result<(File, PathBuf, journal::Entry)> {
        let parent = match self.path().parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = journal::temporary_name()?;
        let temporary = std::path::absolute(parent)?.join(&name);
        let entry = journal::note(&temporary)?;
        // The old content may be secret, so its mode comes before the new content.
        let mode = if replaces { 0o600 } else { 0o666 };
        match self {
            Self::At(_) => {
                let mut options = OpenOptions::new();
                let file = options.read(true).write(true).create_new(true).mode(mode).open(&temporary)?;
                Ok((file, temporary, entry))
            }
            Self::In { directory, .. } => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = rustix::fs::openat(directory, &name, flags, Mode::from_bits_truncate(mode))?;
                Ok((file.into(), name.into(), entry))
            }
        }
    }

    /// Gives the temporary file the name.
    pub(super) fn take(&self, temporary: &Path, flags: RenameFlags) -> io::Result<()> {
        let (directory, name) = self.place();
        if flags.is_empty() {
            return Ok(rustix::fs::renameat(directory, temporary, directory, name)?);
        }
        match rustix::fs::renameat_with(directory, temporary, directory, name, flags) {
            // The file system does not know the flag; a second name fails in the same way if something is there.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(directory, temporary, directory, name, AtFlags::empty())?;
                self.remove(temporary)
            }
            other => Ok(other?),
        }
    }

    /// Removes the temporary file.
    pub(super) fn remove(&self, temporary: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.place().0, temporary, AtFlags::empty())?)
    }

    fn place(&self) -> (BorrowedFd<'_>, &Path) {
        match self {
            Self::At(path) => (CWD, path),
            Self::In { directory, name, .. } => (directory.as_fd(), Path::new(name)),
        }
    }
}

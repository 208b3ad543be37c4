//! Files that a tool may use: all, or those beneath one directory.
//!
//! A path beneath a directory ([`Bounds`]) is resolved here first, with links that lead elsewhere and come back. That
//! says where it leads; whether it is opened, only the kernel says: it opens the result from the directory's descriptor
//! on, and follows no link on the way. If a link came into the way meanwhile, all begins anew. What was opened is used by
//! its descriptor, and never by its path again.

mod bounds;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata, ReadDir},
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Dir, FileType, OFlags};

use crate::{
    beneath,
    replace::{self, NewFile, Replacement},
};

pub use bounds::{Bounds, Obstacle, Parent};

/// Where a tool reaches files.
#[derive(Debug, Clone, Default)]
pub enum Reach {
    /// Everywhere that this process may.
    #[default]
    Anywhere,
    /// Only beneath a directory. Other paths fail with `EXDEV`.
    Beneath(Arc<Bounds>),
}

impl Reach {
    /// What is at the path, behind all links.
    ///
    /// # Errors
    ///
    /// Those of the system, and `EXDEV` out of bounds.
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self {
            Self::Anywhere => fs::metadata(path),
            Self::Beneath(bounds) => File::from(bounds.open(path, OFlags::PATH)?).metadata(),
        }
    }

    /// Opens a regular file to be read. Never waits, whatever the path is.
    ///
    /// # Errors
    ///
    /// The path is a directory (`EISDIR`), something else that is no regular file (`EINVAL`), or out of bounds
    /// (`EXDEV`).
    pub fn open_to_read(&self, path: &Path) -> io::Result<File> {
        match self {
            Self::Anywhere => replace::open_to_read(path),
            Self::Beneath(bounds) => replace::checked_regular(bounds.open(path, replace::READ)),
        }
    }

    /// What the path is, if it is no regular file and no directory: for messages.
    pub fn special_kind(&self, path: &Path) -> Option<&'static str> {
        replace::special_name(self.metadata(path).ok()?.file_type())
    }

    /// The path without links; of a file that does not exist, that of its directory and its name.
    pub fn real_path(&self, path: &Path) -> PathBuf {
        if let Self::Beneath(bounds) = self {
            return bounds.resolve(path).unwrap_or_else(|_| path.to_owned());
        }
        if let Ok(real) = fs::canonicalize(path) {
            return real;
        }
        let name = path.file_name().map(OsString::from).unwrap_or_default();
        match path.parent().and_then(|parent| fs::canonicalize(parent).ok()) {
            Some(parent) => parent.join(name),
            None => path.to_owned(),
        }
    }

    /// Begins to write a file whole.
    ///
    /// # Errors
    ///
    /// Those of [`Replacement::begin`], and `EXDEV` out of bounds.
    pub fn replace(&self, path: &Path, new: NewFile) -> io::Result<Replacement> {
        match self {
            Self::Anywhere => Replacement::begin(path, new),
            Self::Beneath(bounds) => bounds.replace(path, new),
        }
    }

    /// Writes a file whole.
    ///
    /// # Errors
    ///
    /// Those of [`replace::write`], and `EXDEV` out of bounds; the file is as it was then.
    pub fn write(&self, path: &Path, content: &[u8], new: NewFile) -> io::Result<()> {
        let mut replacement = self.replace(path, new)?;
        replacement.write_all(content)?;
        replacement.commit().map(drop)
    }

    /// What is in a directory, in no order.
    ///
    /// # Errors
    ///
    /// It is no directory, may not be read, or is out of bounds (`EXDEV`).
    pub fn entries(&self, path: &Path) -> io::Result<Entries> {
        match self {
            Self::Anywhere => Ok(Entries(Source::Path(fs::read_dir(path)?))),
            Self::Beneath(bounds) => Entries::of(bounds.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?),
        }
    }
}

/// One entry of a directory.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What it is; links are not followed.
    pub kind: FileType,
}

/// The entries of a directory, one after the other.
#[derive(Debug)]
pub struct Entries(Source);

#[derive(Debug)]
enum Source {
    Path(ReadDir),
    Descriptor { directory: OwnedFd, entries: Dir },
}

impl Entries {
    /// The entries of an open directory.
    ///
    /// # Errors
    ///
    /// It is no directory, or was not opened to be read.
    pub fn of(directory: OwnedFd) -> io::Result<Self> {
        let entries = Dir::read_from(&directory)?;
        Ok(Self(Source::Descriptor { directory, entries }))
    }
}

impl Iterator for Entries {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match &mut self.0 {
                Source::Path(entries) => {
                    let entry = match entries.next()? {
                        Ok(entry) => entry,
                        Err(error) => return Some(Err(error)),
                    };
                    return match entry.file_type() {
                        Ok(kind) => Some(Ok(Entry { name: entry.file_name(), kind: raw_kind(kind) })),
                        // Removed meanwhile.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        Err(error) => Some(Err(error)),
                    };
                }
                Source::Descriptor { directory, entries } => {
                    let entry = match entries.next()? {
                        Ok(entry) => entry,
                        Err(error) => return Some(Err(error.into())),
                    };
                    let name = entry.file_name().to_bytes();
                    if name == b"." || name == b".." {
                        continue;
                    }
                    let kind = match entry.file_type() {
                        // Not every file system tells it.
                        FileType::Unknown => match beneath::kind(directory, name) {
                            Ok(kind) => kind,
                            Err(rustix::io::Errno::NOENT) => continue,
                            Err(error) => return Some(Err(error.into())),
                        },
                        kind => kind,
                    };
                    return Some(Ok(Entry { name: OsStr::from_bytes(name).to_owned(), kind }));
                }
            }
        }
    }
}

fn raw_kind(kind: fs::FileType) -> FileType {
    use std::os::unix::fs::FileTypeExt as _;
    if kind.is_file() {
        FileType::RegularFile
    } else if kind.is_dir() {
        FileType::Directory
    } else if kind.is_symlink() {
        FileType::Symlink
    } else if kind.is_fifo() {
        FileType::Fifo
    } else if kind.is_socket() {
        FileType::Socket
    } else if kind.is_char_device() {
        FileType::CharacterDevice
    } else if kind.is_block_device() {
        FileType::BlockDevice
    } else {
        FileType::Unknown
    }
}

#[cfg(test)]
mod tests;

//! Files written whole: a reader, and whoever looks after a crash of this process, finds the old content or the new one.
//!
//! The new content goes into a temporary file beside the old one, which takes its place, mode, owner and extended
//! attributes. Where that would break something (other names of the same file, a mounted file) or is not possible (a
//! directory that is not writable, an owner that can not be kept), the content is put into the file itself; then only
//! after all of it is there and there is room for it.
//!
//! Temporary files of processes that were killed are known from a journal, and removed by [`remove_leftovers`].

mod attributes;
mod journal;
mod target;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use gloveport_audit::{Event, Text};
use rustix::{
    fs::{FallocateFlags, OFlags, RenameFlags},
    io::Errno,
};

use target::{Access, Link, Target};

pub use journal::{open_journal, remove_leftovers};

/// How a file is opened that is to be read: without a wait, whatever it is.
pub(crate) const READ: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// What a file gets that did not exist. An existing one keeps what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NewFile {
    /// Permission bits; `None` for 0666 less the umask.
    pub mode: Option<u32>,
    /// User and group; `None` for those of this process.
    pub owner: Option<(u32, u32)>,
}

/// A file that is about to get new content. Dropping it leaves the file as it was.
#[derive(Debug)]
pub struct Replacement {
    /// The file itself, behind all links.
    target: Target,
    /// Where the new content is collected.
    file: File,
    place: Place,
    new: NewFile,
    /// What the target was when we began; `None` if it did not exist.
    old: Option<File>,
}

/// The old content of a replaced file. Dropping it gives its room back, which can take longer than the replacement;
/// who has an answer to give can do that before.
#[derive(Debug)]
pub struct Replaced {
    _old: Option<File>,
}

#[derive(Debug)]
enum Place {
    /// In a file beside the target.
    Beside { temporary: PathBuf, _entry: journal::Entry, done: bool },
    /// In a file without a name; its content is copied into the target.
    Apart,
}

impl Replacement {
    /// Begins to write `path`. Links are followed, so that a link stays one; the target of a dangling link is created.
    ///
    /// # Errors
    ///
    /// `path` is a directory (`EISDIR`), is something else that is no regular file (`EINVAL`), may not be written by
    /// this process (`EACCES`), or its directory does not exist (`ENOENT`). Nothing is changed then.
    pub fn begin(path: &Path, new: NewFile) -> io::Result<Self> {
        Self::begin_at(Target::behind_links(path)?, new)
    }

    /// Begins to write what has the name in the directory. The file is reached by these two only, and a link is not
    /// followed (`ELOOP`). A file that has other names is not filled: its name gets a new file, and they keep the old.
    ///
    /// `path` names the file for messages, and for those who remove what a killed process left.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Self::begin).
    pub fn begin_in(directory: OwnedFd, name: std::ffi::OsString, path: PathBuf, new: NewFile) -> io::Result<Self> {
        Self::begin_at(Target::In { directory, name, path, link: Link::Refused }, new)
    }

    /// The same, but a link that has the name is replaced itself; what it leads to stays as it is.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Self::begin).
    pub fn begin_over(directory: OwnedFd, name: std::ffi::OsString, path: PathBuf, new: NewFile) -> io::Result<Self> {
        Self::begin_at(Target::In { directory, name, path, link: Link::Replaced }, new)
    }

    fn begin_at(target: Target, new: NewFile) -> io::Result<Self> {
        let old = match target.open(Access::Read) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if target.replaces_link(&error) => None,
            // A file can be writable and not readable; its attributes can not be taken over then.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                target.check_writable()?;
                let old = target.open(Access::Write)?;
                return Ok(Self { target, file: tempfile::tempfile()?, place: Place::Apart, new, old: Some(old) });
            }
            Err(error) => return Err(error),
        };
        let has_other_names = match &old {
            Some(file) => {
                target.check_writable()?;
                file.metadata()?.nlink() > 1
            }
            None => false,
        };
        if !has_other_names || !target.fills_others() {
            match target.create_beside(old.is_some()) {
                Ok((file, temporary, entry)) => {
                    let place = Place::Beside { temporary, _entry: entry, done: false };
                    let replacement = Self { target, file, place, new, old };
                    let keeps = match &replacement.old {
                        Some(old) => attributes::copy(old, &replacement.file)?,
                        None => true,
                    };
                    if has_other_names {
                        attributes::drop_privileges(&replacement.file)?;
                    }
                    if keeps || has_other_names {
                        return Ok(replacement);
                    }
                    return replacement.apart();
                }
                // Without the old file there is nothing to put the content into, or nothing that may be filled.
                Err(error) if old.is_none() || has_other_names => return Err(error),
                Err(error) if is_no_room(&error) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Self { target, file: tempfile::tempfile()?, place: Place::Apart, new, old })
    }

    /// The same, with the content collected in a file without a name.
    fn apart(mut self) -> io::Result<Self> {
        let file = tempfile::tempfile()?;
        self.discard();
        (self.file, self.place) = (file, Place::Apart);
        Ok(self)
    }

    /// Removes the temporary file, if there is one.
    fn discard(&mut self) {
        if let Place::Beside { temporary, done: done @ false, .. } = &mut self.place {
            *done = true;
            if let Err(error) = self.target.remove(temporary) {
                tracing::warn!(%error, path = %temporary.display(), "a temporary file can not be removed");
            }
        }
    }

    /// The file that the new content is written to, from its beginning on.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The file that is replaced, behind all links.
    pub fn target(&self) -> &Path {
        self.target.path()
    }

    /// Whether there is an old file, as it was when this began.
    pub fn old(&self) -> Option<&File> {
        self.old.as_ref()
    }

    /// Puts the new content into the place of the old.
    ///
    /// # Errors
    ///
    /// The file is as it was, but for one case: the storage fails while the content is put into the file itself.
    pub fn commit(self) -> io::Result<Replaced> {
        self.finish(RenameFlags::empty())
    }

    /// Takes the set-user-ID and set-group-ID bits and the capabilities away that the new content would have from the
    /// old one: for content that must not run with the rights of the file that it replaces.
    ///
    /// # Errors
    ///
    /// The file system refuses it.
    pub fn drop_privileges(&self) -> io::Result<()> {
        attributes::drop_privileges(&self.file)
    }

    /// Like [`commit`](Self::commit), but never replaces anything.
    ///
    /// # Errors
    ///
    /// Something is there (`EEXIST`), or was when this began.
    pub fn commit_new(self) -> io::Result<Replaced> {
        if self.old.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.finish(RenameFlags::NOREPLACE)
    }

    fn finish(mut self, flags: RenameFlags) -> io::Result<Replaced> {
        self.file.flush()?;
        gloveport_audit::record(|| Event::Wrote {
            path: Text::of(self.target()),
            bytes: self.file.metadata().map_or(0, |file| file.len()),
        });
        match &mut self.place {
            Place::Beside { temporary, done, .. } => {
                if self.old.is_none() {
                    attributes::set(&self.file, self.new)?;
                }
                match self.target.take(temporary, flags) {
                    Ok(()) => {
                        *done = true;
                        return Ok(Replaced { _old: self.old.take() });
                    }
                    // A file that something is mounted on can not be replaced, only filled.
                    Err(error) if self.old.is_some() && error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {}
                    Err(error) => return Err(error),
                }
                self.fill()?;
            }
            Place::Apart => self.fill()?,
        }
        Ok(Replaced { _old: None })
    }

    /// Puts the collected content into the old file.
    fn fill(&mut self) -> io::Result<()> {
        let mut target = self.target.open(Access::Write)?;
        if !self.target.fills_others() && target.metadata()?.nlink() > 1 {
            return Err(Errno::BUSY.into());
        }
        let length = self.file.seek(SeekFrom::End(0))?;
        self.file.rewind()?;
        // The room is taken first, so that a full disk changes nothing.
        if length > 0 {
            match rustix::fs::fallocate(&target, FallocateFlags::KEEP_SIZE, 0, length) {
                Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS | Errno::INVAL | Errno::NODEV) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let copied = io::copy(&mut self.file, &mut target)?;
        match target.set_len(copied) {
            // Files of the kernel have no length.
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
            _ => Ok(()),
        }
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Writes a file whole.
///
/// # Errors
///
/// Those of [`Replacement::begin`] and [`Replacement::commit`], and a full disk; the file is as it was then.
pub fn write(path: &Path, content: &[u8], new: NewFile) -> io::Result<()> {
    let mut replacement = Replacement::begin(path, new)?;
    replacement.write_all(content)?;
    replacement.commit().map(drop)
}

/// Reads a whole regular file of at most `limit` bytes.
///
/// # Errors
///
/// It is larger (`EFBIG`), or no regular file (`EISDIR`, `EINVAL`).
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_to_read(path)?;
    let length = file.metadata()?.len();
    let mut content = Vec::with_capacity(usize::try_from(length.min(limit)).unwrap_or(0).saturating_add(1));
    file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(Errno::FBIG.into());
    }
    Ok(content)
}

/// Opens a regular file to be read. Never waits, whatever `path` is.
///
/// # Errors
///
/// `path` is a directory (`EISDIR`), or something else that is no regular file (`EINVAL`).
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open_regular(path, OpenOptions::new().read(true))
}

/// What `path` is, if it is no regular file and no directory: for messages.
pub fn special_kind(path: &Path) -> Option<&'static str> {
    special_name(fs::metadata(path).ok()?.file_type())
}

pub(crate) fn special_name(kind: fs::FileType) -> Option<&'static str> {
    [
        (kind.is_fifo(), "FIFO"),
        (kind.is_socket(), "socket"),
        (kind.is_char_device(), "character device"),
        (kind.is_block_device(), "block device"),
    ]
    .into_iter()
    .find_map(|(is, name)| is.then_some(name))
}

fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    checked_regular(options.custom_flags(READ.bits().cast_signed()).open(path))
}

/// A file that was opened without a wait, if it is a regular one.
pub(crate) fn checked_regular(opened: io::Result<impl Into<File>>) -> io::Result<File> {
    let file: File = match opened {
        // A FIFO without a reader, or a socket.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Err(Errno::INVAL.into()),
        other => other?.into(),
    };
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if !kind.is_file() {
        return Err(Errno::INVAL.into());
    }
    Ok(file)
}

fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests;
